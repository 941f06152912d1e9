// Makes feeds for the comparison of source and result, and compares their outputs.
#include "tools/oncilla/commands/convert_check.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tools/oncilla/files/random_tensor.h"

namespace oncilla::tool {
namespace {

// Sizes to try for open axes other than the first: models of sequences take most sizes, models of
// pictures need some.
constexpr int64_t kOpenSizes[] = {32, 224, 128, 16, 8, 4, 2, 1};

// The signature with open sizes filled in: 1 for the first axis, `open` for all others.
Signature WithSizes(const Signature& signature, int64_t open) {
  Signature out = signature;
  for (TensorInfo& info : out.inputs) {
    if (!info.shape.ranked()) continue;
    for (int d = 0; d < info.shape.rank(); ++d) {
      if (!info.shape[d].known()) info.shape[d] = Dim(d == 0 ? 1 : open);
    }
  }
  return out;
}

bool HasOpenSizes(const Signature& signature) {
  for (const TensorInfo& info : signature.inputs) {
    for (int d = 1; d < info.shape.rank(); ++d) {
      if (!info.shape[d].known()) return true;
    }
  }
  return false;
}

// Reads the given files, and makes random values for the other inputs, with `open` for open sizes.
Result<std::vector<NamedTensor>> MakeFeeds(const Signature& signature, int64_t open,
                                           const InputFlags& flags) {
  InputFlags files = flags;
  files.random = false;
  ONCILLA_ASSIGN(const auto given, GivenInputs(signature, files));
  ONCILLA_ASSIGN(Inputs inputs, GatherInputs(signature, given, files));
  std::vector<NamedTensor> feeds = std::move(inputs.feeds);
  const Signature sized = WithSizes(signature, open);
  const std::set<std::string_view> known(given.begin(), given.end());
  for (const TensorInfo& info : sized.inputs) {
    if (known.count(info.name) > 0) continue;
    if (info.dtype == DType::kInvalid) {
      return InvalidArgument("the model does not say the type of input '", info.name, "'");
    }
    if (info.kind != TensorInfo::Kind::kTensor) {
      return InvalidArgument("input '", info.name, "' is a ", TypeText(info),
                             ", for which there are no random values");
    }
    ONCILLA_ASSIGN(const Shape shape, SettledShape(info, flags, sized));
    if (info.dtype == DType::kString) {
      const auto count = static_cast<size_t>(std::min<int64_t>(shape.elements(), 1 << 20));
      std::vector<std::string> words(count);
      for (size_t i = 0; i < count; ++i) words[i] = StrCat("word ", i);
      feeds.emplace_back(info.name, Tensor::Strings(shape, std::move(words)));
      continue;
    }
    ONCILLA_ASSIGN(Tensor tensor, RandomTensor(flags.seed, info.name, {info.dtype, shape}));
    feeds.emplace_back(info.name, std::move(tensor));
  }
  return feeds;
}

std::string Listed(const std::vector<NamedTensor>& feeds) {
  std::string out;
  for (const auto& [name, tensor] : feeds) {
    out += StrCat(out.empty() ? "" : ", ", name, " ", tensor.desc());
  }
  return out;
}

// The share of values other than floats that may differ: a rank or a count may change if 16-bit
// weights change the order of two close scores.
double AllowedShare(DType weights) { return weights == DType::kF32 ? 0 : 0.05; }

}  // namespace

bool CheckResult::fits() const {
  return std::all_of(outputs.begin(), outputs.end(), [](const auto& o) { return o.fits; });
}

double ToleranceOf(DType weights) {
  if (weights == DType::kF16) return 2e-2;
  if (weights == DType::kBF16) return 1e-1;
  return 1e-5;
}

OutputError Compare(const std::string& name, const Tensor& expected, const Tensor& actual,
                    const CheckOptions& options) {
  OutputError out;
  out.name = name;
  if (expected.is_list() || actual.is_list() || expected.desc() != actual.desc()) {
    out.kind = OutputError::Kind::kOtherType;
    out.fits = false;
    out.error = INFINITY;
    return out;
  }
  if (!IsFloat(expected.dtype())) out.kind = OutputError::Kind::kShare;
  if (options.random_numbers) return out;
  const int64_t count = expected.elements();
  if (!IsFloat(expected.dtype())) {
    int64_t different = 0;
    if (expected.dtype() == DType::kString) {
      for (size_t i = 0; i < expected.strings().size(); ++i) {
        different += expected.strings()[i] != actual.strings()[i];
      }
    } else {
      // Packed elements are compared byte by byte.
      const auto width = static_cast<size_t>(std::max<int64_t>(1, BytesOf(expected.dtype())));
      for (size_t i = 0; i < expected.bytes().size() / width; ++i) {
        const auto a = expected.bytes().subspan(i * width, width);
        const auto b = actual.bytes().subspan(i * width, width);
        different += !std::equal(a.begin(), a.end(), b.begin());
      }
    }
    out.error = count == 0 ? 0 : static_cast<double>(different) / static_cast<double>(count);
    out.fits = out.error <= AllowedShare(options.weights);
    return out;
  }
  const auto a = ToDoubles(expected), b = ToDoubles(actual);
  if (!a.ok() || !b.ok()) {
    out.fits = false;
    out.error = INFINITY;
    return out;
  }
  for (size_t i = 0; i < a->size(); ++i) {
    const double x = (*a)[i], y = (*b)[i];
    if (std::isfinite(x)) out.largest = std::max(out.largest, std::abs(x));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double difference = std::abs(x - y);
    out.error = std::isnan(difference) ? INFINITY : std::max(out.error, difference);
  }
  out.fits = out.error <= ToleranceOf(options.weights) * std::max(out.largest, 1e-3);
  return out;
}

std::string Describe(const OutputError& output) {
  switch (output.kind) {
    case OutputError::Kind::kDifference:
      return StrCat("max error ", output.error, " (largest value ", output.largest, ")");
    case OutputError::Kind::kShare:
      if (output.error == 0) return "no value differs";
      return StrCat(output.error * 100, " % of the values differ");
    case OutputError::Kind::kOtherType:
      break;
  }
  return "another type or shape";
}

std::string DescribeMisfit(const OutputError& output, DType weights) {
  switch (output.kind) {
    case OutputError::Kind::kDifference:
      return StrCat("differs by ", output.error, "; ", ToleranceOf(weights),
                    " of its largest value is allowed");
    case OutputError::Kind::kShare:
      return StrCat("differs in ", output.error * 100, " % of its values; ",
                    AllowedShare(weights) * 100, " % are allowed");
    case OutputError::Kind::kOtherType:
      break;
  }
  return "has another type or shape";
}

Result<CheckResult> Check(Model& source, Model& result, const Signature& signature,
                          const std::string& source_signature, const CheckOptions& options) {
  std::vector<std::string> fetches;
  for (const TensorInfo& info : signature.outputs) fetches.push_back(info.name);
  Status refused;
  for (const int64_t open : kOpenSizes) {
    auto feeds = MakeFeeds(signature, open, options.input);
    if (!feeds.ok()) return feeds.status();
    RunRequest request;
    request.signature = source_signature;
    request.feeds = *feeds;
    request.fetches = fetches;
    auto expected = source.Run(request);
    if (!expected.ok()) {
      if (refused.ok()) refused = In(expected.status(), Listed(*feeds));
      if (!HasOpenSizes(signature)) break;
      continue;
    }
    request.signature = signature.key;
    const auto rename = [](const std::map<std::string, std::string>& renamed, std::string& name) {
      const auto other = renamed.find(name);
      if (other != renamed.end()) name = other->second;
    };
    for (NamedTensor& feed : request.feeds) rename(options.renamed_inputs, feed.first);
    for (std::string& fetch : request.fetches) rename(options.renamed_outputs, fetch);
    auto actual = result.Run(request);
    if (!actual.ok()) return In(actual.status(), "the converted model");
    CheckResult check;
    check.inputs = Listed(*feeds);
    for (size_t i = 0; i < expected->outputs.size(); ++i) {
      check.outputs.push_back(Compare(expected->outputs[i].first, expected->outputs[i].second,
                                      actual->outputs[i].second, options));
    }
    return check;
  }
  return In(std::move(refused),
            "the source fails on random inputs; give --input NAME=FILE, or --no-verify");
}

}  // namespace oncilla::tool
