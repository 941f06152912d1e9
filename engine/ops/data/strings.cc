// Ops on strings with TensorFlow's semantics: inference and rows.
#include "engine/ops/data/strings.h"

#include <algorithm>

#include "engine/ops/rules.h"

namespace oncilla {
namespace {

Status RequireString(const Fact& fact, std::string_view what) {
  if (fact.dtype == DType::kString) return Status();
  return InvalidArgument(what, " must be strings, not ", fact.dtype);
}

Status RequireOne(const Fact& fact, std::string_view what) {
  const Dim count = fact.shape.elements();
  if (!count.known() || count.size == 1) return Status();
  return InvalidArgument(what, " has ", count.size, " elements instead of one");
}

Facts SameShape(const Fact& x, DType to) { return Facts{Fact::Of(to, x.shape)}; }

Result<Facts> InferJoinStrings(const JoinStringsAttrs&, std::span<const Fact> in) {
  PartialShape shape;
  bool all_single = true, any_shape = false;
  for (size_t i = 0; i < in.size(); ++i) {
    ONCILLA_TRY(RequireString(in[i], "every input"));
    if (!in[i].shape.ranked()) {
      all_single = false;
      continue;
    }
    if (in[i].shape.rank() == 0) continue;
    all_single = false;
    if (!any_shape) {
      shape = in[i].shape;
      any_shape = true;
      continue;
    }
    ONCILLA_ASSIGN(shape, MergeShapes(shape, in[i].shape));
  }
  if (all_single) shape = PartialShape(Shape{});
  return Facts{Fact::Of(DType::kString, std::move(shape))};
}

Result<Facts> InferEqualStrings(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "a"));
  ONCILLA_TRY(RequireString(in[1], "b"));
  ONCILLA_ASSIGN(PartialShape shape, BroadcastShapes(in[0].shape, in[1].shape));
  return Facts{Fact::Of(DType::kBool, std::move(shape))};
}

Result<Facts> InferChooseStrings(const NoAttrs&, std::span<const Fact> in) {
  if (in[0].dtype != DType::kBool) {
    return InvalidArgument("the condition is ", in[0].dtype, ", not bool");
  }
  ONCILLA_TRY(RequireString(in[1], "x"));
  ONCILLA_TRY(RequireString(in[2], "y"));
  ONCILLA_ASSIGN(PartialShape shape, BroadcastShapes(in[1].shape, in[2].shape));
  ONCILLA_ASSIGN(shape, BroadcastShapes(in[0].shape, shape));
  return Facts{Fact::Of(DType::kString, std::move(shape))};
}

Result<Facts> InferReduceJoin(const ReduceJoinAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  ONCILLA_TRY(RequireInteger(in[1], "axes"));
  const PartialShape& x = in[0].shape;
  if (!x.ranked()) return SameShape(Fact(), DType::kString);
  const auto known = KnownInts(in[1]);
  if (!AllIntsKnown(in[1])) {
    if (attrs.keep_dims) return Facts{Fact::Of(DType::kString, PartialShape::OfRank(x.rank()))};
    if (known && static_cast<int>(known->size()) <= x.rank()) {
      const int left = x.rank() - static_cast<int>(known->size());
      return Facts{Fact::Of(DType::kString, PartialShape::OfRank(left))};
    }
    return Facts{Fact::Of(DType::kString, PartialShape())};
  }
  ONCILLA_ASSIGN(const std::vector<int64_t> axes, NeedInts(in[1], "axes"));
  ONCILLA_ASSIGN(const std::vector<int> sorted, NormalizeAxes(axes, x.rank()));
  std::vector<Dim> dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (!std::binary_search(sorted.begin(), sorted.end(), i)) {
      dims.push_back(x[i]);
    } else if (attrs.keep_dims) {
      dims.push_back(Dim(1));
    }
  }
  return Facts{Fact::Of(DType::kString, PartialShape(std::move(dims)))};
}

Result<Facts> InferSegmentJoin(const JoinStringsAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  ONCILLA_TRY(RequireInteger(in[1], "ids"));
  ONCILLA_TRY(RequireInteger(in[2], "segments"));
  const PartialShape &x = in[0].shape, &ids = in[1].shape;
  if (!x.ranked() || !ids.ranked()) return SameShape(Fact(), DType::kString);
  if (ids.rank() > x.rank()) return InvalidArgument("ids ", ids, " do not fit x ", x);
  Dim count;
  if (AllIntsKnown(in[2])) {
    ONCILLA_ASSIGN(const std::vector<int64_t> values, NeedInts(in[2], "segments"));
    if (values.size() != 1 || values[0] < 0) return InvalidArgument("segments must be a number");
    count = Dim(values[0]);
  }
  std::vector<Dim> dims = {count};
  for (int i = 0; i < x.rank(); ++i) {
    if (i >= ids.rank()) {
      dims.push_back(x[i]);
    } else if (x[i].known() && ids[i].known() && x[i].size != ids[i].size) {
      return InvalidArgument("ids ", ids, " do not fit x ", x);
    }
  }
  return Facts{Fact::Of(DType::kString, PartialShape(std::move(dims)))};
}

Result<Facts> InferSplitStrings(const SplitStringsAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  ONCILLA_TRY(RequireString(in[1], "the separator"));
  ONCILLA_TRY(RequireRank(in[0], 1, "x"));
  ONCILLA_TRY(RequireOne(in[1], "the separator"));
  if (attrs.set && attrs.most > 0) return InvalidArgument("a set of separators cuts everywhere");
  return Facts{Fact::Of(DType::kI64, PartialShape({Dim(), Dim(2)})),
               Fact::Of(DType::kString, PartialShape::OfRank(1)),
               Fact::Of(DType::kI64, PartialShape({Dim(2)}))};
}

Result<Facts> InferChangeCase(const ChangeCaseAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  return SameShape(in[0], DType::kString);
}

Result<Facts> InferStringLength(const StringUnitAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  return SameShape(in[0], DType::kI32);
}

Result<Facts> InferSubstring(const StringUnitAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  ONCILLA_TRY(RequireInteger(in[1], "position"));
  ONCILLA_TRY(RequireInteger(in[2], "length"));
  ONCILLA_ASSIGN(PartialShape shape, BroadcastShapes(in[0].shape, in[1].shape));
  ONCILLA_ASSIGN(shape, BroadcastShapes(shape, in[2].shape));
  return Facts{Fact::Of(DType::kString, std::move(shape))};
}

Result<Facts> InferStripStrings(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  return SameShape(in[0], DType::kString);
}

Result<Facts> InferFormatStrings(const FormatStringsAttrs& attrs, std::span<const Fact> in) {
  if (attrs.placeholder.empty()) return InvalidArgument("the placeholder is empty");
  size_t places = 0;
  for (size_t at = attrs.text.find(attrs.placeholder); at != std::string::npos;
       at = attrs.text.find(attrs.placeholder, at + attrs.placeholder.size())) {
    ++places;
  }
  if (places != in.size()) {
    return InvalidArgument("the template has ", places, " placeholders for ", in.size(),
                           " tensors");
  }
  return Facts{Fact::Of(DType::kString, PartialShape(Shape{}))};
}

Result<Facts> InferPrintNumbers(const PrintNumbersAttrs& attrs, std::span<const Fact> in) {
  if (in[0].dtype == DType::kString) return InvalidArgument("x is text already");
  if (attrs.scientific && attrs.shortest) {
    return InvalidArgument("scientific and shortest exclude each other");
  }
  if (attrs.fill.size() > 1 ||
      (!attrs.fill.empty() && std::string_view(" +-0#").find(attrs.fill) == std::string::npos)) {
    return InvalidArgument("fill '", attrs.fill, "' is none of ' ', '+', '-', '0', '#'");
  }
  if (!IsFloat(in[0].dtype) && (attrs.scientific || attrs.shortest)) {
    return InvalidArgument(in[0].dtype, " has no scientific or shortest form");
  }
  if (!IsFloat(in[0].dtype) && attrs.precision >= 0) {
    return InvalidArgument(in[0].dtype, " has no precision");
  }
  if (attrs.precision > 512 || attrs.width > 512) {
    return InvalidArgument("a number of ", std::max(attrs.precision, attrs.width), " places");
  }
  return SameShape(in[0], DType::kString);
}

Result<Facts> InferHashStrings(const HashStringsAttrs& attrs, std::span<const Fact> in) {
  const bool bytes = attrs.hash == "murmur3" && BitsOf(in[0].dtype) >= 8;
  if (!bytes) ONCILLA_TRY(RequireString(in[0], "x"));
  if (attrs.hash != "farm" && attrs.hash != "sip" && attrs.hash != "murmur" &&
      attrs.hash != "murmur3") {
    return InvalidArgument("there is no hash '", attrs.hash, "'");
  }
  if (attrs.buckets < 1) return InvalidArgument("there are ", attrs.buckets, " buckets");
  if (attrs.key.size() != (attrs.hash == "sip" ? 2u : attrs.hash == "murmur3" ? 1u : 0u)) {
    return InvalidArgument("the key has ", attrs.key.size(), " numbers");
  }
  return SameShape(in[0], DType::kI64);
}

Result<Facts> InferRegexReplace(const RegexReplaceAttrs&, std::span<const Fact> in) {
  static constexpr std::string_view kNames[] = {"x", "the pattern", "the rewrite"};
  for (size_t i = 0; i < 3; ++i) {
    ONCILLA_TRY(RequireString(in[i], kNames[i]));
    if (i > 0) ONCILLA_TRY(RequireOne(in[i], kNames[i]));
  }
  return SameShape(in[0], DType::kString);
}

Result<Facts> InferRegexMatch(const NoAttrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  ONCILLA_TRY(RequireString(in[1], "the pattern"));
  ONCILLA_TRY(RequireOne(in[1], "the pattern"));
  return SameShape(in[0], DType::kBool);
}

Result<Facts> InferStringNGrams(const StringNGramsAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  ONCILLA_TRY(RequireRank(in[0], 1, "x"));
  ONCILLA_TRY(RequireInteger(in[1], "splits"));
  ONCILLA_TRY(RequireRank(in[1], 1, "splits"));
  for (int64_t width : attrs.widths) {
    if (width < 1 || width > (1 << 20)) return InvalidArgument("an n-gram of ", width);
  }
  if (attrs.pad > (1 << 20)) return InvalidArgument("pad is ", attrs.pad);
  return Facts{Fact::Of(DType::kString, PartialShape::OfRank(1)),
               Fact::Of(in[1].dtype, in[1].shape)};
}

Result<Facts> InferBase64(const Base64Attrs&, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  return SameShape(in[0], DType::kString);
}

constexpr OpTraits Host(Arity inputs, uint32_t plan_inputs = 0, bool data_dependent = false) {
  OpTraits traits;
  traits.inputs = inputs;
  traits.plan_inputs = plan_inputs;
  traits.host_only = true;
  traits.data_dependent = data_dependent;
  return traits;
}

constexpr OpDef kStringOps[] = {
    Op<InferJoinStrings>("JoinStrings", Host({1, kVariadic})),
    Op<InferReduceJoin>("ReduceJoin", Host({2, 2}, 0b10)),
    Op<InferSegmentJoin>("SegmentJoin", Host({3, 3}, 0b100)),
    Op<InferSplitStrings>("SplitStrings", Host({2, 2}, 0, true)),
    Op<InferChangeCase>("ChangeCase", Host({1, 1})),
    Op<InferStringLength>("StringLength", Host({1, 1})),
    Op<InferSubstring>("Substring", Host({3, 3})),
    Op<InferStripStrings>("StripStrings", Host({1, 1})),
    Op<InferFormatStrings>("FormatStrings", Host({0, kVariadic})),
    Op<InferEqualStrings>("EqualStrings", Host({2, 2})),
    Op<InferChooseStrings>("ChooseStrings", Host({3, 3})),
    Op<InferPrintNumbers>("PrintNumbers", Host({1, 1})),
    Op<InferHashStrings>("HashStrings", Host({1, 1})),
    Op<InferRegexReplace>("RegexReplace", Host({3, 3})),
    Op<InferRegexMatch>("RegexMatch", Host({2, 2})),
    Op<InferStringNGrams>("StringNGrams", Host({2, 2}, 0, true)),
    Op<InferBase64>("EncodeBase64", Host({1, 1})),
    Op<InferStripStrings>("DecodeBase64", Host({1, 1})),
};

Status CheckUnicode(const UnicodeAttrs& attrs) {
  if (attrs.errors != "replace" && attrs.errors != "ignore" && attrs.errors != "strict") {
    return InvalidArgument("there is no error mode '", attrs.errors, "'");
  }
  for (const std::string& name : {attrs.from, attrs.to}) {
    static constexpr std::string_view kNames[] = {
        "utf-8", "utf-16-be", "utf-16-le", "utf-32-be", "utf-32-le", "us-ascii", "iso-8859-1"};
    if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) {
      return Unsupported("encoding ", name);
    }
  }
  if (attrs.to == "us-ascii" || attrs.to == "iso-8859-1") return Unsupported("into ", attrs.to);
  if (attrs.replacement < 0 || attrs.replacement > 0x10FFFF) {
    return InvalidArgument("replacement is ", attrs.replacement);
  }
  if (attrs.splits != DType::kI32 && attrs.splits != DType::kI64) {
    return InvalidArgument("splits of ", attrs.splits);
  }
  return {};
}

Result<Facts> InferDecodeUnicode(const UnicodeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  ONCILLA_TRY(CheckUnicode(attrs));
  const Dim count = in[0].shape.elements();
  const Dim splits = count.known() ? Dim(count.size + 1) : Dim();
  return Facts{Fact::Of(attrs.splits, PartialShape({splits})),
               Fact::Of(DType::kI32, PartialShape::OfRank(1)),
               Fact::Of(DType::kI64, PartialShape::OfRank(1))};
}

Result<Facts> InferEncodeUnicode(const UnicodeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireInteger(in[0], "characters"));
  ONCILLA_TRY(RequireInteger(in[1], "splits"));
  ONCILLA_TRY(RequireRank(in[1], 1, "splits"));
  ONCILLA_TRY(CheckUnicode(attrs));
  Dim rows;
  if (in[1].shape.ranked() && in[1].shape[0].known()) {
    if (in[1].shape[0].size == 0) return InvalidArgument("splits is empty");
    rows = Dim(in[1].shape[0].size - 1);
  }
  return Facts{Fact::Of(DType::kString, PartialShape({rows}))};
}

Result<Facts> InferTranscode(const UnicodeAttrs& attrs, std::span<const Fact> in) {
  ONCILLA_TRY(RequireString(in[0], "x"));
  ONCILLA_TRY(CheckUnicode(attrs));
  return SameShape(in[0], DType::kString);
}

Result<Facts> InferScripts(const NoAttrs&, std::span<const Fact> in) {
  if (in[0].dtype != DType::kI32)
    return InvalidArgument("characters are ", in[0].dtype, ", not i32");
  return Facts{Fact::Of(DType::kI32, in[0].shape)};
}

constexpr OpDef kUnicodeOps[] = {
    Op<InferScripts>("CharacterScripts", {}),
    Op<InferDecodeUnicode>("DecodeUnicode", Host({1, 1}, 0, true)),
    Op<InferEncodeUnicode>("EncodeUnicode", Host({2, 2})),
    Op<InferTranscode>("TranscodeUnicode", Host({1, 1})),
};

}  // namespace

std::span<const OpDef> StringOps() { return kStringOps; }
std::span<const OpDef> UnicodeOps() { return kUnicodeOps; }

}  // namespace oncilla
