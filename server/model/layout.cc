// Reads the folders of the model repository.
#include "server/model/layout.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_join.h"
#include "server/core/text.h"

namespace oncilla::server {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> EntriesOf(const std::string& folder, std::error_code& error) {
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool IsSavedModel(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / "saved_model.pb", error) ||
         fs::exists(path / "saved_model.pbtxt", error);
}

bool IsModelFile(const fs::path& path) {
  static constexpr const char* kEndings[] = {".pb", ".pbtxt", ".onnx", ".tflite", ".oncilla"};
  const std::string ending = path.extension().string();
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](const char* e) { return ending == e; });
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ModelsOf(const std::string& repository) {
  std::error_code error;
  std::vector<std::string> names;
  for (const fs::path& path : EntriesOf(repository, error)) {
    const std::string name = path.filename().string();
    if (IsModelName(name) && IsFolder(path)) names.push_back(name);
  }
  if (error) return absl::InvalidArgumentError(StrCat("the model repository: ", error.message()));
  return names;
}

std::vector<int64_t> VersionsOf(const std::string& model_folder) {
  std::error_code error;
  std::vector<int64_t> versions;
  for (const fs::path& path : EntriesOf(model_folder, error)) {
    const auto number = ParseNumber(path.filename().string());
    if (number && *number > 0 && IsFolder(path)) versions.push_back(*number);
  }
  std::sort(versions.begin(), versions.end());
  return versions;
}

absl::StatusOr<std::vector<int64_t>> Wanted(const std::vector<int64_t>& versions,
                                            const VersionPolicy& policy) {
  if (versions.empty()) return absl::NotFoundError("there is no folder of a version (1, 2, ..)");
  if (policy.kind == VersionPolicy::Kind::kAll) return versions;
  if (policy.kind == VersionPolicy::Kind::kLatest) {
    const auto count = std::min<size_t>(versions.size(), static_cast<size_t>(policy.latest));
    return std::vector<int64_t>(versions.end() - static_cast<ptrdiff_t>(count), versions.end());
  }
  std::vector<int64_t> wanted;
  for (const int64_t version : policy.specific) {
    if (std::find(versions.begin(), versions.end(), version) != versions.end())
      wanted.push_back(version);
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (wanted.empty())
    return absl::NotFoundError("none of the versions that version_policy names is there");
  return wanted;
}

absl::StatusOr<std::string> ConfigText(const std::string& model_folder) {
  constexpr uintmax_t kMostBytes = 1 << 20;
  const fs::path path = fs::path(model_folder) / "config.yaml";
  std::error_code error;
  if (!fs::exists(path, error)) return std::string();
  if (fs::file_size(path, error) > kMostBytes || error) {
    return absl::InvalidArgumentError("config.yaml is not a file of at most 1 MiB");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return absl::InvalidArgumentError("config.yaml cannot be read");
  return text;
}

absl::StatusOr<std::string> ModelPath(const std::string& version_folder, const std::string& file) {
  std::error_code error;
  if (!file.empty()) {
    const fs::path path = fs::path(version_folder) / file;
    if (!fs::exists(path, error)) return absl::NotFoundError(StrCat("there is no '", file, "'"));
    return path.string();
  }
  std::vector<fs::path> found;
  for (const fs::path& path : EntriesOf(version_folder, error)) {
    if (!path.filename().string().starts_with("model")) continue;
    if (IsFolder(path) ? IsSavedModel(path) : IsModelFile(path)) found.push_back(path);
  }
  if (found.empty() && IsSavedModel(version_folder)) return version_folder;
  if (found.empty()) {
    return absl::NotFoundError(
        "there is no model: a SavedModel, or a file or folder called model with .pb, .pbtxt, "
        ".onnx, .tflite or .oncilla");
  }
  if (found.size() > 1) {
    return absl::InvalidArgumentError(StrCat("there are several models: ",
                                             absl::StrJoin(found, ", ",
                                                           [](std::string* out, const fs::path& p) {
                                                             out->append(p.filename().string());
                                                           }),
                                             " (file in config.yaml chooses one)"));
  }
  return found[0].string();
}

std::string FilesOf(const std::string& folder) {
  constexpr int kMostFiles = 10000, kMostDepth = 8;
  std::error_code error;
  std::vector<std::string> lines;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it.depth() >= kMostDepth) it.disable_recursion_pending();
    std::error_code gone;
    if (it->is_directory(gone)) continue;
    const auto size = it->file_size(gone);
    const auto time = it->last_write_time(gone).time_since_epoch().count();
    lines.push_back(StrCat(it->path().lexically_relative(folder).string(), " ", size, " ", time));
    if (lines.size() >= kMostFiles) break;
  }
  std::sort(lines.begin(), lines.end());
  return absl::StrJoin(lines, "\n");
}

}  // namespace oncilla::server
