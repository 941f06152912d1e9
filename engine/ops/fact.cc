// Reading integers and types from facts.
#include "engine/ops/fact.h"

#include <algorithm>
#include <charconv>

#include "engine/tensor/tensor_list.h"

namespace oncilla {

std::ostream& operator<<(std::ostream& out, const Fact& fact) {
  switch (fact.kind) {
    case ValueKind::kTensor:
      return out << fact.dtype << fact.shape;
    case ValueKind::kList:
      return out << "list<" << fact.dtype << fact.shape << '>';
    case ValueKind::kOptional:
      return out << "optional<" << fact.dtype << fact.shape << '>';
    case ValueKind::kResource:
      return out << "resource";
    case ValueKind::kAbsent:
      return out << "absent";
  }
  return out;
}

std::string DeclaredType(const Fact& fact) {
  Fact type = fact.WithoutContents();
  for (int i = 0; i < type.shape.rank(); ++i) type.shape[i].name.clear();
  return StrCat(type);
}

Fact Fact::Of(const Tensor& value) {
  return value.is_list() ? List(value.dtype(), value.list().element()) : Of(value.desc());
}

namespace {

// Parses "[2,?,batch]" or "[...]"; nothing if the text is neither.
std::optional<PartialShape> ParseShape(std::string_view text) {
  if (text == "[...]") return PartialShape();
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<Dim> dims;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    if (word.empty() || dims.size() == kMaxRank) return std::nullopt;
    int64_t size = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
    if (error == std::errc() && end == word.data() + word.size() && size >= 0) {
      dims.emplace_back(size);
    } else {
      dims.push_back(word == "?" ? Dim() : Dim::Named(std::string(word)));
    }
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return PartialShape(std::move(dims));
}

}  // namespace

Result<Fact> ParseFact(std::string_view text) {
  const auto fail = [&] { return InvalidArgument("'", text, "' is not a type such as f32[?,3]"); };
  std::string_view rest = text;
  constexpr std::string_view kList = "list<";
  const bool list = rest.substr(0, kList.size()) == kList && rest.back() == '>';
  if (list) rest = rest.substr(kList.size(), rest.size() - kList.size() - 1);
  const size_t bracket = std::min(rest.find('['), rest.size());
  const auto dtype = DTypeFromName(rest.substr(0, bracket));
  auto shape = ParseShape(rest.substr(bracket));
  if (!dtype.has_value() || !shape.has_value()) return fail();
  return list ? Fact::List(*dtype, *std::move(shape)) : Fact::Of(*dtype, *std::move(shape));
}

std::optional<std::vector<Dim>> KnownInts(const Fact& fact) {
  if (fact.elements.has_value()) return fact.elements;
  if (fact.has_value() && fact.value.shape().rank() <= 1 &&
      fact.value.elements() <= kMaxKnownInts) {
    auto ints = ToInt64s(fact.value);
    if (!ints.ok()) return std::nullopt;
    std::vector<Dim> out(ints->size());
    for (size_t i = 0; i < out.size(); ++i) out[i].size = (*ints)[i];
    return out;
  }
  const Dim count = fact.shape.elements();
  if (!IsInteger(fact.dtype) || !count.known() || fact.shape.rank() > 1 ||
      count.size > kMaxKnownInts) {
    return std::nullopt;
  }
  return std::vector<Dim>(static_cast<size_t>(count.size));
}

Result<std::vector<int64_t>> NeedInts(const Fact& fact, std::string_view what) {
  if (fact.has_value()) {
    auto ints = ToInt64s(fact.value);
    return ints.ok() ? std::move(ints) : Result<std::vector<int64_t>>(In(ints.status(), what));
  }
  if (AllIntsKnown(fact)) {
    std::vector<int64_t> out;
    if (!fact.elements.has_value()) return out;
    for (const Dim& d : *fact.elements) out.push_back(d.size);
    return out;
  }
  return Error(Code::kFailedPrecondition, "the value of ", what, " is not known yet");
}

bool AllIntsKnown(const Fact& fact) {
  if (fact.has_value()) return IsInteger(fact.dtype) || fact.dtype == DType::kBool;
  if (IsInteger(fact.dtype) && fact.shape.known() && fact.shape.elements().size == 0) return true;
  // A partly known element may be any integer, so a negative size alone does not mean that it is
  // unknown; elements known to be negative are only represented in whole values.
  return fact.elements.has_value() && std::all_of(fact.elements->begin(), fact.elements->end(),
                                                  [](const Dim& d) { return d.known(); });
}

}  // namespace oncilla
