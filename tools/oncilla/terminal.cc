// Progress, bars and signals. The signal handler only removes files, writes and exits, which are
// all safe in a handler.
#include "tools/oncilla/terminal.h"

#include <langinfo.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "engine/base/temporary_files.h"
#include "tools/oncilla/exit_code.h"

namespace oncilla::tool {
namespace {

volatile sig_atomic_t g_busy = 0, g_pending = 0;

[[noreturn]] void Leave(int signal) {
  RemoveTemporaryFiles();  // drafts, and the driver's mark, since this is no crash
  constexpr char kLine[] = "oncilla: error: interrupted\n";
  (void)!write(STDERR_FILENO, kLine, sizeof(kLine) - 1);
  _exit(128 + signal);
}

void OnInterrupt(int signal) {
  if (g_busy == 0) Leave(signal);
  g_pending = signal;
}

std::string Scaled(double value, const char* format, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value, unit);
  return text;
}

// Formats three digits.
std::string ThreeDigits(double value, const char* unit) {
  return Scaled(value, value < 9.995 ? "%.2f %s" : value < 99.95 ? "%.1f %s" : "%.0f %s", unit);
}

}  // namespace

Progress::Progress(std::string_view what) : shown_(isatty(STDERR_FILENO) == 1) {
  if (shown_) std::fprintf(stderr, "\r\x1b[K%.*s ...", static_cast<int>(what.size()), what.data());
}
Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

std::string Bar(double share, int width) {
  // NaN has no length.
  const double columns = share > 0 ? std::min(share, 1.0) * width : 0;
  const bool blocks = isatty(STDOUT_FILENO) == 1 && std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  if (!blocks) {
    auto n = static_cast<size_t>(std::lround(columns));
    if (n == 0 && columns > 0) return "|";
    return std::string(n, '#');
  }
  // U+2588 is a full block; U+2589..U+258F are seven eighths down to one.
  std::string out;
  auto eighths = static_cast<int>(std::lround(columns * 8));
  if (eighths == 0 && columns > 0) eighths = 1;
  for (; eighths >= 8; eighths -= 8) out += "\xe2\x96\x88";
  if (eighths > 0) out += {'\xe2', '\x96', static_cast<char>(0x90 - eighths)};
  return out;
}

std::string HumanTime(double seconds) {
  if (seconds < 1e-3) return ThreeDigits(seconds * 1e6, "us");
  if (seconds < 1) return ThreeDigits(seconds * 1e3, "ms");
  return ThreeDigits(seconds, "s");
}

std::string HumanCount(double count) {
  if (count < 1000) return Scaled(count, "%.0f%s", "");
  for (const char* unit : {"k", "M", "G", "T"}) {
    count /= 1000;
    if (count < 1000) return ThreeDigits(count, unit);
  }
  return ThreeDigits(count / 1000, "P");
}

NoInterrupt::NoInterrupt() { g_busy = g_busy + 1; }
NoInterrupt::~NoInterrupt() {
  g_busy = g_busy - 1;
  if (g_busy == 0 && g_pending != 0) Leave(g_pending);
}

void HandleInterrupts() {
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    // A signal that was ignored stays ignored, as nohup expects.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
  // A write that would exceed the limit on file sizes then returns an error instead of ending the
  // program.
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace oncilla::tool
