// What the lists of fields cannot express: which form a configuration has, and which options
// contradict each other.
#include "engine/session/config.h"

#include <algorithm>

#include "engine/session/config_tensorflow.h"
#include "engine/session/device_memory.h"
#include "engine/session/fallback.h"

namespace oncilla {
namespace {

Status CheckCounts(const SessionOptions& options) {
  for (const auto& [type, count] : options.device_count) {
    if (type != "CPU" && type != "GPU") {
      return InvalidArgument("device_count has the type '", type, "'; there are CPU and GPU");
    }
    if (type == "CPU" && count == 0) {
      return InvalidArgument("device_count of CPU is 0: it always takes part");
    }
  }
  return {};
}

Status CheckPrecision(const PrecisionOptions& precision) {
  for (const auto* list : {&precision.allow, &precision.deny}) {
    for (const std::string& entry : *list) {
      if (!entry.empty() && entry != "op:") continue;
      return InvalidArgument("precision.", list == &precision.allow ? "allow" : "deny",
                             " has an entry that names nothing");
    }
  }
  if (!precision.narrow() && !(precision.allow.empty() && precision.deny.empty())) {
    return InvalidArgument(
        "precision has lists, but its storage is fp32: they would have no effect");
  }
  return {};
}

bool IsText(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\r' || c == '\t';
  });
}

Status Read(std::string_view bytes, SessionOptions& options, std::vector<std::string>& notes) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  if (bytes.size() > kMostBytes) return InvalidArgument("has ", bytes.size(), " bytes");
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && bytes[first] == '{';
  TextTree tree;
  // A serialized ConfigProto contains at least one byte that is not text: the tag of a field.
  const bool text = json || IsText(bytes);
  if (text) {
    ONCILLA_ASSIGN(tree, ReadTextTree(bytes, json ? TextForm::kJson : TextForm::kText));
  } else {
    auto message = ReadConfigProto(bytes);
    if (!message.ok()) {
      return InvalidArgument("is neither JSON nor text nor a serialized ConfigProto");
    }
    tree = *std::move(message);
  }
  if (!text || IsConfigProto(tree)) {
    ONCILLA_TRY(ApplyConfigProto(tree, options, notes));
  } else {
    ONCILLA_TRY(ReadOptions(tree, options));
    // This is what happens after the last step anyway.
    std::erase(options.on_out_of_memory.steps, OutOfMemoryStep::kFail);
  }
  ONCILLA_TRY(CheckPrecision(options.precision));
  ONCILLA_TRY(CheckFallback(options.fallback));
  ONCILLA_TRY(AllMemoryOptions(options.device_memory, options.memory_limit_bytes,
                               options.memory_limit_fraction)
                  .status());
  return CheckCounts(options);
}

}  // namespace

Status ReadSessionConfig(std::string_view bytes, SessionOptions& options,
                         std::vector<std::string>& notes) {
  SessionOptions changed = options;
  const Status status = Read(bytes, changed, notes);
  if (!status.ok()) return WithStage(In(status, "the configuration"), Stage::kOptions);
  options = std::move(changed);
  return {};
}

std::string PrintSessionConfig(const SessionOptions& options, TextForm form) {
  SessionOptions shown = options;
  if (shown.on_out_of_memory.steps.empty()) {
    shown.on_out_of_memory.steps = {OutOfMemoryStep::kFail};
  }
  return PrintTextTree(PrintOptions(shown), form);
}

}  // namespace oncilla
