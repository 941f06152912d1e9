// Choices: how measured times influence recipes.
//
// A recipe that can be launched in several ways with the same result has a generic choice, by the
// costs and thresholds of tuning.cc, and lists the others, all of which are in the VARIANT lines of
// its kernel. Capabilities may have a table of measurements (backends/opencl/tuning), by names of
// layer classes and of choices. An entry is used only if it names one of the choices that the
// recipe lists for this device at these sizes: a table can make a layer slow, but never wrong.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "backends/opencl/recipes/recipe.h"

namespace oncilla::opencl {

struct TunedChoice {
  std::string choice;
  std::string driver = {};  // the driver's version, if it is not the device's
};

// The measured choices of one device. Immutable once a device uses it.
class TunedTable {
 public:
  void Set(std::string layer, TunedChoice choice) {
    choices_.insert_or_assign(std::move(layer), std::move(choice));
  }
  const TunedChoice* Find(std::string_view layer) const {
    const auto found = choices_.find(layer);
    return found == choices_.end() ? nullptr : &found->second;
  }
  const std::map<std::string, TunedChoice, std::less<>>& choices() const { return choices_; }

  // Whether recipes list all their choices (Decision::choices), for measuring them.
  bool lists = false;

 private:
  std::map<std::string, TunedChoice, std::less<>> choices_;
};

// "product 3136x64x576 f32 bias relu": a kernel's family, its sizes, the first input's type and the
// epilogue. `node` is MatMul, Conv or another op with their optional operands.
std::string LayerName(std::string_view family, std::string_view sizes, const NodeView& node,
                      std::string_view activation);

// The generic choice, or another one that the device's table names. `list` returns all choices,
// each of which has a name() and may represent several equivalent ones.
template <class Choice, class List>
Choice Choose(std::string layer, const Choice& generic, const List& list, const Capabilities& caps,
              Decision& decision) {
  if (caps.tuned == nullptr) return generic;
  decision.layer = std::move(layer);
  decision.choice = generic.name();
  const TunedChoice* entry = caps.tuned->Find(decision.layer);
  if (entry == nullptr && !caps.tuned->lists) return generic;
  Choice taken = generic;
  bool found = false;
  for (const Choice& choice : list()) {
    std::string name = choice.name();
    if (entry != nullptr && !found && name == entry->choice) {
      taken = choice;
      found = true;
    }
    if (caps.tuned->lists) decision.choices.push_back(std::move(name));
  }
  if (entry == nullptr) return taken;
  if (found) {
    decision.tuned = true;
    decision.choice = entry->choice;
    decision.driver = entry->driver;
  } else {
    decision.ignored = entry->choice;
  }
  return taken;
}

}  // namespace oncilla::opencl
