// Writes the files of a load request, whose paths come from clients.
#include "server/model/model_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "server/core/text.h"

namespace oncilla::server {
namespace {

namespace fs = std::filesystem;

// Whether a name is a valid file or folder name on every system, and has no other meaning in
// messages.
bool IsPlainName(const std::string& name) {
  constexpr size_t kMostBytes = 200;
  if (name.empty() || name == "." || name == ".." || name.size() > kMostBytes || !IsUtf8(name))
    return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\' || c == ':';
  });
}

absl::Status CheckPath(const std::string& path) {
  constexpr size_t kMostBytes = 1000, kMostDepth = 8;
  const std::vector<std::string> parts = Split(path.substr(0, kMostBytes + 1), '/');
  const auto version = ParseNumber(parts[0]);
  if (path.size() <= kMostBytes && version && *version > 0 && parts.size() > 1 &&
      parts.size() <= kMostDepth && std::all_of(parts.begin(), parts.end(), IsPlainName)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("the file '", ValidUtf8(path.substr(0, 100)),
             "' is none of a version: it must be called VERSION/NAME, or lie in folders below "
             "VERSION, without '..'"));
}

// The status of a failed write, from the system's error code.
absl::Status Failure(const std::string& subject, int error) {
  const std::string what = StrCat(subject, " cannot be written: ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(what);
  if (error == EEXIST || error == ENOTDIR) return absl::InvalidArgumentError(what);
  return absl::UnavailableError(what);
}

absl::Status WriteFile(const std::string& folder, const ModelFile& file) {
  const fs::path path = fs::path(folder) / file.path;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const std::string subject = StrCat("the file '", file.path, "'");
  if (error) return Failure(subject, error.value());
  const int out = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (out < 0) return Failure(subject, errno);
  size_t done = 0;
  int failed = 0;
  while (done < file.bytes.size() && failed == 0) {
    const ssize_t wrote = ::write(out, file.bytes.data() + done, file.bytes.size() - done);
    if (wrote >= 0)
      done += static_cast<size_t>(wrote);
    else if (errno != EINTR)
      failed = errno;
  }
  if (::close(out) != 0 && failed == 0) failed = errno;
  return failed == 0 ? absl::OkStatus() : Failure(subject, failed);
}

}  // namespace

absl::Status ModelFiles::Check(const std::vector<ModelFile>& files) {
  constexpr size_t kMostFiles = 1000;
  if (files.size() > kMostFiles)
    return absl::InvalidArgumentError(StrCat("a load request may have ", kMostFiles, " files"));
  std::set<std::string> seen;
  for (const ModelFile& file : files) {
    const absl::Status status = CheckPath(file.path);
    if (!status.ok()) return status;
    if (!seen.insert(file.path).second)
      return absl::InvalidArgumentError(StrCat("the file '", file.path, "' is given twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ModelFiles>> ModelFiles::Write(
    const std::vector<ModelFile>& files, ByteBudget* budget) {
  std::shared_ptr<ModelFiles> written(new ModelFiles(budget));
  for (const ModelFile& file : files) {
    if (!written->held_.Grow(file.bytes.size()).ok()) {
      return absl::ResourceExhaustedError(
          "the files of load requests would take more room than --load-files gives");
    }
  }
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  std::string folder = (temporary / "oncilla-model-XXXXXX").string();  // mkdtemp's pattern
  if (!error && ::mkdtemp(folder.data()) == nullptr)
    error = std::error_code(errno, std::generic_category());
  if (error) return Failure("a temporary folder for the model's files", error.value());
  written->folder_ = folder;
  for (const ModelFile& file : files) {
    const absl::Status status = WriteFile(folder, file);
    if (!status.ok()) return status;
  }
  return std::shared_ptr<const ModelFiles>(std::move(written));
}

ModelFiles::~ModelFiles() {
  if (folder_.empty()) return;
  std::error_code error;
  fs::remove_all(folder_, error);
}

}  // namespace oncilla::server
