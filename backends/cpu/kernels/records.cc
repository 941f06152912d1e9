// Records in strings to tensors: host functions.
#include "engine/ops/data/records.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "backends/cpu/algorithms/feature_batch.h"
#include "backends/cpu/algorithms/messages.h"
#include "backends/cpu/algorithms/sequences.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/text/number_text.h"
#include "backends/cpu/text/strings.h"
#include "engine/records/csv.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;

Tensors ParseExamples(const ParseExamplesAttrs& attrs, const NodeView&,
                      std::span<const Tensor> in) {
  std::vector<Example> examples;
  for (const std::string& text : in[0].strings()) {
    auto example = ReadExample(text);
    if (!example.ok()) return In(example.status(), StrCat("example ", examples.size()));
    examples.push_back(*std::move(example));
  }
  return Batch(std::move(examples), in[0].shape().rank() == 0).Parse(attrs, in.subspan(1));
}

Tensors DecodeCsv(const DecodeCsvAttrs& attrs, const NodeView& node, std::span<const Tensor> in) {
  const Shape& shape = in[0].shape();
  const size_t columns = in.size() - 1;
  std::vector<std::vector<std::string>> fields(columns);
  size_t row = 0;
  for (const std::string& record : in[0].strings()) {
    auto split = SplitCsv(record, attrs.separator[0], attrs.quotes);
    const std::string where = StrCat("record ", row++);
    if (!split.ok()) return In(split.status(), where);
    const bool all = attrs.columns.empty();
    const size_t need = all ? columns : static_cast<size_t>(attrs.columns.back()) + 1;
    if (all ? split->size() != need : split->size() < need) {
      return In(InvalidArgument("Expect ", need, " fields but have ", split->size()), where);
    }
    for (size_t c = 0; c < columns; ++c) {
      fields[c].push_back(std::move((*split)[all ? c : static_cast<size_t>(attrs.columns[c])]));
    }
  }
  std::vector<Tensor> out;
  for (size_t c = 0; c < columns; ++c) {
    const Tensor& standard = in[c + 1];
    const DType dtype = node.inputs[c + 1].dtype;
    std::vector<std::string>& texts = fields[c];
    Status status;
    auto absent = [&](size_t i) {
      const bool is = texts[i].empty() || texts[i] == attrs.missing;
      if (is && standard.elements() == 0 && status.ok()) {
        status = InvalidArgument("Field ", c, " is required but missing in record ", i, "!");
      }
      return is;
    };
    if (dtype == DType::kString) {
      for (size_t i = 0; i < texts.size() && status.ok(); ++i) {
        if (absent(i) && status.ok()) texts[i] = standard.strings()[0];
      }
      ONCILLA_TRY(status);
      out.push_back(Tensor::Strings(shape, std::move(texts)));
      continue;
    }
    ONCILLA_ASSIGN(Tensor column, Tensor::Allocate({dtype, shape}));
    DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
      if constexpr (!std::is_same_v<T, bool>) {
        const auto y = column.MutableAs<T>();
        for (size_t i = 0; i < texts.size() && status.ok(); ++i) {
          if (absent(i)) {
            if (status.ok()) y[i] = standard.As<T>()[0];
          } else if (!ParseNumber(texts[i], y[i])) {
            status = InvalidArgument("Field ", c, " in record ", i, " is not a valid ", dtype, ": ",
                                     texts[i].substr(0, 60));
          }
        }
      }
    });
    ONCILLA_TRY(status);
    out.push_back(std::move(column));
  }
  return out;
}

Tensors DecodeRaw(const DecodeRawAttrs& attrs, const NodeView& node, std::span<const Tensor> in) {
  const std::vector<std::string>& texts = in[0].strings();
  const auto width = static_cast<size_t>(BytesOf(attrs.to));
  size_t length = texts.empty() ? 0 : texts[0].size();
  const bool fixed = node.has_input(1);
  if (fixed) {
    ONCILLA_ASSIGN(const std::vector<int64_t> given, NeedInts(node.inputs[1], "length"));
    length = static_cast<size_t>(given[0]);
  } else {
    for (const std::string& text : texts) {
      if (text.size() == length) continue;
      return InvalidArgument(
          "DecodeRaw requires input strings to all be the same size, but "
          "elements of ",
          length, " and ", text.size(), " bytes are there");
    }
    if (length % width != 0) {
      return InvalidArgument("Input to DecodeRaw has length ", length,
                             " that is not a multiple of ", width, ", the size of ", attrs.to);
    }
  }
  Shape shape = in[0].shape();
  shape.push_back(static_cast<int64_t>(length / width));
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({attrs.to, shape}));
  std::byte* to = out.mutable_bytes().data();
  static_assert(std::endian::native == std::endian::little);
  for (const std::string& text : texts) {
    std::memcpy(to, text.data(), std::min(length, text.size()));
    if (!attrs.little_endian && width > 1) {
      for (size_t i = 0; i < length; i += width) std::reverse(to + i, to + i + width);
    }
    to += length;
  }
  if (attrs.to == DType::kBool) {
    for (std::byte& b : out.mutable_bytes()) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  return std::vector<Tensor>{std::move(out)};
}

Tensors PackBytes(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  const Shape shape = in[0].shape();
  const Shape outer(shape.begin(), shape.end() - 1);
  const auto bytes = in[0].As<uint8_t>();
  const auto size = static_cast<size_t>(shape.back());
  std::vector<std::string> text;
  for (int64_t i = 0; i < outer.Product(0, outer.rank()); ++i) {
    const auto part = bytes.subspan(static_cast<size_t>(i) * size, size);
    text.emplace_back(part.begin(), part.end());
  }
  return std::vector<Tensor>{Tensor::Strings(outer, std::move(text))};
}

const KernelRow kRows[] = {
    HostRow<ParseExamples>("ParseExamples", kStrings),
    HostRow<ParseSequences>("ParseSequences", kStrings),
    HostRow<DecodeCsv>("DecodeCsv", kStrings),
    HostRow<DecodeRaw>("DecodeRaw", kStrings),
    HostRow<PackBytes>("PackBytes", Set(DType::kU8)),
    HostRow<ParseTensor>("ParseTensor", kStrings),
    HostRow<SerializeTensor>("SerializeTensor", kAll),
    HostRow<Decompress>("Decompress", kStrings),
    HostRow<Fingerprint>("Fingerprint", kAll),
};

}  // namespace

std::span<const KernelRow> RecordKernels() { return kRows; }

}  // namespace oncilla::cpu
