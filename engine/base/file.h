// Files: map one read-only, read one whole, write one atomically, list a folder.
//
// Every failure names the path and the system's reason, has Stage::kFile, and a code by cause:
// NotFound, PermissionDenied, AlreadyExists, InvalidArgument (not a regular file),
// ResourceExhausted (too large, no room), DataLoss (changed while in use), Unavailable (the rest).
// POSIX only. Nothing here keeps state between calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/mapping_guard.h"
#include "engine/base/status.h"
#include "engine/base/temporary_files.h"

namespace oncilla {

// The bytes of a file, read-only, for as long as the object lives. Immutable and safe to share
// between threads. A small file is read whole when it is opened, so that later changes to the file
// are not seen. A large one is mapped, so that writes to the file change these bytes, and they read
// as zeros where the file was shortened (mapping_guard.h). Code that reads the bytes long after
// opening therefore calls CheckUnchanged() before it reads and, since the file may change
// meanwhile, again before it uses the result.
class MappedFile {
 public:
  // Refuses folders, devices, pipes and sockets. An empty file gives an empty span.
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  // Opens a file that another file names: `relative` must stay inside `folder`, and is resolved
  // component by component through real folders to a regular file with a single hard link. Absolute
  // paths, "..", symbolic links and files with further hard links are refused with
  // PermissionDenied, so that an untrusted model cannot read other files of its user.
  static Result<std::shared_ptr<const MappedFile>> OpenBeneath(const std::string& folder,
                                                               std::string_view relative);
  // Wraps bytes in memory as if they were a file. `path` names them in messages; `owner` keeps them
  // alive.
  static std::shared_ptr<const MappedFile> OfBytes(std::span<const std::byte> bytes,
                                                   std::shared_ptr<const void> owner,
                                                   const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::string& path() const { return path_; }

  // DataLoss when the file's size or time of change differs from when it was mapped, or bytes that
  // were read were not there. A file that was replaced by another under the same name is unchanged
  // here: the mapping keeps the old one.
  Status CheckUnchanged() const;
  // Says that the bytes are not needed soon: their pages are dropped from the process' memory and
  // read from the file again on the next access. Does nothing for bytes that are not mapped.
  void DropPages() const;
  bool mapped() const { return guard_ != nullptr; }
  // Made by OfBytes: there is no folder that files beside it could be in.
  bool of_bytes() const { return of_bytes_; }

 private:
  MappedFile() = default;
  static Result<std::shared_ptr<const MappedFile>> Map(int fd, const std::string& path);

  std::string path_;
  int fd_ = -1;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int64_t modified_ns_ = 0;
  bool of_bytes_ = false;
  std::shared_ptr<const void> owner_;    // of bytes that are not mapped
  std::unique_ptr<MappingGuard> guard_;  // of mapped bytes
};

// The bytes of a regular file, refused with ResourceExhausted above `max_bytes`.
Result<std::string> ReadFile(const std::string& path, uint64_t max_bytes);

// A file under construction beside its target: Commit() renames it to the target atomically, after
// its bytes are on the disk. Until then, and after any failure, the old target is untouched;
// destruction without Commit removes the draft. Not thread-safe. Two writers of one target do not
// disturb each other: the last Commit wins. A target that is a symbolic link is itself replaced.
class FileDraft {
 public:
  static Result<FileDraft> Create(const std::string& target);
  FileDraft(FileDraft&& other) noexcept;
  FileDraft& operator=(FileDraft&& other) noexcept;
  ~FileDraft();

  Status Append(std::span<const std::byte> bytes);
  Status Append(std::string_view text);
  uint64_t bytes_written() const { return written_; }
  Status Commit();

 private:
  FileDraft() = default;
  void Discard();

  std::string target_, draft_;
  TemporaryFile mark_;
  int fd_ = -1;
  uint64_t written_ = 0;
};

// The path at which to write a file of that name: symbolic links are resolved, so that a link stays
// a link. InvalidArgument if it exists but is not a regular file: that is never replaced.
Result<std::string> WritableTarget(const std::string& path);

// Writes a whole file through a FileDraft.
Status WriteFile(const std::string& path, std::string_view contents);

struct FolderEntry {
  std::string name;  // without the folder
  bool is_folder = false;
  uint64_t bytes = 0;  // of a regular file; 0 otherwise
};
// The entries of a folder, sorted by name, without "." and "..". Symbolic links are followed; a
// dangling one is listed as neither file nor folder.
Result<std::vector<FolderEntry>> ListFolder(const std::string& path);

// Creates a folder and those above it; one that exists already is success.
Status MakeFolder(const std::string& path);
// Removes a file; one that does not exist is success.
Status RemoveFile(const std::string& path);
bool FileExists(const std::string& path);    // a regular file, or a link to one
bool FolderExists(const std::string& path);  // a folder, or a link to one

// "a" and "b" give "a/b"; an absolute `name` stands for itself.
std::string JoinPath(std::string_view folder, std::string_view name);

}  // namespace oncilla
