// The folder of models on disk: MODEL/VERSION/model.., MODEL/config.yaml.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/model/config.h"

namespace oncilla::server {

// The names of the folders that can be models, sorted. InvalidArgument if the folder cannot be
// read.
absl::StatusOr<std::vector<std::string>> ModelsOf(const std::string& repository);
// The versions of a model: its folders that are called by a number above 0, in ascending order.
std::vector<int64_t> VersionsOf(const std::string& model_folder);
// The versions that the policy selects. NotFound if there are none.
absl::StatusOr<std::vector<int64_t>> Wanted(const std::vector<int64_t>& versions,
                                            const VersionPolicy& policy);
// The text of config.yaml, empty where there is none. At most 1 MiB.
absl::StatusOr<std::string> ConfigText(const std::string& model_folder);
// The path of the model in a version's folder: `file`, or the one entry called model* that is a
// model's file or a SavedModel, or the folder itself where it is a SavedModel.
absl::StatusOr<std::string> ModelPath(const std::string& version_folder, const std::string& file);
// Names, sizes and times of all files below a folder, as text that changes when one of them does.
std::string FilesOf(const std::string& folder);

}  // namespace oncilla::server
