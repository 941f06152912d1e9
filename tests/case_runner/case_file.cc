// Reading of case files and comparison of results.
#include "tests/case_runner/case_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "engine/tensor/dispatch.h"
#include "engine/tensor/numbers.h"
#include "tests/case_runner/random.h"

namespace oncilla::testing {
namespace {

// Words of a line; "quoted words" keep their spaces and lose the quotes (marked by a leading \x01).
std::vector<std::string> Words(const std::string& line) {
  std::vector<std::string> out;
  for (size_t i = 0; i < line.size();) {
    if (line[i] == ' ') {
      ++i;
    } else if (line[i] == '"') {
      const size_t end = std::min(line.find('"', i + 1), line.size());
      out.push_back("\x01" + line.substr(i + 1, end - i - 1));
      i = end + 1;
    } else {
      const size_t end = std::min(line.find(' ', i), line.size());
      out.push_back(line.substr(i, end - i));
      i = end;
    }
  }
  return out;
}

std::optional<double> Number(const std::string& word) {
  if (word == "true") return 1;
  if (word == "false") return 0;
  if (word == "nan") return NAN;
  if (word == "inf") return INFINITY;
  if (word == "-inf") return -INFINITY;
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || end != word.c_str() + word.size()) return std::nullopt;
  return value;
}

template <class T = int64_t>
std::optional<T> Whole(const std::string& word) {
  T value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    out.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

AttrValue ParseAttr(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (auto whole = Whole(text)) return *whole;
  if (auto number = Number(text)) return *number;
  if (auto dtype = DTypeFromName(text)) return *dtype;
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    const auto items = SplitList(std::string_view(text).substr(1, text.size() - 2));
    std::vector<int64_t> whole;
    std::vector<double> numbers;
    for (const std::string& item : items) {
      if (auto v = Whole(item)) whole.push_back(*v);
      if (auto v = Number(item)) numbers.push_back(*v);
    }
    if (whole.size() == items.size()) return whole;
    if (numbers.size() == items.size()) return numbers;
    return items;
  }
  return text;
}

template <class T>
T Narrow(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<int64_t>(std::floor(value)));
  } else {
    return static_cast<T>(static_cast<float>(value));
  }
}
template <>
double Narrow<double>(double value) {
  return value;
}

double Option(const std::vector<std::string>& words, std::string_view name, double otherwise) {
  for (const std::string& word : words) {
    if (word.rfind(StrCat(name, "="), 0) == 0) {
      return Number(word.substr(name.size() + 1)).value_or(otherwise);
    }
  }
  return otherwise;
}

// Parses numbers of a type that ops do not compute with, each rounded as by a cast.
Result<Tensor> ParseSmall(Tensor tensor, const std::vector<std::string>& data) {
  std::vector<double> values(static_cast<size_t>(tensor.elements()));
  if (!data.empty() && data[0] == "iota") {
    const double from = Option(data, "from", 0);
    for (size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<double>(i);
  } else if (data.size() != values.size()) {
    return InvalidArgument(tensor.desc(), " with ", data.size(), " numbers");
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto number = Number(data[i]);
      if (!number) return InvalidArgument("'", data[i], "' is not a number");
      values[i] = *number;
    }
  }
  StoreNumbers(tensor.dtype(), values, {.saturate = false}, tensor.mutable_bytes().data(), 0);
  return tensor;
}

// words: TYPE[SHAPE] DATA...
Result<Tensor> ParseTensor(const std::vector<std::string>& words) {
  if (words.empty()) return InvalidArgument("expected TYPE[SHAPE]");
  const size_t open = words[0].find('[');
  const auto dtype = DTypeFromName(std::string_view(words[0]).substr(0, open));
  if (!dtype || open == std::string::npos || words[0].back() != ']') {
    return InvalidArgument("expected TYPE[SHAPE], not '", words[0], "'");
  }
  Shape shape;
  for (const auto& d : SplitList(words[0].substr(open + 1, words[0].size() - open - 2))) {
    const auto size = Whole(d);
    if (!size || *size < 0) return InvalidArgument("bad size '", d, "'");
    shape.push_back(*size);
  }
  const std::vector<std::string> data(words.begin() + 1, words.end());
  const auto count = static_cast<size_t>(shape.elements());
  if (*dtype == DType::kString) {
    std::vector<std::string> strings;
    for (const std::string& d : data) strings.push_back(d[0] == '\x01' ? d.substr(1) : d);
    if (strings.size() != count)
      return InvalidArgument(words[0], " with ", data.size(), " strings");
    return Tensor::Strings(shape, std::move(strings));
  }
  ONCILLA_ASSIGN(Tensor tensor, Tensor::Allocate({*dtype, shape}));
  if (IsComplex(*dtype)) return Unsupported("cases of ", *dtype);
  if (IsSmallInteger(*dtype) || IsSmallFloat(*dtype)) return ParseSmall(std::move(tensor), data);
  Status status;
  DispatchDType(*dtype, [&]<class T>(TypeTag<T>) {
    auto to = tensor.MutableAs<T>();
    if (!data.empty() && data[0] == "rand") {
      Random random(static_cast<uint64_t>(Option(data, "seed", 1)));
      const double lo = Option(data, "lo", -1), hi = Option(data, "hi", 1);
      for (T& v : to) v = Narrow<T>(lo + (hi - lo) * random.Uniform());
    } else if (!data.empty() && data[0] == "iota") {
      const double from = Option(data, "from", 0);
      for (size_t i = 0; i < count; ++i) to[i] = Narrow<T>(from + static_cast<double>(i));
    } else if (data.size() == 2 && data[0] == "fill") {
      for (T& v : to) v = Narrow<T>(Number(data[1]).value_or(0));
    } else if (data.size() != count) {
      status = InvalidArgument(words[0], " with ", data.size(), " numbers");
    } else {
      for (size_t i = 0; i < count && status.ok(); ++i) {
        if (auto whole = Whole(data[i]); whole && std::is_integral_v<T>) {
          to[i] = static_cast<T>(*whole);
        } else if (auto large = Whole<uint64_t>(data[i]); large && std::is_same_v<T, uint64_t>) {
          to[i] = static_cast<T>(*large);
        } else if (auto number = Number(data[i])) {
          to[i] = Narrow<T>(*number);
        } else {
          status = InvalidArgument("'", data[i], "' is not a number");
        }
      }
    }
  });
  ONCILLA_TRY(status);
  return tensor;
}

Status ParseLine(const std::string& line, Case& c) {
  std::vector<std::string> words = Words(line);
  const std::string kind = words[0];
  const size_t after = line.find(kind) + kind.size();
  words.erase(words.begin());
  if (kind == "in" || kind == "const") {
    CaseInput input;
    input.constant = kind == "const";
    if (words.size() == 1 && words[0] == "-") {
      input.absent = true;
    } else {
      ONCILLA_ASSIGN(input.value, ParseTensor(words));
    }
    c.inputs.push_back(std::move(input));
  } else if (kind == "out" && words.size() == 1 && words[0] == "cpu") {
    c.same_as_cpu = true;
  } else if (kind == "out") {
    ONCILLA_ASSIGN(Tensor t, ParseTensor(words));
    c.outputs.push_back(std::move(t));
  } else if (kind == "tol" && words.size() == 1 && Number(words[0])) {
    c.tolerance = *Number(words[0]);
  } else if (kind == "error") {
    c.error = line.substr(std::min(line.size(), after + 1));
  } else {
    return InvalidArgument("unknown line '", line, "'");
  }
  return Status();
}

}  // namespace

Result<std::vector<Case>> ReadCases(const std::string& path, const OpSet& ops) {
  std::ifstream file(path);
  if (!file) return NotFound("cannot read ", path);
  std::vector<Case> cases;
  bool in_case = false;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty() && line[0] == '#') continue;
    if (line.find_first_not_of(' ') == std::string::npos) {
      in_case = false;
      continue;
    }
    if (!in_case) {
      Case c;
      c.file = path.substr(path.rfind('/') + 1);
      c.line = number;
      auto words = Words(line);
      // Quotes keep spaces within a word: "program=[Mul 0 1,Relu t0]".
      for (std::string& word : words) {
        if (word[0] == '\x01') word.erase(0, 1);
      }
      c.op = words[0];
      if (ops.Find(c.op) == nullptr) {
        return InvalidArgument(path, ":", number, ": there is no op '", c.op, "'");
      }
      for (size_t i = 1; i < words.size(); ++i) {
        const size_t equal = words[i].find('=');
        if (equal == std::string::npos) {
          return InvalidArgument(path, ":", number, ": expected NAME=VALUE, not '", words[i], "'");
        }
        c.attrs[words[i].substr(0, equal)] = ParseAttr(words[i].substr(equal + 1));
      }
      cases.push_back(std::move(c));
      in_case = true;
      continue;
    }
    ONCILLA_TRY(In(ParseLine(line, cases.back()), StrCat(path, ":", number)));
  }
  for (const Case& c : cases) {
    if (c.outputs.empty() && !c.same_as_cpu && !c.error) {
      return InvalidArgument(path, ":", c.line, ": the case expects nothing");
    }
  }
  return cases;
}

std::string ToText(const Case& c) {
  constexpr size_t kPrinted = 64;
  std::ostringstream out;
  out << c.op;
  for (const auto& [name, value] : c.attrs) out << ' ' << name << '=' << ToString(value);
  for (const CaseInput& input : c.inputs) {
    out << '\n' << (input.constant ? "const " : "in ");
    if (input.absent || !input.value.valid()) {
      out << '-';
      continue;
    }
    out << input.value.desc();
    if (input.value.dtype() == DType::kString) {
      for (const std::string& text : input.value.strings()) out << " \"" << text << '"';
      continue;
    }
    const auto numbers = ToDoubles(input.value);
    if (!numbers.ok()) continue;
    for (size_t i = 0; i < std::min(numbers->size(), kPrinted); ++i) {
      out << ' ' << (*numbers)[i];
    }
    if (numbers->size() > kPrinted) out << " ..";
  }
  return out.str();
}

Status Agree(const Tensor& actual, const Tensor& expected, double tolerance) {
  if (actual.desc() != expected.desc()) {
    return InvalidArgument("got ", actual.desc(), ", expected ", expected.desc());
  }
  if (actual.dtype() == DType::kString) {
    for (size_t i = 0; i < actual.strings().size(); ++i) {
      if (actual.strings()[i] != expected.strings()[i]) {
        return InvalidArgument("element ", i, " is \"", actual.strings()[i], "\", expected \"",
                               expected.strings()[i], '"');
      }
    }
    return Status();
  }
  if (!IsFloat(actual.dtype()) && !IsSmallFloat(actual.dtype())) {
    if (IsPacked(actual.dtype()) && !std::ranges::equal(actual.bytes(), expected.bytes())) {
      ONCILLA_ASSIGN(const auto a, ToInt64s(actual));
      ONCILLA_ASSIGN(const auto b, ToInt64s(expected));
      for (size_t i = 0; i < a.size(); ++i) {
        if (a[i] != b[i]) {
          return InvalidArgument("element ", i, " is ", a[i], ", expected ", b[i]);
        }
      }
      return InvalidArgument("bits beyond the last element differ");
    }
    if (IsPacked(actual.dtype())) return Status();
    const size_t size = static_cast<size_t>(BytesOf(actual.dtype()));
    for (size_t i = 0; i < actual.bytes().size(); i += size) {
      if (std::equal(actual.bytes().begin() + i, actual.bytes().begin() + i + size,
                     expected.bytes().begin() + i)) {
        continue;
      }
      ONCILLA_ASSIGN(const auto a, ToDoubles(actual));
      ONCILLA_ASSIGN(const auto b, ToDoubles(expected));
      return InvalidArgument("element ", i / size, " is ", a[i / size], ", expected ", b[i / size]);
    }
    return Status();
  }
  ONCILLA_ASSIGN(const auto a, ToDoubles(actual));
  ONCILLA_ASSIGN(const auto b, ToDoubles(expected));
  if (IsSmallFloat(actual.dtype())) tolerance = 0;
  double scale = 0, worst = 0;
  for (double v : b) {
    if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
  }
  size_t where = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    const double bound = tolerance * (std::fabs(b[i]) + 0.1 * scale);
    const double error = std::fabs(a[i] - b[i]);
    // A value that is NaN or infinite on one side only never agrees.
    const double ratio = std::isfinite(error) && bound > 0 ? error / bound : INFINITY;
    if (ratio > worst) worst = ratio, where = i;
  }
  if (worst <= 1) return Status();
  return InvalidArgument("element ", where, " of ", a.size(), " is ", a[where], ", expected ",
                         b[where], " (", worst, " times the tolerance)");
}

}  // namespace oncilla::testing
