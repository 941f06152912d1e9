// Joining, splitting, counting and matching strings: host functions.

#include "backends/cpu/text/strings.h"

#include <algorithm>
#include <array>
#include <map>

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/indices.h"
#include "backends/cpu/text/patterns.h"
#include "engine/ops/broadcast.h"
#include "engine/ops/data/strings.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

Tensors JoinStrings(const JoinStringsAttrs& attrs, const NodeView& node,
                    std::span<const Tensor> in) {
  const Shape shape = node.outputs[0].desc().shape;
  std::vector<std::string> out(static_cast<size_t>(shape.elements()));
  Growth growth;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool single = in[i].shape().rank() == 0;
    for (size_t k = 0; k < out.size(); ++k) {
      const std::string& part = in[i].strings()[single ? 0 : k];
      ONCILLA_TRY(growth.Add(std::ssize(part) + std::ssize(attrs.separator)));
      if (i > 0) out[k] += attrs.separator;
      out[k] += part;
    }
  }
  growth.Clear();
  return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
}

Tensors ReduceJoin(const ReduceJoinAttrs& attrs, const NodeView& node, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const std::vector<int64_t> listed, NeedInts(node.inputs[1], "axes"));
  const Shape& x = in[0].shape();
  const int rank = x.rank();
  std::vector<int64_t> step(static_cast<size_t>(rank), 1);
  for (int i = rank - 2; i >= 0; --i) {
    step[static_cast<size_t>(i)] = step[static_cast<size_t>(i) + 1] * x[i + 1];
  }
  std::vector<int> axes;
  for (int64_t axis : listed) axes.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
  // Offsets of the joined elements from the first one, in their order: the axis that is listed
  // first runs fastest.
  IntList places = {0};
  WorkLook look;
  for (int axis : axes) {
    IntList next;
    for (int64_t i = 0; i < x[axis]; ++i) {
      ONCILLA_TRY(look.Go(std::ssize(places)));
      for (int64_t p : places) next.push_back(p + i * step[static_cast<size_t>(axis)]);
    }
    places = std::move(next);
  }
  IntList firsts = {0};
  for (int axis = 0; axis < rank; ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    IntList next;
    for (int64_t f : firsts) {
      ONCILLA_TRY(look.Go(x[axis]));
      for (int64_t i = 0; i < x[axis]; ++i) next.push_back(f + i * step[static_cast<size_t>(axis)]);
    }
    firsts = std::move(next);
  }
  std::vector<std::string> out;
  Growth growth;
  for (int64_t first : firsts) {
    std::string joined;
    ONCILLA_TRY(growth.Add(sizeof(std::string)));
    for (size_t i = 0; i < places.size(); ++i) {
      const std::string& part = in[0].strings()[static_cast<size_t>(first + places[i])];
      ONCILLA_TRY(growth.Add(std::ssize(part) + std::ssize(attrs.separator)));
      if (i > 0) joined += attrs.separator;
      joined += part;
    }
    out.push_back(std::move(joined));
  }
  growth.Clear();
  return std::vector<Tensor>{Tensor::Strings(node.outputs[0].desc().shape, std::move(out))};
}

Tensors SegmentJoin(const JoinStringsAttrs& attrs, const NodeView& node,
                    std::span<const Tensor> in) {
  const Shape shape = node.outputs[0].desc().shape;
  ONCILLA_ASSIGN(const std::vector<int64_t> ids, ToInt64s(in[1]));
  const auto width = static_cast<size_t>(shape.Product(1, shape.rank()));
  std::vector<std::string> out(static_cast<size_t>(shape.elements()));
  std::vector<char> met(static_cast<size_t>(shape[0]), 0);
  Growth growth;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= shape[0]) {
      return InvalidArgument("id ", ids[i], " is out of range for ", shape[0], " segments");
    }
    const auto id = static_cast<size_t>(ids[i]);
    for (size_t k = 0; k < width; ++k) {
      std::string& to = out[id * width + k];
      const std::string& part = in[0].strings()[i * width + k];
      ONCILLA_TRY(growth.Add(std::ssize(part) + std::ssize(attrs.separator)));
      if (met[id] != 0) to += attrs.separator;
      to += part;
    }
    met[id] = 1;
  }
  growth.Clear();
  return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
}

using Parts = HostVector<std::string_view>;

Parts SplitBySet(std::string_view text, std::string_view set, bool skip_empty) {
  Parts out;
  if (set.empty()) {
    for (size_t i = 0; i < text.size(); ++i) out.push_back(text.substr(i, 1));
    return out;
  }
  for (size_t begin = 0;;) {
    const size_t end = text.find_first_of(set, begin);
    const std::string_view part = text.substr(begin, end - begin);
    if (!skip_empty || !part.empty()) out.push_back(part);
    if (end == std::string_view::npos) return out;
    begin = end + 1;
  }
}

Parts SplitByBlanks(std::string_view text, int64_t most) {
  Parts out;
  size_t at = 0;
  auto skip = [&](bool blanks) {
    while (at < text.size() && IsBlank(text[at]) == blanks) ++at;
  };
  skip(true);
  while (at < text.size()) {
    if (most > 0 && std::ssize(out) == most) {
      out.push_back(text.substr(at));
      return out;
    }
    const size_t begin = at;
    skip(false);
    out.push_back(text.substr(begin, at - begin));
    skip(true);
  }
  // After the last split that `most` allows, the rest is an element even when it is empty.
  if (most > 0 && std::ssize(out) == most) out.push_back({});
  return out;
}

Parts SplitByText(std::string_view text, std::string_view separator, int64_t most) {
  Parts out;
  for (;;) {
    const size_t end = most > 0 && std::ssize(out) == most ? text.npos : text.find(separator);
    out.push_back(text.substr(0, end));
    if (end == text.npos) return out;
    text.remove_prefix(end + separator.size());
  }
}

Tensors SplitStrings(const SplitStringsAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  const std::string& separator = in[1].strings()[0];
  IntList places;
  std::vector<std::string> parts;
  Growth growth;
  int64_t row = 0, widest = 0;
  for (const std::string& text : in[0].strings()) {
    Parts found;
    if (attrs.set) {
      if (!text.empty()) found = SplitBySet(text, separator, attrs.skip_empty);
    } else if (attrs.most == 0) {
      found = {text};
    } else if (separator.empty()) {
      found = SplitByBlanks(text, attrs.most);
    } else {
      found = SplitByText(text, separator, attrs.most);
    }
    for (size_t i = 0; i < found.size(); ++i) {
      ONCILLA_TRY(growth.Add(std::ssize(found[i]) + static_cast<int64_t>(sizeof(std::string))));
      places.insert(places.end(), {row, static_cast<int64_t>(i)});
      parts.emplace_back(found[i]);
    }
    widest = std::max(widest, static_cast<int64_t>(found.size()));
    ++row;
  }
  const auto count = std::ssize(parts);
  growth.Clear();
  return std::vector<Tensor>{Tensor::Of<int64_t>(DType::kI64, {count, 2}, places),
                             Tensor::Strings({count}, std::move(parts)),
                             Tensor::Int64s(std::vector<int64_t>{row, widest})};
}

bool Continues(char c) { return (c & 0xC0) == 0x80; }  // a byte inside a character

Tensors StringLength(const StringUnitAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  std::vector<int32_t> out;
  for (const std::string& text : in[0].strings()) {
    const auto inside = attrs.characters ? std::count_if(text.begin(), text.end(), Continues) : 0;
    out.push_back(static_cast<int32_t>(std::ssize(text) - inside));
  }
  return std::vector<Tensor>{Tensor::Of<int32_t>(DType::kI32, in[0].shape(), out)};
}

// Moves `at` by `count` characters; false when there are fewer.
bool Forward(std::string_view text, int64_t count, size_t& at) {
  for (; count > 0 && at < text.size(); --count) {
    do ++at;
    while (at < text.size() && Continues(text[at]));
  }
  return count <= 0;
}
bool Back(std::string_view text, int64_t count, size_t& at) {
  for (; count > 0 && at > 0; --count) {
    do --at;
    while (at > 0 && Continues(text[at]));
  }
  return count <= 0;
}

Result<std::string> Cut(const std::string& text, int64_t position, int64_t length,
                        bool characters) {
  const auto size = std::ssize(text);
  const Status beyond = InvalidArgument("position ", position, " is beyond '", text.substr(0, 60),
                                        "' of ", size, " bytes");
  if (!characters) {
    const int64_t at = position < 0 ? position + size : position;
    if (at < 0 || at > size) return beyond;
    return text.substr(static_cast<size_t>(at), static_cast<size_t>(length));
  }
  size_t begin = position < 0 ? text.size() : 0;
  if (position < 0 && position < -size) return beyond;
  if (position < 0 ? !Back(text, -position, begin) : !Forward(text, position, begin)) return beyond;
  size_t end = begin;
  Forward(text, length, end);
  return text.substr(begin, end - begin);
}

// Calls fn(indices) for every element of a broadcast: the index of the element that each operand
// contributes.
template <size_t N, class F>
void ForEachPlace(const Shape& shape, const Shape (&shapes)[N], F&& fn) {
  const BroadcastAxes axes = MergeBroadcast(shape, shapes);
  for (int64_t i = 0; i < axes.elements; ++i) {
    std::array<size_t, N> at = {};
    int64_t rest = i;
    for (int axis = axes.rank - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      for (size_t k = 0; k < N; ++k) {
        at[k] += static_cast<size_t>(rest % axes.sizes[a] * axes.strides[k][a]);
      }
      rest /= axes.sizes[a];
    }
    fn(at);
  }
}

Tensors Substring(const StringUnitAttrs& attrs, const NodeView& node, std::span<const Tensor> in) {
  const Shape shape = node.outputs[0].desc().shape;
  ONCILLA_ASSIGN(const std::vector<int64_t> positions, ToInt64s(in[1]));
  ONCILLA_ASSIGN(const std::vector<int64_t> lengths, ToInt64s(in[2]));
  const Shape shapes[] = {in[0].shape(), in[1].shape(), in[2].shape()};
  std::vector<std::string> out;
  Status status;
  Growth growth;
  ForEachPlace(shape, shapes, [&](const auto& at) {
    if (!status.ok()) return;
    auto part = Cut(in[0].strings()[at[0]], positions[at[1]], lengths[at[2]], attrs.characters);
    status = part.status();
    if (!part.ok()) return;
    status = growth.Add(std::ssize(*part) + static_cast<int64_t>(sizeof(std::string)));
    out.push_back(*std::move(part));
  });
  ONCILLA_TRY(std::move(status));
  growth.Clear();
  return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
}

Tensors EqualStrings(const NoAttrs&, const NodeView& node, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(Tensor same, Tensor::Allocate({DType::kBool, node.outputs[0].desc().shape}));
  const Shape shapes[] = {in[0].shape(), in[1].shape()};
  auto* out = same.MutableAs<bool>().data();
  ForEachPlace(same.shape(), shapes,
               [&](const auto& at) { *out++ = in[0].strings()[at[0]] == in[1].strings()[at[1]]; });
  return std::vector<Tensor>{std::move(same)};
}

Tensors ChooseStrings(const NoAttrs&, const NodeView& node, std::span<const Tensor> in) {
  const Shape shape = node.outputs[0].desc().shape;
  const Shape shapes[] = {in[0].shape(), in[1].shape(), in[2].shape()};
  std::vector<std::string> out;
  Status status;
  Growth growth;
  ForEachPlace(shape, shapes, [&](const auto& at) {
    if (!status.ok()) return;
    const std::string& chosen =
        in[0].bytes()[at[0]] != std::byte{0} ? in[1].strings()[at[1]] : in[2].strings()[at[2]];
    status = growth.Add(std::ssize(chosen) + static_cast<int64_t>(sizeof(std::string)));
    if (status.ok()) out.push_back(chosen);
  });
  ONCILLA_TRY(std::move(status));
  growth.Clear();
  return std::vector<Tensor>{Tensor::Strings(shape, std::move(out))};
}

Tensors StripStrings(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  return MapStrings(in[0], [](const std::string& text) -> Result<std::string> {
    const auto begin = std::find_if_not(text.begin(), text.end(), IsBlank);
    const auto end = std::find_if_not(text.rbegin(), std::make_reverse_iterator(begin), IsBlank);
    return std::string(begin, end.base());
  });
}

// The number of bytes of the first character of `text`; 1 where it is not valid UTF-8.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t size = lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 1;
  if (size > text.size()) return 1;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 1;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool beyond = lead == 0xF4 && byte(1) > 0x8F;
  return overlong || beyond ? 1 : size;
}

// The number of groups that a rewrite refers to, the whole match included. Finding fewer groups is
// faster.
size_t GroupsIn(std::string_view rewrite) {
  size_t most = 0;
  for (size_t i = 0; i + 1 < rewrite.size(); ++i) {
    if (rewrite[i] != '\\') continue;
    const char next = rewrite[++i];
    if (next >= '0' && next <= '9') most = std::max(most, static_cast<size_t>(next - '0'));
  }
  return most + 1;
}

// Appends a rewrite: "\\3" stands for what the third group holds, "\\\\" for a backslash. Checked
// by Pattern::CheckRewrite.
Status AppendRewrite(std::string_view rewrite, std::span<const std::string_view> groups,
                     Growth& growth, std::string& out) {
  for (size_t i = 0; i < rewrite.size(); ++i) {
    std::string_view piece = rewrite.substr(i, 1);
    if (rewrite[i] == '\\' && i + 1 < rewrite.size()) {
      const char next = rewrite[++i];
      piece = next >= '0' && next <= '9' ? groups[static_cast<size_t>(next - '0')]
                                         : rewrite.substr(i, 1);
    }
    ONCILLA_TRY(growth.Add(std::ssize(piece)));
    out.append(piece);
  }
  return Status();
}

// Replaces the first match, or all of them, as RE2::Replace and RE2::GlobalReplace do, but within
// the memory limit: a rewrite may be long, and the matches many.
Result<std::string> Replaced(const Pattern& pattern, const std::string& text,
                             const std::string& rewrite, bool all, Growth& growth) {
  std::string_view all_groups[kMostPatternGroups];
  const std::span groups = std::span(all_groups).first(GroupsIn(rewrite));
  std::string out;
  size_t at = 0;
  const char* last_end = nullptr;
  while (at <= text.size() && pattern.Find(text, at, groups)) {
    const auto begin = static_cast<size_t>(groups[0].data() - text.data());
    ONCILLA_TRY(growth.Add(static_cast<int64_t>(begin - at)));
    out.append(text, at, begin - at);
    at = begin;
    if (groups[0].data() == last_end && groups[0].empty()) {
      // An empty match right behind the previous one does not count; one character is copied
      // instead.
      if (at < text.size()) {
        const size_t size = CharacterBytes(std::string_view(text).substr(at));
        out.append(text, at, size);
        at += size;
      } else {
        ++at;
      }
      continue;
    }
    ONCILLA_TRY(AppendRewrite(rewrite, groups, growth, out));
    at = begin + groups[0].size();
    last_end = text.data() + at;
    if (!all) break;
  }
  if (at < text.size()) out.append(text, at, std::string::npos);
  return out;
}

Tensors RegexReplace(const RegexReplaceAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const Pattern pattern, Pattern::Compile(in[1].strings()[0], attrs.longest));
  const std::string& rewrite = in[2].strings()[0];
  ONCILLA_TRY(pattern.CheckRewrite(rewrite));
  Growth growth;
  return MapStrings(in[0], [&](const std::string& text) {
    return Replaced(pattern, text, rewrite, attrs.all, growth);
  });
}

Tensors RegexMatch(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  ONCILLA_ASSIGN(const Pattern pattern, Pattern::Compile(in[1].strings()[0]));
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({DType::kBool, in[0].shape()}));
  const auto y = out.MutableAs<bool>();
  for (size_t i = 0; i < y.size(); ++i) y[i] = pattern.Matches(in[0].strings()[i]);
  return std::vector<Tensor>{std::move(out)};
}

// Builds the n-grams of one row.
class Grams {
 public:
  Grams(const StringNGramsAttrs& attrs, std::span<const std::string> row,
        std::vector<std::string>& out, Growth& growth)
      : attrs_(attrs), row_(row), out_(out), growth_(growth) {}

  int64_t Pad(int64_t width) const {
    return std::min(attrs_.pad < 0 ? width - 1 : attrs_.pad, width - 1);
  }
  Status AddAll() {
    const size_t before = out_.size();
    for (int64_t width : attrs_.widths) {
      ONCILLA_TRY(Add(width, std::ssize(row_) + 2 * Pad(width) - width + 1));
    }
    if (attrs_.keep_short && out_.size() == before && !row_.empty()) {
      return Add(std::ssize(row_) + 2 * std::max<int64_t>(attrs_.pad, 0), 1);
    }
    return Status();
  }

 private:
  Status Add(int64_t width, int64_t count) {
    const int64_t pad = Pad(width);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t left = std::max<int64_t>(0, pad - i);
      const int64_t right = std::max<int64_t>(0, pad - (count - (i + 1)));
      const int64_t first = left > 0 ? 0 : i - pad, words = width - left - right;
      std::string gram;
      int64_t put = 0;
      auto join = [&](const std::string& word) {
        ONCILLA_TRY(growth_.Add(std::ssize(word) + std::ssize(attrs_.separator)));
        if (put++ > 0) gram += attrs_.separator;
        gram += word;
        return Status();
      };
      ONCILLA_TRY(growth_.Add(sizeof(std::string)));
      for (int64_t k = 0; k < left; ++k) ONCILLA_TRY(join(attrs_.left));
      for (int64_t k = 0; k < words && first + k < std::ssize(row_); ++k) {
        ONCILLA_TRY(join(row_[static_cast<size_t>(first + k)]));
      }
      for (int64_t k = 0; k < right; ++k) ONCILLA_TRY(join(attrs_.right));
      out_.push_back(std::move(gram));
    }
    return Status();
  }

  const StringNGramsAttrs& attrs_;
  std::span<const std::string> row_;
  std::vector<std::string>& out_;
  Growth& growth_;
};

Tensors StringNGrams(const StringNGramsAttrs& attrs, const NodeView& node,
                     std::span<const Tensor> in) {
  const std::span<const std::string> words = in[0].strings();
  ONCILLA_ASSIGN(const std::vector<int64_t> splits, ToInt64s(in[1]));
  std::vector<std::string> out;
  std::vector<int64_t> ends;
  Growth growth;
  if (!splits.empty()) {
    ONCILLA_TRY(CheckSplits(splits, std::ssize(words)));
    ends.push_back(0);
  }
  for (size_t i = 0; i + 1 < splits.size(); ++i) {
    const auto begin = static_cast<size_t>(splits[i]);
    const auto row = words.subspan(begin, static_cast<size_t>(splits[i + 1]) - begin);
    ONCILLA_TRY(Grams(attrs, row, out, growth).AddAll());
    ends.push_back(std::ssize(out));
  }
  const auto count = std::ssize(out);
  growth.Clear();
  return std::vector<Tensor>{Tensor::Strings({count}, std::move(out)),
                             WholeNumbers(node.inputs[1].dtype, ends)};
}

const KernelRow kRows[] = {
    HostRow<ChooseStrings>("ChooseStrings", kBools),
    HostRow<EqualStrings>("EqualStrings", kStrings),
    HostRow<JoinStrings>("JoinStrings", kStrings),
    HostRow<ReduceJoin>("ReduceJoin", kStrings),
    HostRow<SegmentJoin>("SegmentJoin", kStrings),
    HostRow<SplitStrings>("SplitStrings", kStrings),
    HostRow<StringLength>("StringLength", kStrings),
    HostRow<Substring>("Substring", kStrings),
    HostRow<StripStrings>("StripStrings", kStrings),
    HostRow<RegexReplace>("RegexReplace", kStrings),
    HostRow<RegexMatch>("RegexMatch", kStrings),
    HostRow<StringNGrams>("StringNGrams", kStrings),
};

}  // namespace

std::span<const KernelRow> StringKernels() { return kRows; }

}  // namespace oncilla::cpu
