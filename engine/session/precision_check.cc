// Runs the model twice, in f32 and in reduced precision, and compares the results.
#include "engine/session/precision_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/base/decimal.h"

namespace oncilla {
namespace {

// The index of the largest number in a row, ignoring NaN.
size_t LargestAt(std::span<const double> row) {
  size_t at = 0;
  for (size_t i = 1; i < row.size(); ++i) {
    if (row[i] > row[at] || std::isnan(row[at])) at = i;
  }
  return at;
}

// The names of float values that nodes compute, in the graph's order. A value made by a pass has
// its node's name, as in TensorFlow.
std::vector<std::string> InnerNames(const CompiledGraph& compiled) {
  std::vector<std::string> names;
  for (const Node& node : compiled.graph.nodes()) {
    for (ValueId id : node.outputs) {
      const Value& value = compiled.graph.value(id);
      std::string name = value.name.empty() ? StrCat(node.name, ":", value.output) : value.name;
      const auto& outputs = compiled.graph.outputs();
      const bool fetched = std::any_of(outputs.begin(), outputs.end(), [&](const NamedValue& o) {
        return o.name == name || o.value == id;
      });
      if (!IsFloat(value.fact.dtype) || fetched ||
          std::find(names.begin(), names.end(), name) != names.end()) {
        continue;
      }
      names.push_back(std::move(name));
    }
  }
  return names;
}

std::string Row(std::string_view name, const std::string (&cells)[5]) {
  char line[160];
  std::snprintf(line, sizeof(line), "  %11s %11s %11s %10s %8s  ", cells[0].c_str(),
                cells[1].c_str(), cells[2].c_str(), cells[3].c_str(), cells[4].c_str());
  return StrCat(line, name, "\n");
}

std::string Number(double v) { return GeneralText(v, 4); }

std::string Row(const NumberErrors& e) {
  std::string last = e.top1 < 0 ? "-" : Number(100 * e.top1) + " %";
  return Row(StrCat(e.name, e.others > 0 ? StrCat(" (", e.others, " others differ)") : ""),
             {Number(e.largest), Number(e.max_error), Number(e.relative()),
              e.overflowed == 0 ? "-" : StrCat(e.overflowed), std::move(last)});
}

}  // namespace

Result<NumberErrors> CompareNumbers(const std::string& name, const Tensor& reference,
                                    const Tensor& tensor) {
  NumberErrors errors;
  errors.name = name;
  if (reference.desc() != tensor.desc()) {
    return InvalidArgument("'", name, "' is ", tensor.desc(), ", the reference ", reference.desc());
  }
  if (!IsFloat(reference.dtype())) {
    if (reference.dtype() == DType::kString) {
      for (size_t i = 0; i < reference.strings().size(); ++i) {
        errors.others += reference.strings()[i] != tensor.strings()[i];
      }
      return errors;
    }
    const auto size = static_cast<size_t>(std::max<int64_t>(1, BytesOf(reference.dtype())));
    for (size_t at = 0; at + size <= reference.bytes().size(); at += size) {
      errors.others += !std::equal(reference.bytes().begin() + static_cast<ptrdiff_t>(at),
                                   reference.bytes().begin() + static_cast<ptrdiff_t>(at + size),
                                   tensor.bytes().begin() + static_cast<ptrdiff_t>(at));
    }
    return errors;
  }
  ONCILLA_ASSIGN(const std::vector<double> expected, ToDoubles(reference));
  ONCILLA_ASSIGN(const std::vector<double> actual, ToDoubles(tensor));
  double squares = 0;
  int64_t compared = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(expected[i])) {
      // An infinity or NaN that became something else counts as overflow.
      const bool same = std::isnan(expected[i]) ? std::isnan(actual[i]) : expected[i] == actual[i];
      errors.overflowed += !same;
      continue;
    }
    errors.largest = std::max(errors.largest, std::abs(expected[i]));
    if (!std::isfinite(actual[i])) {
      ++errors.overflowed;
      continue;
    }
    const double error = std::abs(actual[i] - expected[i]);
    errors.max_error = std::max(errors.max_error, error);
    squares += error * error;
    ++compared;
  }
  if (compared > 0) errors.rms_error = std::sqrt(squares / static_cast<double>(compared));
  const Shape& shape = reference.shape();
  const auto width = static_cast<size_t>(shape.rank() > 0 ? shape.back() : 0);
  if (width >= 2 && !expected.empty()) {
    const size_t rows = expected.size() / width;
    size_t same = 0;
    for (size_t r = 0; r < rows; ++r) {
      same += LargestAt(std::span(expected).subspan(r * width, width)) ==
              LargestAt(std::span(actual).subspan(r * width, width));
    }
    errors.top1 = static_cast<double>(same) / static_cast<double>(rows);
  }
  return errors;
}

Result<PrecisionCheck> CheckPrecision(Model& model, Model& reference, const RunRequest& request,
                                      int most_nodes) {
  PrecisionCheck check;
  const auto compare = [&](const RunRequest& wanted, std::vector<NumberErrors>& into) -> Status {
    ONCILLA_ASSIGN(const RunResult expected, reference.Run(wanted));
    ONCILLA_ASSIGN(const RunResult actual, model.Run(wanted));
    for (size_t i = 0; i < expected.outputs.size(); ++i) {
      ONCILLA_ASSIGN(NumberErrors errors,
                     CompareNumbers(expected.outputs[i].first, expected.outputs[i].second,
                                    actual.outputs[i].second));
      into.push_back(std::move(errors));
    }
    return Status();
  };
  ONCILLA_TRY(compare(request, check.outputs));
  if (most_nodes <= 0) return check;
  std::vector<std::string> feeds;
  for (const auto& [name, tensor] : request.feeds) feeds.push_back(name);
  ONCILLA_ASSIGN(const auto executor,
                 model.Executable({request.signature, feeds, request.fetches, request.targets}));
  const std::vector<std::string> names = InnerNames(executor->compiled());
  const size_t count = std::min(names.size(), static_cast<size_t>(most_nodes));
  for (size_t i = 0; i < count; ++i) {
    RunRequest one = request;
    one.fetches = {names[i * names.size() / count]};
    one.targets.clear();
    // A model refuses feeds that a value does not need, so the feeds that it needs are determined
    // first.
    const auto part = model.Executable({request.signature, {}, one.fetches, {}});
    if (!part.ok()) continue;  // made by a pass, or inside a function
    std::erase_if(one.feeds, [&](const NamedTensor& feed) {
      const auto& inputs = (*part)->compiled().graph.inputs();
      return std::none_of(inputs.begin(), inputs.end(),
                          [&](const NamedValue& input) { return input.name == feed.first; });
    });
    ONCILLA_TRY(compare(one, check.nodes));
  }
  return check;
}

Result<PrecisionCheck> CheckPrecision(const std::shared_ptr<Runtime>& runtime,
                                      const SessionOptions& options, const std::string& path,
                                      const OpenModelOptions& open, RunRequest request,
                                      int most_nodes) {
  if (!options.precision.narrow()) {
    return WithStage(InvalidArgument("there is nothing to compare: the session stores fp32"),
                     Stage::kOptions);
  }
  request.keep.clear();
  request.keep_all = false;
  SessionOptions wide = options;
  wide.precision = {};
  ONCILLA_ASSIGN(const auto session, Session::Create(runtime, options));
  ONCILLA_ASSIGN(const auto reference_session, Session::Create(runtime, wide));
  ONCILLA_ASSIGN(const auto model, session->Load(path, open));
  ONCILLA_ASSIGN(const auto reference, reference_session->Load(path, open));
  auto check = CheckPrecision(*model, *reference, request, most_nodes);
  session->Close();
  reference_session->Close();
  return check;
}

std::string Print(const PrecisionCheck& check) {
  const std::string kHead[5] = {"largest", "max error", "relative", "overflow", "top-1"};
  std::string text = "precision, against fp32\n" + Row("output", kHead);
  for (const NumberErrors& errors : check.outputs) text += Row(errors);
  if (check.nodes.empty()) return text;
  text += Row("value inside, in the graph's order", kHead);
  for (const NumberErrors& errors : check.nodes) text += Row(errors);
  return text;
}

}  // namespace oncilla
