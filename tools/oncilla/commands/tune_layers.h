// The layers that oncilla tune measures: those of a model, or of well-known nets.
#pragma once

#include <string>
#include <vector>

#include "tools/oncilla/commands/work.h"
#include "tools/oncilla/flags.h"
#include "tools/oncilla/inputs.h"

namespace oncilla::tool {

// A node with facts of its own, and how often it occurs.
struct OwnedNode {
  const OpDef* op = nullptr;
  AttrMap attrs;
  Facts inputs, outputs;
  std::string name;
  int count = 1;
  double operations = 0;
};

// Every step of the model's plan on its session's device; fails with the reason if sizes are open
// or depend on data.
Result<std::vector<OwnedNode>> LayersOfModel(const OpenedModel& opened, const InputFlags& flags);

// Convolutions of ResNet-50 and MobileNetV2 for one picture, products of MiniLM and BERT for 128
// words, and of a small decoder for one.
Result<std::vector<OwnedNode>> LayersOfNets();

}  // namespace oncilla::tool
