// Patterns that users give for names: '*' stands for any text, '?' for one character.
#pragma once

#include <string_view>

namespace oncilla {

bool MatchesPattern(std::string_view pattern, std::string_view name);

}  // namespace oncilla
