// Environment variables that select something: each text with its result, and one that is refused.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>

#include "engine/base/status.h"

namespace oncilla {

// `read` returns a Result<Choice>. The variable is restored afterwards.
template <class Choice, class Read>
void ExpectChosenByEnvironment(const char* variable, Read read,
                               std::initializer_list<std::pair<const char*, Choice>> choices,
                               const char* wrong) {
  const char* before = std::getenv(variable);
  const std::string kept = before == nullptr ? "" : before;
  for (const auto& [text, choice] : choices) {
    setenv(variable, text, 1);
    const auto chosen = read();
    ASSERT_TRUE(chosen.ok()) << chosen.status();
    EXPECT_EQ(*chosen, choice) << text;
  }
  setenv(variable, wrong, 1);
  EXPECT_EQ(read().status().code(), Code::kInvalidArgument);
  setenv(variable, kept.c_str(), 1);
}

}  // namespace oncilla
