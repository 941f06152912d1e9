// Field by field, and steps by name.
#include "engine/session/config_memory.h"

#include "engine/base/near_names.h"
#include "engine/session/device_memory.h"

namespace oncilla {
namespace {

constexpr std::pair<OutOfMemoryStep, const char*> kSteps[] = {
    {OutOfMemoryStep::kTrim, "trim"},
    {OutOfMemoryStep::kWait, "wait"},
    {OutOfMemoryStep::kSplit, "split"},
};

}  // namespace

Status ApplyMemoryConfig(const config::proto::SessionConfig& from, SessionOptions& to) {
  for (const auto& [name, given] : from.device_memory()) {
    DeviceMemoryOptions& o = to.device_memory[name];
    if (given.has_limit_bytes()) o.limit_bytes = given.limit_bytes();
    if (given.has_limit_fraction()) o.limit_fraction = given.limit_fraction();
    if (given.has_free_minus_bytes()) o.free_minus_bytes = given.free_minus_bytes();
    if (given.has_preallocate_bytes()) o.preallocate_bytes = given.preallocate_bytes();
    if (given.has_preallocate_fraction()) o.preallocate_fraction = given.preallocate_fraction();
    if (given.has_reserve_bytes()) o.reserve_bytes = given.reserve_bytes();
    if (given.has_fragmentation()) o.fragmentation = given.fragmentation();
  }
  if (from.has_on_out_of_memory()) {
    to.on_out_of_memory.steps.clear();
    for (const std::string& name : from.on_out_of_memory().steps()) {
      if (name == "fail") continue;  // what is behind the last step anyway
      bool known = false;
      std::vector<std::string> names = {"fail"};
      for (const auto& [step, word] : kSteps) {
        names.emplace_back(word);
        if (name != word) continue;
        known = true;
        to.on_out_of_memory.steps.push_back(step);
      }
      if (!known) {
        return WithStage(
            InvalidArgument("the configuration: on_out_of_memory has the step '", name,
                            "'; there are trim, wait, split and fail", DidYouMean(name, names)),
            Stage::kOptions);
      }
    }
    if (from.on_out_of_memory().has_wait_ms()) {
      const int64_t wait = from.on_out_of_memory().wait_ms();
      if (wait < 0 || wait > 86'400'000) {
        return WithStage(InvalidArgument("the configuration: on_out_of_memory.wait_ms is ", wait),
                         Stage::kOptions);
      }
      to.on_out_of_memory.wait = std::chrono::milliseconds(wait);
    }
  }
  if (from.has_auto_split_batch()) to.auto_split_batch = from.auto_split_batch();
  if (from.has_memory_dump()) to.memory_dump = from.memory_dump();
  return In(
      AllMemoryOptions(to.device_memory, to.memory_limit_bytes, to.memory_limit_fraction).status(),
      "the configuration");
}

void PrintMemoryConfig(const SessionOptions& from, config::proto::SessionConfig& to) {
  const DeviceMemoryOptions defaults;
  for (const auto& [name, o] : from.device_memory) {
    auto& out = (*to.mutable_device_memory())[name];
    if (o.limit_bytes != defaults.limit_bytes) out.set_limit_bytes(o.limit_bytes);
    if (o.limit_fraction != defaults.limit_fraction) out.set_limit_fraction(o.limit_fraction);
    if (o.free_minus_bytes >= 0) out.set_free_minus_bytes(o.free_minus_bytes);
    if (o.preallocate_bytes > 0) out.set_preallocate_bytes(o.preallocate_bytes);
    if (o.preallocate_fraction > 0) out.set_preallocate_fraction(o.preallocate_fraction);
    if (o.reserve_bytes > 0) out.set_reserve_bytes(o.reserve_bytes);
    if (o.fragmentation > 0) out.set_fragmentation(o.fragmentation);
  }
  if (from.on_out_of_memory != OutOfMemoryPolicy()) {
    auto& out = *to.mutable_on_out_of_memory();
    for (const OutOfMemoryStep wanted : from.on_out_of_memory.steps) {
      for (const auto& [step, word] : kSteps) {
        if (step == wanted) out.add_steps(word);
      }
    }
    if (from.on_out_of_memory.steps.empty()) out.add_steps("fail");
    if (from.on_out_of_memory.wait != OutOfMemoryPolicy().wait) {
      out.set_wait_ms(from.on_out_of_memory.wait.count());
    }
  }
  if (from.auto_split_batch) to.set_auto_split_batch(true);
  if (!from.memory_dump.empty()) to.set_memory_dump(from.memory_dump);
}

}  // namespace oncilla
