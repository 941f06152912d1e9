// Reads and writes .npy files. The grammar of the header is small (three fixed keys, nesting only
// in the shape), so it is parsed by hand instead of by anything that could evaluate Python.
#include "tools/oncilla/files/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "engine/base/file.h"

namespace oncilla::tool {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMaxHeader = 1 << 20;

struct Header {
  std::string descr;
  bool fortran = false;
  Shape shape;
};

// A cursor over the dictionary's text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  void SkipSpace() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) Pop(1);
  }
  bool Take(std::string_view token) {
    SkipSpace();
    if (!text_.starts_with(token)) return false;
    Pop(token.size());
    return true;
  }
  std::optional<std::string> Quoted() {
    SkipSpace();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    const size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string word(text_.substr(1, end - 1));
    Pop(end + 1);
    return word;
  }
  std::optional<int64_t> Number() {
    SkipSpace();
    int64_t value = 0;
    auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) return std::nullopt;
    Pop(static_cast<size_t>(end - text_.data()));
    Take("L");  // Python 2 wrote long integers with an L
    return value;
  }

 private:
  void Pop(size_t n) { text_.remove_prefix(n); }
  std::string_view text_;
};

Status ReadShape(Scanner& scanner, Shape& shape) {
  if (!scanner.Take("(")) return DataLoss("its header has no shape");
  while (!scanner.Take(")")) {
    const std::optional<int64_t> size = scanner.Number();
    if (!size || *size < 0) return DataLoss("the shape in its header is malformed");
    shape.push_back(*size);
    if (shape.rank() > kMaxRank) {
      return Unsupported("it has more than ", kMaxRank, " dimensions");
    }
    if (!scanner.Take(",")) {
      if (!scanner.Take(")")) return DataLoss("the shape in its header is malformed");
      break;
    }
  }
  return {};
}

Result<Header> ReadDictionary(std::string_view text) {
  Scanner scanner(text);
  Header header;
  bool has_descr = false, has_order = false, has_shape = false;
  if (!scanner.Take("{")) return DataLoss("its header is not a dictionary");
  while (!scanner.Take("}")) {
    const std::optional<std::string> key = scanner.Quoted();
    if (!key || !scanner.Take(":")) return DataLoss("its header is not a dictionary");
    if (*key == "descr") {
      std::optional<std::string> descr = scanner.Quoted();
      if (!descr) return Unsupported("it holds records, not one element type");
      header.descr = *std::move(descr);
      has_descr = true;
    } else if (*key == "fortran_order") {
      header.fortran = scanner.Take("True");
      if (!header.fortran && !scanner.Take("False"))
        return DataLoss("its element order is unclear");
      has_order = true;
    } else if (*key == "shape") {
      ONCILLA_TRY(ReadShape(scanner, header.shape));
      has_shape = true;
    } else {
      return DataLoss("its header has the unknown key '", *key, "'");
    }
    if (!scanner.Take(",")) {
      if (!scanner.Take("}")) return DataLoss("its header is not a dictionary");
      break;
    }
  }
  if (!has_descr || !has_order || !has_shape) {
    return DataLoss("its header lacks descr, fortran_order or shape");
  }
  return header;
}

struct Element {
  DType dtype = DType::kInvalid;
  int64_t bytes = 0;
  bool swap = false;
  char text = 0;  // 'S' or 'U' for text
};

Result<Element> ParseElement(std::string_view descr) {
  Element element;
  const char order = descr.empty() ? 0 : descr[0];
  if (order == '<' || order == '>' || order == '|' || order == '=') descr.remove_prefix(1);
  if (descr.empty()) return DataLoss("its element type is empty");
  const char kind = descr[0];
  int64_t size = 0;
  auto [end, error] = std::from_chars(descr.data() + 1, descr.data() + descr.size(), size);
  const bool sized = error == std::errc() && end == descr.data() + descr.size() && size >= 0;
  if (kind == 'O') return Unsupported("it holds Python objects, which only Python can read");
  element.bytes = size;
  element.swap = order == '>';
  static constexpr struct {
    char kind;
    int64_t size;
    DType dtype;
  } kTypes[] = {{'f', 2, DType::kF16},
                {'f', 4, DType::kF32},
                {'f', 8, DType::kF64},
                {'i', 1, DType::kI8},
                {'i', 2, DType::kI16},
                {'i', 4, DType::kI32},
                {'i', 8, DType::kI64},
                {'u', 1, DType::kU8},
                {'u', 2, DType::kU16},
                {'u', 4, DType::kU32},
                {'u', 8, DType::kU64},
                {'b', 1, DType::kBool},
                {'c', 8, DType::kC64},
                {'c', 16, DType::kC128},
                // The ml_dtypes package saves bfloat16 as V2, floats of 8 bits as V1 or f1.
                {'V', 2, DType::kBF16},
                {'V', 1, DType::kU8},
                {'f', 1, DType::kU8}};
  for (const auto& type : kTypes) {
    if (sized && type.kind == kind && type.size == size) element.dtype = type.dtype;
  }
  if (sized && (kind == 'S' || kind == 'U')) {
    element.dtype = DType::kString;
    element.text = kind;
    element.bytes = kind == 'U' ? SaturatingMul(size, 4) : size;
  }
  if (element.dtype == DType::kInvalid) {
    return Unsupported("its element type '", descr, "' is not supported");
  }
  return element;
}

void AppendUtf8(uint32_t c, std::string& out) {
  auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6), put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 0x3f)), put(0x80 | (c >> 6 & 0x3f)),
        put(0x80 | (c & 0x3f));
  }
}

// One element of fixed-width text, without its padding of zeros.
Result<std::string> TextElement(const std::byte* data, const Element& element) {
  std::string out;
  if (element.text == 'S') {
    out.assign(reinterpret_cast<const char*>(data), static_cast<size_t>(element.bytes));
    out.erase(out.find_last_not_of('\0') + 1);
    return out;
  }
  std::vector<uint32_t> points(static_cast<size_t>(element.bytes / 4));
  if (!points.empty()) std::memcpy(points.data(), data, points.size() * 4);
  if (element.swap) {
    for (uint32_t& c : points) c = __builtin_bswap32(c);
  }
  while (!points.empty() && points.back() == 0) points.pop_back();
  for (uint32_t c : points) {
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return DataLoss("its text is not Unicode");
    AppendUtf8(c, out);
  }
  return out;
}

// The index of element `index` in C order within the column-major order of the same shape.
int64_t ColumnMajorIndex(int64_t index, const Shape& shape) {
  int64_t result = 0, stride = shape.elements();
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    stride /= shape[axis];
    result += index % shape[axis] * stride;
    index /= shape[axis];
  }
  return result;
}

Result<Tensor> Unfold(const Header& header, const Element& element,
                      std::span<const std::byte> data) {
  const int64_t count = header.shape.elements();
  auto source = [&](int64_t i) {
    return data.data() + (header.fortran ? ColumnMajorIndex(i, header.shape) : i) * element.bytes;
  };
  if (element.text) {
    std::vector<std::string> values;
    values.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      ONCILLA_ASSIGN(std::string value, TextElement(source(i), element));
      values.push_back(std::move(value));
    }
    return Tensor::Strings(header.shape, std::move(values));
  }
  ONCILLA_ASSIGN(Tensor tensor, Tensor::Allocate({element.dtype, header.shape}));
  std::byte* out = tensor.mutable_bytes().data();
  for (int64_t i = 0; i < count; ++i, out += element.bytes) {
    std::memcpy(out, source(i), static_cast<size_t>(element.bytes));
    if (!element.swap) continue;
    const int64_t part = IsComplex(element.dtype) ? element.bytes / 2 : element.bytes;
    for (int64_t at = 0; at < element.bytes; at += part) std::reverse(out + at, out + at + part);
  }
  return tensor;
}

Result<Tensor> Read(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() < 10 || !text.starts_with(kMagic)) return DataLoss("it is not a .npy file");
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3) return Unsupported("it has format version ", version);
  const size_t width = version == 1 ? 2 : 4;
  if (text.size() < 8 + width) return DataLoss("it ends inside its header");
  uint64_t length = 0;
  for (size_t i = 0; i < width; ++i) {
    length |= uint64_t{static_cast<unsigned char>(text[8 + i])} << (8 * i);
  }
  const size_t begin = 8 + width;
  if (length > kMaxHeader || length > text.size() - begin) {
    return DataLoss("it ends inside its header");
  }
  ONCILLA_ASSIGN(const Header header, ReadDictionary(text.substr(begin, length)));
  ONCILLA_ASSIGN(const Element element, ParseElement(header.descr));
  const std::span<const std::byte> data = bytes.subspan(begin + length);
  const int64_t count = header.shape.elements();
  // Strings of width 0 take no bytes, so the size of the file does not limit their number.
  if (element.text && element.bytes == 0 && count > (1 << 20)) {
    return DataLoss("it claims ", count, " empty strings");
  }
  const int64_t expected = SaturatingMul(count, element.bytes);
  if (expected != static_cast<int64_t>(data.size())) {
    return DataLoss("its shape ", header.shape, " of '", header.descr, "' needs ", expected,
                    " bytes, ", data.size(), " follow the header");
  }
  if (element.dtype == DType::kBool) {
    for (std::byte b : data) {
      if (b > std::byte{1}) return DataLoss("a bool in it is neither 0 nor 1");
    }
  }
  if (element.text || element.swap || (header.fortran && header.shape.rank() > 1)) {
    return Unfold(header, element, data);
  }
  return Tensor::View({element.dtype, header.shape}, data, owner);
}

const char* Descr(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "<f4";
    case DType::kF64:
      return "<f8";
    case DType::kF16:
      return "<f2";
    case DType::kBF16:
    case DType::kU16:
      return "<u2";
    case DType::kI8:
      return "|i1";
    case DType::kI16:
      return "<i2";
    case DType::kI32:
      return "<i4";
    case DType::kI64:
      return "<i8";
    case DType::kU8:
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0:
      return "|u1";  // NumPy has no name for floats of 8 bits; their bits are written
    case DType::kU32:
      return "<u4";
    case DType::kU64:
      return "<u8";
    case DType::kBool:
      return "|b1";
    case DType::kC64:
      return "<c8";
    case DType::kC128:
      return "<c16";
    default:
      break;
  }
  return nullptr;
}

}  // namespace

Result<Tensor> ReadNpy(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  Result<Tensor> tensor = Read(bytes, owner);
  if (!tensor.ok()) return WithStage(tensor.status(), Stage::kFile);
  return tensor;
}

Result<std::string> NpyHeader(const TensorDesc& desc) {
  const char* descr = Descr(desc.dtype);
  if (!descr) return Unsupported("a .npy file cannot hold ", desc.dtype, " elements");
  std::string dictionary = StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (");
  for (int i = 0; i < desc.rank(); ++i) {
    dictionary += StrCat(i ? ", " : "", desc.shape[i]);
  }
  dictionary += desc.rank() == 1 ? ",), }" : "), }";
  const size_t unpadded = kMagic.size() + 4 + dictionary.size() + 1;
  dictionary.append((64 - unpadded % 64) % 64, ' ');
  dictionary += '\n';
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff),
          static_cast<char>(dictionary.size() >> 8)};
  return out + dictionary;
}

Status WriteNpy(const std::string& path, const Tensor& tensor) {
  ONCILLA_ASSIGN(const std::string header, NpyHeader(tensor.desc()));
  ONCILLA_ASSIGN(FileDraft draft, FileDraft::Create(path));
  ONCILLA_TRY(draft.Append(header));
  ONCILLA_TRY(draft.Append(tensor.bytes()));
  return draft.Commit();
}

}  // namespace oncilla::tool
