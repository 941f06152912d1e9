// Files that must not outlive this process when a signal ends it: drafts, and markers of work in
// progress. A program that handles signals calls RemoveTemporaryFiles before it exits; a process
// that is killed leaves its files behind all the same.
#pragma once

#include <string>

namespace oncilla {

// Registers a path from construction to destruction. Thread-safe. A path of more than 1000 bytes,
// or one beyond the first 64, is not registered: it is left behind as if there were no handler.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  explicit TemporaryFile(const std::string& path);
  ~TemporaryFile();
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&& other) noexcept;

 private:
  int slot_ = -1;
};

// Removes every registered file. May be called from a signal handler.
void RemoveTemporaryFiles();

}  // namespace oncilla
