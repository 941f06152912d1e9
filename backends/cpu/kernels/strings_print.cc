// Numbers and tensors as text; strings as hashes and base 64. Host functions.
#include <farmhash.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backends/cpu/kernel.h"
#include "backends/cpu/text/number_text.h"
#include "backends/cpu/text/strings.h"
#include "engine/base/decimal.h"
#include "engine/ops/data/strings.h"
#include "engine/tensor/dispatch.h"

namespace oncilla::cpu {
namespace {

using Tensors = Result<std::vector<Tensor>>;

template <class... Values>
std::string Printf(const std::string& format, Values... values) {
  const int size = std::snprintf(nullptr, 0, format.c_str(), values...);
  std::string out(static_cast<size_t>(std::max(size, 0)) + 1, '\0');
  std::snprintf(out.data(), out.size(), format.c_str(), values...);
  out.pop_back();
  return out;
}

Tensors PrintNumbers(const PrintNumbersAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  std::string format = "%" + attrs.fill;
  if (attrs.width >= 0) format += std::to_string(attrs.width);
  if (attrs.precision >= 0) format += "." + std::to_string(attrs.precision);
  std::vector<std::string> out;
  const PlainNumbers plain;
  DispatchDType(in[0].dtype(), [&]<class T>(TypeTag<T>) {
    std::string text = format;
    if constexpr (std::is_same_v<T, bool>) {
    } else if constexpr (std::is_integral_v<T>) {
      text += std::is_signed_v<T> ? "lld" : "llu";
    } else {
      text += attrs.shortest ? "g" : attrs.scientific ? "e" : "f";
    }
    for (const T& value : in[0].As<T>()) {
      if constexpr (std::is_same_v<T, bool>) {
        out.push_back(value ? "true" : "false");
      } else if constexpr (std::is_integral_v<T>) {
        using Wide = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
        out.push_back(Printf(text, static_cast<Wide>(value)));
      } else {
        out.push_back(Printf(text, static_cast<double>(value)));
      }
    }
  });
  return std::vector<Tensor>{Tensor::Strings(in[0].shape(), std::move(out))};
}

template <class T>
T Read(const std::string& text) {
  T value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The number with 6 digits, or with 9 where 6 do not read back as the same number.
std::string ShortFloat(float value) {
  if (std::isnan(value)) return "nan";
  const std::string out = GeneralText(static_cast<double>(value));
  if (Read<float>(out) == value) return out;
  return GeneralText(static_cast<double>(value), 9);
}
std::string ShortDouble(double value) {
  if (std::isnan(value)) return "nan";
  const std::string out = GeneralText(value, 15);
  return Read<double>(out) == value ? out : GeneralText(value, 17);
}

std::vector<std::string> ElementTexts(const Tensor& x) {
  std::vector<std::string> out;
  if (x.dtype() == DType::kString) {
    for (const std::string& text : x.strings()) out.push_back("\"" + text + "\"");
    return out;
  }
  const PlainNumbers plain;
  DispatchDType(x.dtype(), [&]<class T>(TypeTag<T>) {
    for (const T& value : x.As<T>()) {
      if constexpr (std::is_same_v<T, bool>) {
        out.push_back(value ? "1" : "0");
      } else if constexpr (std::is_integral_v<T>) {
        out.push_back(std::to_string(value));
      } else if constexpr (std::is_same_v<T, double>) {
        out.push_back(ShortDouble(value));
      } else {
        out.push_back(ShortFloat(static_cast<float>(value)));
      }
    }
  });
  return out;
}

// Prints a tensor in brackets, with "..." in place of all but `ends` elements at both ends of an
// axis.
class Summary {
 public:
  Summary(const Tensor& x, int64_t ends) : shape_(x.shape()), texts_(ElementTexts(x)) {
    for (int64_t size : shape_) ends_ = std::max(ends_, size);
    if (ends >= 0) ends_ = ends;
    Print(0, 0);
  }
  std::string text;

 private:
  void Space(int axis) {
    const int inner = shape_.rank() - 1 - axis;
    if (inner == 0) {
      text += ' ';
    } else {
      text.append(static_cast<size_t>(inner), '\n').append(static_cast<size_t>(axis) + 1, ' ');
    }
  }
  void Print(int axis, int64_t at) {
    if (axis == shape_.rank()) {
      text += texts_[static_cast<size_t>(at)];
      return;
    }
    text += '[';
    const int64_t size = shape_[axis], step = shape_.Product(axis + 1, shape_.rank());
    const int64_t second = std::max(ends_, size - ends_);
    for (int64_t i = 0; i < std::min(ends_, size); ++i) {
      if (i > 0) Space(axis);
      Print(axis + 1, at + i * step);
    }
    if (size > 2 * ends_) {
      Space(axis);
      text += "...";
    }
    for (int64_t i = second; i < size; ++i) {
      Space(axis);
      Print(axis + 1, at + i * step);
    }
    text += ']';
  }

  const Shape shape_;
  const std::vector<std::string> texts_;
  int64_t ends_ = 0;
};

Tensors FormatStrings(const FormatStringsAttrs& attrs, const NodeView&,
                      std::span<const Tensor> in) {
  std::string out;
  size_t at = 0;
  for (const Tensor& x : in) {
    const size_t next = attrs.text.find(attrs.placeholder, at);
    if (next == std::string::npos) return InvalidArgument("there are too few placeholders");
    out += attrs.text.substr(at, next - at) + Summary(x, attrs.ends).text;
    at = next + attrs.placeholder.size();
  }
  out += attrs.text.substr(at);
  return std::vector<Tensor>{Tensor::Strings({}, {std::move(out)})};
}

uint64_t Load(const char* data, size_t bytes = 8) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= uint64_t{static_cast<uint8_t>(data[i])} << (8 * i);
  return value;
}

// SipHash-2-4, after Aumasson and Bernstein's paper.
uint64_t Sip(std::string_view text, uint64_t k0, uint64_t k1) {
  uint64_t v0 = k0 ^ 0x736f6d6570736575, v1 = k1 ^ 0x646f72616e646f6d;
  uint64_t v2 = k0 ^ 0x6c7967656e657261, v3 = k1 ^ 0x7465646279746573;
  auto rounds = [&](int n) {
    for (; n > 0; --n) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  auto take = [&](uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  const uint64_t last = uint64_t{text.size()} << 56;
  for (; text.size() >= 8; text.remove_prefix(8)) take(Load(text.data()));
  take(last | Load(text.data(), text.size()));
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

// MurmurHash64A, after Appleby's description.
uint64_t Murmur(std::string_view text, uint64_t seed) {
  constexpr uint64_t m = 0xc6a4a7935bd1e995;
  uint64_t h = seed ^ (text.size() * m);
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t k = Load(text.data()) * m;
    k = (k ^ (k >> 47)) * m;
    h = (h ^ k) * m;
  }
  if (!text.empty()) h = (h ^ Load(text.data(), text.size())) * m;
  h = (h ^ (h >> 47)) * m;
  return h ^ (h >> 47);
}

// MurmurHash3_x86_32, after Appleby's description.
uint32_t Murmur3(std::string_view text, uint32_t seed) {
  uint32_t h = seed;
  const auto mixed = [](uint64_t word) {
    return std::rotl(static_cast<uint32_t>(word) * 0xcc9e2d51u, 15) * 0x1b873593u;
  };
  const auto size = static_cast<uint32_t>(text.size());
  for (; text.size() >= 4; text.remove_prefix(4)) {
    h = std::rotl(h ^ mixed(Load(text.data(), 4)), 13) * 5 + 0xe6546b64u;
  }
  if (!text.empty()) h ^= mixed(Load(text.data(), text.size()));
  h ^= size;
  h = (h ^ (h >> 16)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  return h ^ (h >> 16);
}

uint64_t Hash(const HashStringsAttrs& attrs, std::string_view text) {
  if (attrs.hash == "farm") return util::Fingerprint64(text.data(), text.size());
  if (attrs.hash == "murmur") return Murmur(text, 0xDECAFCAFFE);
  const auto key = [&](size_t i) { return static_cast<uint64_t>(attrs.key[i]); };
  if (attrs.hash == "murmur3") return Murmur3(text, static_cast<uint32_t>(key(0)));
  return Sip(text, key(0), key(1));
}

Tensors HashStrings(const HashStringsAttrs& attrs, const NodeView&, std::span<const Tensor> in) {
  std::vector<int64_t> out;
  const auto add = [&](std::string_view text) {
    out.push_back(static_cast<int64_t>(Hash(attrs, text) % static_cast<uint64_t>(attrs.buckets)));
  };
  if (in[0].dtype() == DType::kString) {
    for (const std::string& text : in[0].strings()) add(text);
  } else {
    const auto size = static_cast<size_t>(BytesOf(in[0].dtype()));
    const std::string_view bytes(reinterpret_cast<const char*>(in[0].bytes().data()),
                                 static_cast<size_t>(in[0].elements()) * size);
    for (size_t i = 0; i < bytes.size(); i += size) add(bytes.substr(i, size));
  }
  return std::vector<Tensor>{Tensor::Of<int64_t>(DType::kI64, in[0].shape(), out)};
}

constexpr std::string_view kDigits64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

Tensors EncodeBase64(const Base64Attrs& attrs, const NodeView&, std::span<const Tensor> in) {
  return MapStrings(in[0], [&](const std::string& text) -> Result<std::string> {
    std::string out;
    for (size_t i = 0; i < text.size(); i += 3) {
      uint32_t bits = 0;
      for (size_t k = 0; k < 3; ++k) {
        bits = bits << 8 | (i + k < text.size() ? static_cast<uint8_t>(text[i + k]) : 0u);
      }
      const size_t digits = std::min<size_t>(text.size() - i, 3) + 1;
      for (size_t k = 0; k < 4; ++k) {
        if (k < digits) {
          out += kDigits64[bits >> (18 - 6 * k) & 63];
        } else if (attrs.pad) {
          out += '=';
        }
      }
    }
    return out;
  });
}

Tensors DecodeBase64(const NoAttrs&, const NodeView&, std::span<const Tensor> in) {
  return MapStrings(in[0], [&](std::string text) -> Result<std::string> {
    const bool whole = text.size() % 4 == 0;
    for (int i = 0; whole && i < 2 && text.ends_with('='); ++i) text.pop_back();
    if (text.size() % 4 == 1) return InvalidArgument("its length is impossible in base64");
    std::string out;
    uint32_t bits = 0;
    int count = 0;
    for (char c : text) {
      const size_t digit = kDigits64.find(c);
      if (digit == kDigits64.npos) return InvalidArgument("it has a character outside base64");
      bits = bits << 6 | static_cast<uint32_t>(digit);
      count += 6;
      if (count >= 8) {
        count -= 8;
        out += static_cast<char>(bits >> count & 255);
      }
    }
    return out;
  });
}

const KernelRow kRows[] = {
    HostRow<FormatStrings>("FormatStrings", kAll),
    HostRow<PrintNumbers>("PrintNumbers", kFixedSize),
    HostRow<HashStrings>("HashStrings", kAll),
    HostRow<EncodeBase64>("EncodeBase64", kStrings),
    HostRow<DecodeBase64>("DecodeBase64", kStrings),
};

}  // namespace

std::span<const KernelRow> PrintKernels() { return kRows; }

}  // namespace oncilla::cpu
