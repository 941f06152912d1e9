// A test program that starts itself again: the child runs many tests; when it dies or hangs, the
// parent continues after that test with a new child.
//
// The child writes a line "begin I" before test I, "end I OUTCOME" after it, "broken WHY" when it
// cannot begin at all, and any other output.
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
// `timeout_s` is killed. `on_end` receives the test's number and outcome.
ChildEnd RunChild(char** argv, size_t from, int timeout_s,
                  const std::function<void(size_t, const std::string&)>& on_end);

}  // namespace oncilla::testing
