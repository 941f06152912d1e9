// Oncilla's own model file: modules in the canonical IR, ready to be compiled, and their weights.
//
// Layout: a header of 64 bytes; the graph part, a protobuf message (messages.h); zeros up to a
// page; the weights, each constant once and aligned to 64 bytes. The graph part's checksum is
// verified whenever a file is opened, a constant's when it is imported, and all of them by
// VerifyWeights. Opening imports nothing: constants are views into the mapped file.
// It is not a compiled plan: it contains no kernels and runs on any device.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/file.h"
#include "engine/import/model_source.h"

namespace oncilla {

inline constexpr uint32_t kContainerVersion = 1;

struct ContainerContents {
  struct Entry {
    Signature signature;
    Module module;  // its inputs and outputs have the signature's names
  };
  std::string source_format;
  std::vector<Entry> entries;
  // For each variable or table without an initial value in its module: the module that computes
  // one.
  std::vector<std::pair<std::string, Module>> initialisers;
  // Nodes of the source that can be run for their effects, by name; their modules have no outputs.
  std::vector<std::pair<std::string, Module>> targets = {};
};

// Writes the file atomically. Unimplemented for constants that are lists.
Status WriteContainer(const std::string& path, const ContainerContents& contents);

bool LooksLikeContainer(std::string_view bytes);

// Imports return the signature's module, or the part of it that other feeds and fetches need, or
// the effects of one target alone.
// DataLoss for a damaged file, Unimplemented for a version or an op that this engine does not
// support.
Result<std::unique_ptr<ModelSource>> OpenContainer(std::shared_ptr<const MappedFile> file);

// Compares every constant's checksum. DataLoss names the first that differs.
Status VerifyWeights(const std::shared_ptr<const MappedFile>& file);

}  // namespace oncilla
