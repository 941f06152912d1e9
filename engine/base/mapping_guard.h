// Keeps a process alive that reads a mapped file which another process truncates: reading beyond
// the file's new end raises SIGBUS. The guard puts zeros there instead and notes the damage; the
// reader must ask for it before using what it computed from the bytes.
//
// The handler of SIGBUS is installed with the first guarded mapping and passes on, to the handler
// or the default that was there before, every signal that is about other memory. An application
// that installs its own handler later, and does not pass signals on, loses the protection.
#pragma once

#include <cstddef>

namespace oncilla {

class MappingGuard {
 public:
  // Guards [data, data + size) from construction to destruction. Of more than 1024 mappings at once
  // the last ones are not guarded.
  MappingGuard(const void* data, size_t size);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

  // Some page was not there when it was read: what was read may be zeros.
  bool damaged() const;

 private:
  int slot_ = -1;
};

}  // namespace oncilla
