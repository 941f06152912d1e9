// Attributes and types of the VHLO dialect, by their codes.
#include <bit>
#include <cmath>

#include "engine/base/half.h"
#include "engine/import/stablehlo/bytecode.h"
#include "engine/import/stablehlo/cursor.h"

namespace oncilla {
namespace {

// Codes of attributes.
enum AttrCode : uint64_t {
  kArray = 1,
  kBoolean = 2,
  kComparisonDirection = 3,
  kComparisonType = 4,
  kCustomCallApiVersion = 5,
  kDictionary = 6,
  kFftType = 7,
  kFloat = 8,
  kInteger = 9,
  kPrecision = 11,
  kRngAlgorithm = 12,
  kRngDistribution = 13,
  kString = 14,
  kTensor = 15,
  kTranspose = 16,
  kTypeAttr = 17,
};

// Codes of types.
enum TypeCode : uint64_t {
  kComplex = 1,
  kRankedTensor = 20,
  kRankedTensorWithEncoding = 21,
  kToken = 22,
};

struct ElementCode {
  uint64_t code;
  DType dtype;
};
constexpr ElementCode kElements[] = {
    {0, DType::kBool}, {2, DType::kBF16},     {3, DType::kF16},         {4, DType::kF32},
    {5, DType::kF64},  {6, DType::kF8E4M3FN}, {7, DType::kF8E5M2},      {9, DType::kI64},
    {10, DType::kI4},  {11, DType::kI8},      {12, DType::kI16},        {13, DType::kI32},
    {14, DType::kI64}, {15, DType::kU4},      {16, DType::kU8},         {17, DType::kU16},
    {18, DType::kU32}, {19, DType::kU64},     {27, DType::kF8E4M3FNUZ}, {28, DType::kF8E5M2FNUZ},
};

// An integer of up to 64 bits: a byte if it fits into one, else a number with a sign.
int64_t ReadInteger(BytecodeCursor& cursor, int bits) {
  if (bits <= 8) return static_cast<int8_t>(cursor.Byte());
  return cursor.Signed();
}

double ReadFloat(BytecodeCursor& cursor, DType dtype) {
  const int64_t bits = ReadInteger(cursor, BitsOf(dtype));
  switch (dtype) {
    case DType::kF64:
      return std::bit_cast<double>(bits);
    case DType::kF32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    default:
      return std::nan("");  // no attribute that is read has another type
  }
}

void ReadIndices(BytecodeCursor& cursor, size_t entries, size_t per_item, HloAttr& attr) {
  const size_t count = cursor.Count();
  for (size_t i = 0; i < count * per_item && cursor.ok(); ++i) {
    attr.items.push_back(cursor.Index(entries));
  }
}

}  // namespace

bool ReadVhloAttr(BytecodeCursor& cursor, const HloModule& module,
                  const std::vector<std::string_view>& texts, HloAttr& attr) {
  const auto element = [&] {
    const int type = cursor.Index(module.types.size());
    return cursor.ok() ? module.types[static_cast<size_t>(type)].dtype : DType::kInvalid;
  };
  using Kind = HloAttr::Kind;
  switch (cursor.Number()) {
    case kArray:
      attr.kind = Kind::kList;
      ReadIndices(cursor, module.attrs.size(), 1, attr);
      break;
    case kDictionary:
      attr.kind = Kind::kPairs;
      ReadIndices(cursor, module.attrs.size(), 2, attr);
      break;
    case kBoolean:
    case kComparisonDirection:
    case kComparisonType:
    case kCustomCallApiVersion:
    case kFftType:
    case kPrecision:
    case kRngAlgorithm:
    case kRngDistribution:
    case kTranspose: {
      const uint64_t value = cursor.Number();
      if (value > 255) return false;  // no enumeration has so many
      attr.kind = Kind::kNumber;
      attr.number = static_cast<int64_t>(value);
      break;
    }
    case kFloat: {
      const DType dtype = element();
      if (dtype == DType::kInvalid || !IsFloat(dtype)) return cursor.ok();
      attr.kind = Kind::kReal;
      attr.real = ReadFloat(cursor, dtype);
      break;
    }
    case kInteger: {
      const DType dtype = element();
      if (dtype == DType::kInvalid) return cursor.ok();
      attr.kind = Kind::kNumber;
      attr.number = ReadInteger(cursor, dtype == DType::kBool ? 1 : BitsOf(dtype));
      break;
    }
    case kString: {
      const int text = cursor.Index(texts.size());
      if (!cursor.ok()) return false;
      attr.kind = Kind::kText;
      attr.text = texts[static_cast<size_t>(text)];
      break;
    }
    case kTensor:
      attr.kind = Kind::kTensor;
      attr.type = cursor.Index(module.types.size());
      attr.text = cursor.Take(cursor.Number());
      break;
    case kTypeAttr:
      attr.kind = Kind::kType;
      attr.type = cursor.Index(module.types.size());
      break;
    default:
      break;  // of no use for running a module
  }
  return cursor.ok();
}

bool ReadVhloType(BytecodeCursor& cursor, size_t attrs, size_t types, HloType& type, int& element) {
  element = -1;
  const uint64_t code = cursor.Number();
  for (const ElementCode& known : kElements) {
    if (known.code != code) continue;
    type.kind = HloType::Kind::kElement;
    type.dtype = known.dtype;
    return cursor.ok();
  }
  switch (code) {
    case kComplex:
      type.kind = HloType::Kind::kElement;
      element = cursor.Index(types);  // the type of the parts
      break;
    case kToken:
      type.kind = HloType::Kind::kToken;
      break;
    case kRankedTensorWithEncoding:
      cursor.Index(attrs);
      [[fallthrough]];
    case kRankedTensor: {
      type.kind = HloType::Kind::kTensor;
      const size_t rank = cursor.Count();
      for (size_t i = 0; i < rank && cursor.ok(); ++i) {
        const int64_t size = cursor.Signed();
        type.sizes.push_back(size < 0 ? -1 : size);  // any negative number is an open size
      }
      element = cursor.Index(types);
      break;
    }
    default:
      break;
  }
  return cursor.ok();
}

}  // namespace oncilla
