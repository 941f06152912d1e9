// Log: thresholds, a hook whose calls never overlap, and a hook that logs itself.
#include "engine/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace oncilla {
namespace {

TEST(Log, ThresholdDropsAndHookReceives) {
  std::vector<std::string> seen;
  Log log(LogLevel::kInfo, [&](LogLevel level, std::string_view message) {
    seen.push_back(StrCat(Name(level), "|", message));
  });
  log.Debug("never");
  log.Info("a ", 1);
  log.Warning("b");
  log.Error("c");
  log.Write(LogLevel::kNone, "never");
  EXPECT_THAT(seen, ::testing::ElementsAre("info|a 1", "warning|b", "error|c"));
  EXPECT_FALSE(Log(LogLevel::kNone).enabled(LogLevel::kError));
}

TEST(Log, DefaultWritesWarningsToStandardError) {
  ::testing::internal::CaptureStderr();
  DefaultLog().Info("quiet");
  DefaultLog().Warning("loud");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "oncilla warning: loud\n");
}

TEST(Log, HookCallsDoNotOverlap) {
  std::atomic<int> inside = 0;
  int calls = 0;  // guarded by the log
  Log log(LogLevel::kDebug, [&](LogLevel, std::string_view) {
    EXPECT_EQ(inside.fetch_add(1), 0);
    ++calls;
    inside.fetch_sub(1);
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) log.Debug(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 3000);
}

TEST(Log, AHookMayLog) {
  int calls = 0;
  const Log* self = nullptr;
  Log log(LogLevel::kInfo, [&](LogLevel, std::string_view) {
    ++calls;
    self->Warning("from inside");
  });
  self = &log;
  ::testing::internal::CaptureStderr();
  log.Info("x");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "oncilla warning: from inside\n");
  EXPECT_EQ(calls, 1);
}

TEST(Log, LevelsParse) {
  EXPECT_EQ(*ParseLogLevel("error"), LogLevel::kError);
  EXPECT_EQ(ParseLogLevel("loud").status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace oncilla
