// Makes mutants of cases. The changes are those that found faults when made by hand: numbers at the
// limits of their types; sizes of zero and one, and odd sizes; inputs of another type, omitted, or
// fed instead of constant.
#include "tests/case_runner/mutate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/tensor/dispatch.h"
#include "tests/case_runner/random.h"

namespace oncilla::testing {
namespace {

constexpr int64_t kMostElements = 1 << 16;  // of an input that grows

constexpr int64_t kWhole[] = {-1,
                              0,
                              1,
                              2,
                              3,
                              5,
                              7,
                              8,
                              16,
                              100,
                              -2,
                              -3,
                              -7,
                              255,
                              256,
                              65536,
                              1 << 24,
                              std::numeric_limits<int32_t>::max(),
                              std::numeric_limits<int32_t>::min(),
                              int64_t{1} << 31,
                              int64_t{1} << 33,
                              int64_t{1} << 62,
                              std::numeric_limits<int64_t>::max(),
                              std::numeric_limits<int64_t>::min()};
constexpr double kNumbers[] = {0,
                               -0.0,
                               1,
                               -1,
                               0.5,
                               2,
                               -3,
                               1e-3,
                               1e4,
                               -1e4,
                               1e-30,
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};
constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kI32,
                            DType::kI64, DType::kI8,  DType::kU8,  DType::kBool};

template <class T, size_t n>
T OneOf(Random& random, const T (&values)[n]) {
  return values[random.Below(n)];
}
template <class T>
const T& OneOf(Random& random, const std::vector<T>& values) {
  return values[random.Below(values.size())];
}

// Returns a number near `was`, or one at the limit of a type.
int64_t OtherWhole(Random& random, int64_t was) {
  if (random.Below(3) != 0) return OneOf(random, kWhole);
  const int64_t step = random.Below(2) == 0 ? 1 : -1;
  int64_t near = was;
  return __builtin_add_overflow(was, step, &near) ? 0 : near;
}

using Texts = std::map<std::string, std::vector<std::string>>;  // by op and attribute

void OtherAttr(Random& random, const std::vector<std::string>& texts, AttrValue& value) {
  if (auto* whole = std::get_if<int64_t>(&value)) {
    *whole = OtherWhole(random, *whole);
  } else if (auto* number = std::get_if<double>(&value)) {
    *number = OneOf(random, kNumbers);
  } else if (auto* flag = std::get_if<bool>(&value)) {
    *flag = !*flag;
  } else if (auto* dtype = std::get_if<DType>(&value)) {
    *dtype = OneOf(random, kTypes);
  } else if (auto* text = std::get_if<std::string>(&value)) {
    if (!texts.empty()) *text = OneOf(random, texts);
  } else if (auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    const size_t what = random.Below(6);
    if (what == 0) {
      list->push_back(OneOf(random, kWhole));
    } else if (!list->empty() && what == 1) {
      list->pop_back();
    } else if (!list->empty()) {
      int64_t& item = (*list)[random.Below(list->size())];
      item = OtherWhole(random, item);
    }
  } else if (auto* numbers = std::get_if<std::vector<double>>(&value)) {
    if (!numbers->empty()) (*numbers)[random.Below(numbers->size())] = OneOf(random, kNumbers);
  }
}

template <class T>
T AsElement(double number) {
  if constexpr (std::is_same_v<T, bool>) {
    return number != 0;
  } else if constexpr (std::is_integral_v<T>) {
    const double low = static_cast<double>(std::numeric_limits<T>::min());
    const double high = static_cast<double>(std::numeric_limits<T>::max());
    if (std::isnan(number)) return 0;
    if (number <= low) return std::numeric_limits<T>::min();
    if (number >= high) return std::numeric_limits<T>::max();
    return static_cast<T>(number);
  } else if constexpr (std::is_same_v<T, double>) {
    return number;
  } else {
    return static_cast<T>(static_cast<float>(number));
  }
}

// A tensor of the type and shape, filled with the elements of another one, repeated as needed.
Tensor Refilled(const Tensor& from, DType dtype, const Shape& shape) {
  if (from.dtype() == DType::kString || dtype == DType::kString) {
    std::vector<std::string> strings(static_cast<size_t>(shape.elements()), "x");
    if (from.dtype() == DType::kString && !from.strings().empty()) {
      for (size_t i = 0; i < strings.size(); ++i) {
        strings[i] = from.strings()[i % from.strings().size()];
      }
    }
    return Tensor::Strings(shape, std::move(strings));
  }
  auto to = Tensor::Allocate({dtype, shape});
  const auto numbers = ToDoubles(from);
  if (!to.ok() || !numbers.ok()) return from;
  DispatchDType(dtype, [&]<class T>(TypeTag<T>) {
    auto elements = to->MutableAs<T>();
    for (size_t i = 0; i < elements.size() && !numbers->empty(); ++i) {
      elements[i] = AsElement<T>((*numbers)[i % numbers->size()]);
    }
  });
  return *std::move(to);
}

// Returns a copy with one or a few other elements.
Tensor WithOtherElements(Random& random, bool finite, const Tensor& from) {
  if (from.elements() == 0) return from;
  const size_t count = 1 + random.Below(3);
  const auto elements = static_cast<size_t>(from.elements());
  if (from.dtype() == DType::kString) {
    static const std::vector<std::string> kTexts = {"", "x", "-1", "1e400", "\xff\xfe", "(", "a,b"};
    std::vector<std::string> strings = from.strings();
    for (size_t k = 0; k < count; ++k) strings[random.Below(elements)] = OneOf(random, kTexts);
    return Tensor::Strings(from.shape(), std::move(strings));
  }
  Tensor to = Tensor::Copy(from.desc(), from.bytes());
  DispatchDType(from.dtype(), [&]<class T>(TypeTag<T>) {
    for (size_t k = 0; k < count; ++k) {
      T& element = to.MutableAs<T>()[random.Below(elements)];
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        element = static_cast<T>(OtherWhole(random, static_cast<int64_t>(element)));
      } else {
        const double number = OneOf(random, kNumbers);
        element = AsElement<T>(finite && !std::isfinite(number) ? 1 : number);
      }
    }
  });
  return to;
}

Shape OtherShape(Random& random, const Shape& was) {
  static constexpr int64_t kSizes[] = {0, 1, 2, 3, 5, 8, 17};
  Shape shape = was;
  const size_t what = random.Below(5);
  if (what == 0 && shape.rank() < kMaxRank) {
    shape.push_back(OneOf(random, kSizes));
  } else if (shape.rank() == 0) {
    return shape;
  } else if (what == 1) {
    shape = Shape();
    for (int i = 1; i < was.rank(); ++i) shape.push_back(was[i]);
  } else {
    shape[static_cast<int>(random.Below(static_cast<size_t>(was.rank())))] = OneOf(random, kSizes);
  }
  return shape.elements() <= kMostElements ? shape : was;
}

void MutateInput(Random& random, bool finite, CaseInput& input) {
  switch (random.Below(8)) {
    case 0:
      input.constant = !input.constant;
      break;
    case 1:
      if (input.value.valid()) input.absent = !input.absent;
      break;
    case 2:
      if (input.value.valid()) {
        input.value = Refilled(input.value, OneOf(random, kTypes), input.value.shape());
      }
      break;
    case 3:
    case 4:
      if (input.value.valid()) {
        const Shape shape = OtherShape(random, input.value.shape());
        input.value = Refilled(input.value, input.value.dtype(), shape);
      }
      break;
    default:
      if (input.value.valid()) input.value = WithOtherElements(random, finite, input.value);
  }
}

// Fast products also multiply the zeros of their padding (docs/roadmap.md), so that infinities and
// NaN spread further than in plain code.
bool NeedsFiniteNumbers(const OpTraits& traits) {
  return traits.work == Work::kTaps || traits.work == Work::kTapsBackwards ||
         traits.work == Work::kProduct || traits.work == Work::kAttention ||
         traits.storage == StorageRule::kStarts;
}

bool IsFinite(const Case& c) {
  for (const CaseInput& input : c.inputs) {
    const auto numbers = ToDoubles(input.value);
    if (!numbers.ok()) continue;
    for (const double number : *numbers) {
      if (!std::isfinite(number)) return false;
    }
  }
  return true;
}

// RoiAlign computes samples * samples pixels for each of height * width elements: numbers that are
// allowed individually would together take minutes. Numbers of 2^31 and more stay, since they are
// refused.
void BoundSamples(AttrMap& attrs) {
  for (const auto& [name, most] :
       {std::pair("samples", 16), std::pair("height", 256), std::pair("width", 256)}) {
    const auto found = attrs.find(name);
    if (found == attrs.end()) continue;
    auto* number = std::get_if<int64_t>(&found->second);
    if (number != nullptr && *number < int64_t{1} << 31) {
      *number = std::min<int64_t>(*number, most);
    }
  }
}

Case MutantOf(const Case& original, bool finite, const Texts& texts, Random& random) {
  Case c = original;
  c.outputs.clear();
  c.error.reset();
  c.same_as_cpu = true;
  c.mutant = true;
  c.may_be_rough = finite;
  const size_t changes = 1 + random.Below(3);
  for (size_t k = 0; k < changes; ++k) {
    if (!c.attrs.empty() && random.Below(2) == 0) {
      auto it = c.attrs.begin();
      std::advance(it, static_cast<long>(random.Below(c.attrs.size())));
      const auto known = texts.find(c.op + " " + it->first);
      OtherAttr(random, known == texts.end() ? std::vector<std::string>() : known->second,
                it->second);
    } else if (!c.inputs.empty()) {
      MutateInput(random, finite, c.inputs[random.Below(c.inputs.size())]);
    }
  }
  if (c.attrs.contains("samples")) BoundSamples(c.attrs);
  return c;
}

// The same value on every machine, unlike std::hash.
uint64_t HashOf(const std::string& text) {
  uint64_t hash = 1469598103934665603u;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return hash;
}

}  // namespace

std::vector<Case> MutantsOf(const std::vector<Case>& cases, const OpSet& ops, uint64_t seed,
                            int each) {
  Texts texts;
  for (const Case& c : cases) {
    for (const auto& [name, value] : c.attrs) {
      if (const auto* text = std::get_if<std::string>(&value)) {
        texts[c.op + " " + name].push_back(*text);
      }
    }
  }
  std::vector<Case> mutants;
  for (const Case& c : cases) {
    Random random(HashOf(StrCat(seed, " ", c.file, ":", c.line)));
    const OpTraits& traits = ops.Find(c.op)->traits;
    const bool finite = NeedsFiniteNumbers(traits);
    if (traits.is_random || (finite && !IsFinite(c))) continue;
    for (int k = 0; k < each; ++k) mutants.push_back(MutantOf(c, finite, texts, random));
  }
  return mutants;
}

}  // namespace oncilla::testing
