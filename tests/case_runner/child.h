// A test program that starts itself again: the child runs many tests, the parent goes on behind the
// one in which it died or hung.
//
// The child writes a line "begin I" before test I, "end I WHAT-CAME-OF-IT" behind it, "broken WHY"
// when it cannot begin at all, and whatever else it wants to be seen.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace oncilla::testing {

struct ChildEnd {
  size_t next = 0;  // the test it was in, or else the first that it did not begin
  bool in_test = false;
  std::string broken;  // why it could not begin
  std::string how;     // "died with signal ..": empty for one that ended well
};

// Runs this program as "--child FROM" and argv's arguments. A test that takes longer than
// `timeout_s` is killed. `on_end` gets the test's number and what stands behind it.
ChildEnd RunChild(char** argv, size_t from, int timeout_s,
                  const std::function<void(size_t, const std::string&)>& on_end);

}  // namespace oncilla::testing
