// Output that depends on the reader: a terminal gets progress and block characters, a pipe plain
// ASCII. Also numbers in readable form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace oncilla::tool {

// A note on stderr about work that takes long, erased when it ends. Shown on a terminal only.
class Progress {
 public:
  explicit Progress(std::string_view what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  bool shown_;
};

// A bar for `share` of `width` columns; anything above zero shows at least something.
std::string Bar(double share, int width);

std::string HumanTime(double seconds);  // "1.23 ms", "45.6 s"
std::string HumanCount(double count);   // "4.65 M", "768 G"

// While an object exists, an interrupt waits for its end: for files that are written in pieces.
class NoInterrupt {
 public:
  NoInterrupt();
  ~NoInterrupt();
  NoInterrupt(const NoInterrupt&) = delete;
  NoInterrupt& operator=(const NoInterrupt&) = delete;
};

// From now on an interrupt (Ctrl-C) ends the program with exit code 130, after a line that says
// so.
void HandleInterrupts();

}  // namespace oncilla::tool
