// Matches feeds with the arguments of several traces.
#include "engine/import/tf/saved_choice.h"

#include <algorithm>

#include "engine/base/format.h"
#include "engine/ops/rules.h"

namespace oncilla {
namespace {

const TensorInfo* Find(const std::vector<TensorInfo>& list, const std::string& name) {
  const auto at = std::ranges::find(list, name, &TensorInfo::name);
  return at == list.end() ? nullptr : &*at;
}

void Join(std::vector<TensorInfo>& all, const TensorInfo& info) {
  for (TensorInfo& known : all) {
    if (known.name != info.name) continue;
    if (known.dtype != info.dtype) known.dtype = DType::kInvalid;
    known.shape = CommonShape(known.shape, info.shape);
    return;
  }
  all.push_back(info);
  all.back().source.clear();  // specific to one trace
}

bool Fits(const TensorInfo& argument, const Fact& fed) {
  if (fed.absent()) return true;
  return fed.kind == ValueKind::kTensor && fed.dtype == argument.dtype &&
         MergeShapes(argument.shape, fed.shape).ok();
}

bool Fits(const Signature& trace, const ImportRequest& asked) {
  if (!asked.feeds.empty() && asked.feeds.size() != trace.inputs.size()) return false;
  for (size_t i = 0; i < asked.feeds.size(); ++i) {
    const TensorInfo* argument = Find(trace.inputs, asked.feeds[i]);
    if (argument == nullptr) return false;
    if (i < asked.fed.size() && !Fits(*argument, asked.fed[i])) return false;
  }
  return true;
}

std::string Describe(const SavedTrace& trace) {
  std::string text;
  for (const TensorInfo& info : trace.signature.inputs) {
    text += StrCat(text.empty() ? "" : ", ", info.name, " ", TypeText(info));
  }
  if (!trace.literals.empty()) text += StrCat(text.empty() ? "" : "; ", trace.literals);
  return StrCat("'", trace.signature.key, "' (", text, ")");
}

}  // namespace

Signature CommonSignature(const std::string& key, std::span<const SavedTrace> traces) {
  Signature common;
  common.key = key;
  for (const SavedTrace& trace : traces) {
    for (const TensorInfo& info : trace.signature.inputs) Join(common.inputs, info);
    for (const TensorInfo& info : trace.signature.outputs) Join(common.outputs, info);
  }
  return common;
}

Result<const Signature*> ChooseTrace(const std::string& key, std::span<const SavedTrace> traces,
                                     const ImportRequest& asked) {
  std::vector<const SavedTrace*> fitting;
  for (const SavedTrace& trace : traces) {
    if (Fits(trace.signature, asked)) fitting.push_back(&trace);
  }
  // If only some traces have the fetched outputs, the choice is among these.
  std::vector<const SavedTrace*> giving;
  for (const SavedTrace* trace : fitting) {
    const auto gives = [&](const std::string& name) {
      return Find(trace->signature.outputs, name) != nullptr;
    };
    if (std::ranges::all_of(asked.fetches, gives)) giving.push_back(trace);
  }
  if (!giving.empty()) fitting = std::move(giving);
  if (fitting.size() == 1) return &fitting[0]->signature;
  const bool none = fitting.empty();
  std::string list;
  for (const SavedTrace& trace : traces) {
    const bool shown = none || std::ranges::find(fitting, &trace) != fitting.end();
    if (shown) list += StrCat(list.empty() ? "" : ", ", Describe(trace));
  }
  const std::string what =
      StrCat("function '", key, "' was saved for ", traces.size(), " kinds of arguments; ");
  if (none) {
    return WithStage(InvalidArgument(what, "none of them accepts the feeds: ", list),
                     Stage::kOptions);
  }
  const std::string several =
      StrCat(what, fitting.size() == traces.size() ? "" : StrCat(fitting.size(), " of them fit; "),
             "name one of them: ", list);
  const bool all_known = !asked.fed.empty() && std::ranges::all_of(asked.fed, [](const Fact& fact) {
    return fact.absent() || fact.shape.known();
  });
  if (!all_known && !asked.feeds.empty()) return Unsupported(several);
  return WithStage(InvalidArgument(several), Stage::kOptions);
}

}  // namespace oncilla
