// Random values. Every element uses one 64-bit number of the generator, for any type.
#include "tools/oncilla/files/random_tensor.h"

#include "engine/base/half.h"
#include "engine/tensor/numbers.h"

namespace oncilla::tool {
namespace {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // The top `bits` bits of the next number.
  uint64_t Bits(int bits) { return Next() >> (64 - bits); }
  // Uniform in 0..9, by multiplication, with a relative bias below 2^-28.
  int Digit() { return static_cast<int>((Next() >> 32) * 10 >> 32); }

 private:
  uint64_t state_;
};

// FNV-1a: mixes the name into the seed.
uint64_t StartOf(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash ^ seed * 0x9e3779b97f4a7c15u;
}

template <class T, class Draw>
void Fill(Tensor& tensor, Draw draw) {
  for (T& value : tensor.MutableAs<T>()) value = draw();
}

template <class T>
void FillDigits(Tensor& tensor, SplitMix64& random) {
  Fill<T>(tensor, [&] { return static_cast<T>(random.Digit()); });
}

}  // namespace

Result<Tensor> RandomTensor(uint64_t seed, std::string_view name, const TensorDesc& desc) {
  if (desc.dtype == DType::kString || desc.dtype == DType::kInvalid) {
    return WithStage(Unsupported("input '", name, "' is a ", desc.dtype,
                                 " tensor, for which there are no random values; give a file"),
                     Stage::kOptions);
  }
  ONCILLA_ASSIGN(Tensor tensor, Tensor::Allocate(desc));
  SplitMix64 random(StartOf(seed, name));
  switch (desc.dtype) {
    case DType::kF32:
    case DType::kC64:  // its parts
      Fill<float>(tensor, [&] { return static_cast<float>(random.Bits(24)) * 0x1p-24f; });
      break;
    case DType::kF64:
    case DType::kC128:
      Fill<double>(tensor, [&] { return static_cast<double>(random.Bits(53)) * 0x1p-53; });
      break;
    case DType::kF16:
      Fill<Half>(tensor, [&] { return Half(static_cast<float>(random.Bits(11)) * 0x1p-11f); });
      break;
    case DType::kBF16:
      Fill<BFloat16>(tensor,
                     [&] { return BFloat16(static_cast<float>(random.Bits(8)) * 0x1p-8f); });
      break;
    case DType::kI8:
    case DType::kU8:
      FillDigits<uint8_t>(tensor, random);
      break;
    case DType::kI16:
    case DType::kU16:
      FillDigits<uint16_t>(tensor, random);
      break;
    case DType::kI32:
    case DType::kU32:
      FillDigits<uint32_t>(tensor, random);
      break;
    case DType::kI64:
    case DType::kU64:
      FillDigits<uint64_t>(tensor, random);
      break;
    case DType::kBool:
      Fill<uint8_t>(tensor, [&] { return static_cast<uint8_t>(random.Bits(1)); });
      break;
    default: {
      if (!HoldsNumbers(desc.dtype)) {
        return WithStage(Unsupported("input '", name, "' is a ", desc.dtype,
                                     " tensor, for which there are no random values; give a file"),
                         Stage::kOptions);
      }
      // Integers of so few bits keep the lowest ones of a digit.
      std::vector<double> values(static_cast<size_t>(desc.elements()));
      for (double& value : values) {
        value = IsSmallInteger(desc.dtype) ? random.Digit()
                                           : static_cast<double>(random.Bits(8)) * 0x1p-8;
      }
      StoreNumbers(desc.dtype, values, {}, tensor.mutable_bytes().data(), 0);
      break;
    }
  }
  return tensor;
}

}  // namespace oncilla::tool
