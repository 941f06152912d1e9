// Plain POSIX calls. Files are opened with O_NONBLOCK so that opening a pipe does not hang before
// its kind is known.
#include "engine/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "engine/base/free_memory.h"

namespace oncilla {
namespace {

Code CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
      return Code::kInvalidArgument;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return Code::kResourceExhausted;
    default:
      return Code::kUnavailable;
  }
}

Status FileError(Code code, std::string_view action, const std::string& path,
                 std::string_view reason) {
  return WithStage(Error(code, "cannot ", action, " '", path, "': ", reason), Stage::kFile);
}

Status SystemError(std::string_view action, const std::string& path, int error) {
  return FileError(CodeOf(error), action, path, std::generic_category().message(error));
}

int64_t ModifiedNs(const struct stat& info) {
#if defined(__APPLE__)
  const timespec& t = info.st_mtimespec;
#else
  const timespec& t = info.st_mtim;
#endif
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

std::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a folder, not a file";
  if (S_ISFIFO(mode)) return "it is a pipe, not a regular file";
  if (S_ISSOCK(mode)) return "it is a socket, not a regular file";
  return "it is a device, not a regular file";
}

// Closes the descriptor when it goes out of scope, unless it was released.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int OpenRetrying(const char* path, int flags, mode_t mode = 0) {
  int fd;
  do {
    fd = ::open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// Opens a regular file for reading and describes it.
Result<int> OpenRegular(const std::string& path, struct stat* info) {
  if (path.find('\0') != std::string::npos) {
    return FileError(Code::kInvalidArgument, "open", path, "the path contains a zero byte");
  }
  Descriptor fd(OpenRetrying(path.c_str(), O_RDONLY | O_NONBLOCK));
  if (fd.get() < 0) {
    // A socket cannot be opened at all; its own reason reads better than the system's.
    const int error = errno;
    if (::stat(path.c_str(), info) == 0 && S_ISSOCK(info->st_mode)) {
      return FileError(Code::kInvalidArgument, "open", path, KindOf(info->st_mode));
    }
    return SystemError("open", path, error);
  }
  if (::fstat(fd.get(), info) != 0) return SystemError("open", path, errno);
  if (!S_ISREG(info->st_mode)) {
    return FileError(Code::kInvalidArgument, "open", path, KindOf(info->st_mode));
  }
  return fd.Release();
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A buffer for a file's contents. Unlike those of a string, bytes added by resize() are not
// initialised.
class FileBytes {
 public:
  void resize(size_t size) {
    if (size > capacity_) {
      auto larger = std::make_unique_for_overwrite<char[]>(size);
      std::copy_n(data_.get(), size_, larger.get());
      data_ = std::move(larger);
      capacity_ = size;
    }
    size_ = size;
  }
  char* data() { return data_.get(); }
  const char* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<char[]> data_;
  size_t size_ = 0, capacity_ = 0;
};

// Reads a file from the descriptor's position to its end. `size` is what the system stated. Bytes
// is std::string or FileBytes.
template <class Bytes>
Result<Bytes> ReadWhole(int fd, const std::string& path, uint64_t max_bytes, off_t size) {
  auto too_large = [&](uint64_t found) {
    return FileError(Code::kResourceExhausted, "read", path,
                     StrCat("it has ", found, " bytes, the limit is ", max_bytes));
  };
  const uint64_t stated = static_cast<uint64_t>(size);
  if (stated > max_bytes) return too_large(stated);
  // The stated size is only a hint: a log may grow while it is read, and files in /proc state 0;
  // some of those return all their contents in the first read only. One byte more than stated lets
  // the read that follows the contents see the end of the file without another resize.
  Bytes contents;
  contents.resize(stated != 0 ? stated + 1 : 1 << 16);
  AskForLargePages(contents.data(), static_cast<int64_t>(contents.size()));
  constexpr uint64_t kStep = 1 << 20, kLargestRead = 1 << 30;
  for (uint64_t have = 0;;) {
    if (have == contents.size()) contents.resize(have + std::max(have, kStep));
    ssize_t got;
    do {
      got = ::read(fd, contents.data() + have, std::min(contents.size() - have, kLargestRead));
    } while (got < 0 && errno == EINTR);
    if (got < 0) return SystemError("read", path, errno);
    have += static_cast<uint64_t>(got);
    if (have > max_bytes) return too_large(have);
    if (got == 0) {
      contents.resize(have);
      return contents;
    }
  }
}

}  // namespace

// Takes ownership of the descriptor of a regular file.
Result<std::shared_ptr<const MappedFile>> MappedFile::Map(int fd, const std::string& path) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->fd_ = fd;
  file->path_ = path;
  struct stat info;
  if (::fstat(fd, &info) != 0) return SystemError("open", path, errno);
  file->modified_ns_ = ModifiedNs(info);
  if (static_cast<uint64_t>(info.st_size) > SIZE_MAX / 2) {
    return FileError(Code::kResourceExhausted, "map", path, "too large for the address space");
  }
  constexpr int64_t kReadWhole = int64_t{16} << 20;
  if (info.st_size <= kReadWhole) {
    ONCILLA_ASSIGN(FileBytes contents, ReadWhole<FileBytes>(fd, path, kReadWhole, info.st_size));
    // If the file was written to during the read, the contents may mix old and new bytes.
    file->size_ = static_cast<size_t>(info.st_size);
    ONCILLA_TRY(file->CheckUnchanged());
    auto kept = std::make_shared<const FileBytes>(std::move(contents));
    file->data_ = reinterpret_cast<const std::byte*>(kept->data());
    file->size_ = kept->size();
    file->owner_ = std::move(kept);
    ::close(std::exchange(file->fd_, -1));
  } else {
    const size_t size = static_cast<size_t>(info.st_size);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) return SystemError("map", path, errno);
    file->data_ = static_cast<const std::byte*>(data);
    file->size_ = size;
    file->guard_ = std::make_unique<MappingGuard>(data, size);
  }
  return std::shared_ptr<const MappedFile>(std::move(file));
}

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  struct stat info;
  ONCILLA_ASSIGN(const int fd, OpenRegular(path, &info));
  return Map(fd, path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::OpenBeneath(const std::string& folder,
                                                                  std::string_view relative) {
  const std::string path = StrCat(folder, "/", relative);
  const auto refuse = [&](std::string_view reason) {
    return FileError(Code::kPermissionDenied, "open", path, reason);
  };
  if (relative.empty() || relative.front() == '/') {
    return refuse("it must be named relative to the folder of the file that names it");
  }
  if (relative.find('\0') != std::string_view::npos) return refuse("its name has a zero byte");
  Descriptor at(OpenRetrying(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY));
  if (at.get() < 0) return SystemError("open", folder, errno);
  for (;;) {
    const size_t slash = relative.find('/');
    const std::string step(relative.substr(0, slash));
    const bool last = slash == std::string_view::npos;
    if (!last) relative.remove_prefix(slash + 1);
    if (step == "..") return refuse("it lies outside the folder of the file that names it");
    if (step.empty() || step == ".") {
      if (last) return refuse(KindOf(S_IFDIR));
      continue;
    }
    // O_NOFOLLOW refuses a symbolic link at this step, wherever it leads.
    const int flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | (last ? 0 : O_DIRECTORY);
    int fd;
    do {
      fd = ::openat(at.get(), step.c_str(), flags);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
      const int error = errno;
      struct stat link;
      if (::fstatat(at.get(), step.c_str(), &link, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISLNK(link.st_mode)) return refuse("a symbolic link is on its way");
        if (last && !S_ISREG(link.st_mode)) return refuse(KindOf(link.st_mode));
      }
      return SystemError("open", path, error);
    }
    Descriptor next(fd);
    if (last) {
      struct stat info;
      if (::fstat(next.get(), &info) != 0) return SystemError("open", path, errno);
      if (!S_ISREG(info.st_mode)) return refuse(KindOf(info.st_mode));
      if (info.st_nlink > 1) return refuse("it is a hard link with other names; copy the file");
      return Map(next.Release(), path);
    }
    at = std::move(next);
  }
}

std::shared_ptr<const MappedFile> MappedFile::OfBytes(std::span<const std::byte> bytes,
                                                      std::shared_ptr<const void> owner,
                                                      const std::string& path) {
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  file->data_ = bytes.data();
  file->size_ = bytes.size();
  file->of_bytes_ = true;
  file->owner_ = std::move(owner);
  return file;
}

void MappedFile::DropPages() const {
  if (mapped()) (void)::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  const bool mapped = guard_ != nullptr;
  guard_.reset();  // before another mapping can reuse the range
  if (mapped) ::munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

Status MappedFile::CheckUnchanged() const {
  if (fd_ < 0) return {};
  if (mapped() && guard_->damaged()) {
    return FileError(Code::kDataLoss, "read", path_, "it was cut short while it was read");
  }
  struct stat info;
  if (::fstat(fd_, &info) != 0) return SystemError("check", path_, errno);
  if (static_cast<size_t>(info.st_size) != size_) {
    return FileError(
        Code::kDataLoss, "read", path_,
        StrCat("its size changed from ", size_, " to ", info.st_size, " bytes while it was open"));
  }
  if (ModifiedNs(info) != modified_ns_) {
    return FileError(Code::kDataLoss, "read", path_, "it was written to while it was open");
  }
  return Status();
}

Result<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  struct stat info;
  ONCILLA_ASSIGN(const int raw, OpenRegular(path, &info));
  const Descriptor fd(raw);
  return ReadWhole<std::string>(fd.get(), path, max_bytes, info.st_size);
}

Result<std::string> WritableTarget(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return FileError(Code::kInvalidArgument, "write", path, KindOf(info.st_mode));
  }
  if (::lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  std::error_code failure;
  const std::filesystem::path target = std::filesystem::canonical(path, failure);
  if (failure) {
    return FileError(Code::kInvalidArgument, "write", path, "a symbolic link to nothing");
  }
  return target.string();
}

Result<FileDraft> FileDraft::Create(const std::string& path) {
  // The counter makes the name unique among threads, the rest of it among processes; O_EXCL detects
  // any remaining collision.
  static std::atomic<uint32_t> counter{0};
  ONCILLA_ASSIGN(const std::string target, WritableTarget(path));
  for (int attempt = 0;; ++attempt) {
    const auto clock = std::chrono::steady_clock::now().time_since_epoch().count();
    FileDraft draft;
    draft.target_ = target;
    draft.draft_ = StrCat(target, ".", ::getpid(), "-", counter++, "-", clock % 1'000'000, ".tmp");
    draft.fd_ = OpenRetrying(draft.draft_.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (draft.fd_ >= 0) {
      draft.mark_ = TemporaryFile(draft.draft_);
      return draft;
    }
    if (errno != EEXIST || attempt == 100) return SystemError("write", target, errno);
  }
}

FileDraft::FileDraft(FileDraft&& other) noexcept
    : target_(std::move(other.target_)),
      draft_(std::move(other.draft_)),
      mark_(std::move(other.mark_)),
      fd_(std::exchange(other.fd_, -1)),
      written_(other.written_) {}

FileDraft& FileDraft::operator=(FileDraft&& other) noexcept {
  if (this != &other) {
    Discard();
    target_ = std::move(other.target_);
    draft_ = std::move(other.draft_);
    mark_ = std::move(other.mark_);
    fd_ = std::exchange(other.fd_, -1);
    written_ = other.written_;
  }
  return *this;
}

FileDraft::~FileDraft() { Discard(); }

void FileDraft::Discard() {
  if (fd_ < 0) return;
  ::close(std::exchange(fd_, -1));
  ::unlink(draft_.c_str());
  mark_ = {};
}

Status FileDraft::Append(std::span<const std::byte> bytes) {
  if (fd_ < 0) return Internal("append to a draft that is no longer open: '", target_, "'");
  while (!bytes.empty()) {
    // Some systems refuse single writes of 2 GiB and more.
    const ssize_t put = ::write(fd_, bytes.data(), std::min<size_t>(bytes.size(), 1 << 30));
    if (put < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      Discard();
      return SystemError("write", target_, error);
    }
    bytes = bytes.subspan(static_cast<size_t>(put));
    written_ += static_cast<uint64_t>(put);
  }
  return Status();
}

Status FileDraft::Append(std::string_view text) {
  return Append(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

Status FileDraft::Commit() {
  if (fd_ < 0) return Internal("commit of a draft that is no longer open: '", target_, "'");
  int error = ::fsync(fd_) != 0 ? errno : 0;
  // A filesystem without fsync says EINVAL; the rename is then still atomic to readers.
  if (error == EINVAL || error == ENOTSUP) error = 0;
  if (::close(std::exchange(fd_, -1)) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error == 0 && ::rename(draft_.c_str(), target_.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(draft_.c_str());
  mark_ = {};
  if (error != 0) return SystemError("write", target_, error);
  // The new name is durable once its folder is. Where a folder cannot be synced (some network
  // filesystems), the file is complete all the same, so that is no failure.
  const Descriptor folder(OpenRetrying(FolderOf(target_).c_str(), O_RDONLY));
  if (folder.get() >= 0) (void)::fsync(folder.get());
  return Status();
}

Status WriteFile(const std::string& path, std::string_view contents) {
  ONCILLA_ASSIGN(FileDraft draft, FileDraft::Create(path));
  ONCILLA_TRY(draft.Append(contents));
  return draft.Commit();
}

Result<std::vector<FolderEntry>> ListFolder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (folder == nullptr) return SystemError("list", path, errno);
  std::vector<FolderEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* found = ::readdir(folder.get());
    if (found == nullptr) break;
    FolderEntry entry{.name = found->d_name};
    if (entry.name == "." || entry.name == "..") continue;
    struct stat info;
    if (::fstatat(::dirfd(folder.get()), found->d_name, &info, 0) == 0) {
      entry.is_folder = S_ISDIR(info.st_mode);
      if (S_ISREG(info.st_mode)) entry.bytes = static_cast<uint64_t>(info.st_size);
    }
    entries.push_back(std::move(entry));
  }
  if (errno != 0) return SystemError("list", path, errno);
  std::ranges::sort(entries, {}, &FolderEntry::name);
  return entries;
}

Status MakeFolder(const std::string& path) {
  // Folders are created from the top down. If another process creates the same one first, mkdir
  // says EEXIST, which is fine.
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0777) != 0) {
      const int error = errno;
      if (!FolderExists(part)) return SystemError("create folder", part, error);
    }
    if (end == std::string::npos) return Status();
  }
}

Status RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Status();
  return SystemError("remove", path, errno);
}

bool FileExists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool FolderExists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string JoinPath(std::string_view folder, std::string_view name) {
  if (folder.empty() || name.starts_with('/')) return std::string(name);
  std::string path(folder);
  if (!path.ends_with('/')) path += '/';
  return path.append(name);
}

}  // namespace oncilla
