// ModelFiles: the files of a load request, in a private folder that is removed with the last
// reference.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/byte_budget.h"

namespace oncilla::server {

struct ModelFile {
  std::string path;  // "1/model.onnx"
  std::string bytes;
};

// What a load request brings besides the model's name.
struct LoadRequest {
  std::optional<std::string> config;  // in the protocol's words
  std::vector<ModelFile> files;       // which stand instead of the repository's
  ByteHold held;                      // of the files
};

class ModelFiles {
 public:
  // InvalidArgument with the path for a file that is not within a version: VERSION/NAME, or deeper.
  static absl::Status Check(const std::vector<ModelFile>& files);
  // Writes files that were checked. ResourceExhausted if `budget`, which counts bytes on disk, or
  // the disk has no room for them.
  static absl::StatusOr<std::shared_ptr<const ModelFiles>> Write(
      const std::vector<ModelFile>& files, ByteBudget* budget);
  ~ModelFiles();

  const std::string& folder() const { return folder_; }

 private:
  explicit ModelFiles(ByteBudget* budget) : held_(budget) {}

  std::string folder_;
  ByteHold held_;
};

}  // namespace oncilla::server
