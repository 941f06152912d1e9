// Near names: "did you mean", for messages about a name that does not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace oncilla {

// Edits (insert, remove, replace, swap neighbours) from `a` to `b`, ignoring case. Long names are
// compared by their first 64 characters.
int EditDistance(std::string_view a, std::string_view b);

// "; did you mean 'x' or 'y'?" with the nearest few candidates, or nothing when none is near.
std::string DidYouMean(std::string_view name, std::span<const std::string> candidates);

// As DidYouMean(), followed by everything that exists: "; did you mean 'x'? There is: 'x', 'y'", or
// ". There is: 'x', 'y'" when none is near. `all` lists the candidates as the message is to show
// them.
std::string DidYouMeanAmong(std::string_view name, std::span<const std::string> candidates,
                            std::string_view all);

// "'x', 'y'", or "none".
std::string Listed(std::span<const std::string> names);

}  // namespace oncilla
