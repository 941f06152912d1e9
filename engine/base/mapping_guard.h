// Keeps a process alive when it reads a mapped file that another process truncates: reading beyond
// the file's new end raises SIGBUS. The guard maps zeros there instead and records the damage; the
// reader must check damaged() before it uses what it computed from the bytes.
//
// The handler of SIGBUS is installed with the first guarded mapping and passes every signal about
// other memory on to the handler or default that was there before. An application that installs its
// own handler later and does not pass signals on loses the protection.
#pragma once

#include <cstddef>

namespace oncilla {

class MappingGuard {
 public:
  // Guards [data, data + size) from construction to destruction. At most 1024 mappings are guarded
  // at a time; further ones are not.
  MappingGuard(const void* data, size_t size);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

  // Whether a page was missing when it was read: what was read may be zeros.
  bool damaged() const;

 private:
  int slot_ = -1;
};

}  // namespace oncilla
