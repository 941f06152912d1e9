// Reads and writes tensors. The file's ending selects the reader; every failure contains the file's
// name.
#include "tools/oncilla/files/tensor_file.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "engine/base/file.h"
#include "engine/import/onnx/tensor.h"
#include "engine/import/onnx/value.h"
#include "engine/tensor/numbers.h"
#include "engine/tensor/tensor_list.h"
#include "tools/oncilla/files/json_tensor.h"
#include "tools/oncilla/files/npy.h"
#include "tools/oncilla/files/npz.h"
#include "tools/oncilla/names.h"

namespace oncilla::tool {
namespace {

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

Result<Tensor> ReadPb(const std::shared_ptr<const MappedFile>& file, const InputWish& wish) {
  if (wish.kind != TensorInfo::Kind::kTensor) {
    Result<Tensor> value = DataLoss("nothing was read");
    const TensorInfo info{wish.name, "", wish.dtype, wish.shape, wish.kind};
    const Status status = ReadWire("the value", [&]() -> Status {
      value = OnnxValueFrom(file->text(), info, file);
      return value.status();
    });
    return status.ok() ? value : status;
  }
  Result<OnnxTensor> tensor = DataLoss("nothing was read");
  const Status status = ReadWire("the TensorProto", [&]() -> Status {
    tensor = TensorFromOnnx(file->text(), file);
    return tensor.status();
  });
  if (!status.ok()) return status;
  return std::move(tensor->value);
}

// Reads raw bytes in the expected shape; a single unknown size follows from the number of bytes.
Result<Tensor> ReadRaw(const std::shared_ptr<const MappedFile>& file, const InputWish& wish) {
  const auto wrong = [&](const auto&... parts) {
    return WithStage(InvalidArgument("read as raw bytes: ", parts...), Stage::kOptions);
  };
  if (wish.dtype == DType::kInvalid) return wrong("the model does not say the input's type");
  if (wish.dtype == DType::kString) return wrong("the input holds strings, give a .json file");
  if (IsPacked(wish.dtype))
    return wrong("elements of ", wish.dtype, " are packed, give a .pb file");
  const auto bytes = static_cast<int64_t>(file->bytes().size());
  if (!wish.shape.ranked()) return wrong("the model leaves the input's rank open, give --shape");
  Shape shape;
  int64_t known = BytesOf(wish.dtype);
  int open = -1;
  for (int i = 0; i < wish.shape.rank(); ++i) {
    const Dim& dim = wish.shape[i];
    shape.push_back(dim.known() ? dim.size : 0);
    if (dim.known()) {
      known = SaturatingMul(known, dim.size);
    } else if (open >= 0) {
      return wrong("the model leaves more than one size of ", wish.shape, " open, give --shape");
    } else {
      open = i;
    }
  }
  if (open >= 0) {
    if (known == 0 || bytes % known != 0) {
      return wrong("its ", bytes, " bytes are not a multiple of ", known, ", as ", wish.dtype,
                   wish.shape, " asks");
    }
    shape[open] = bytes / known;
  } else if (bytes != known) {
    return wrong("it has ", bytes, " bytes, ", wish.dtype, wish.shape, " needs ", known);
  }
  return Tensor::View({wish.dtype, shape}, file->bytes(), file);
}

// The file of element `index` of a sequence in a folder; empty if there is none.
std::string ElementFile(const std::string& folder, int64_t index) {
  for (const char* ending : {".npy", ".json"}) {
    std::string path = JoinPath(folder, StrCat(index, ending));
    if (FileExists(path)) return path;
  }
  return "";
}

// Reads a value that is not a tensor: from a folder, or from a file that means "no value".
Result<Tensor> ReadElements(const std::string& path, const InputWish& wish,
                            const ImageOptions& image) {
  const TensorInfo info{wish.name, "", wish.dtype, wish.shape, wish.kind};
  const bool sequence = wish.kind == TensorInfo::Kind::kSequence;
  const bool optional = wish.kind == TensorInfo::Kind::kOptional;
  if (!sequence && !FolderExists(path)) return OptionalOf(info, Tensor());
  TensorList list(wish.dtype, wish.shape);
  InputWish one = wish;
  one.kind = TensorInfo::Kind::kTensor;
  for (int64_t i = 0;; ++i) {
    const std::string file = ElementFile(path, i);
    if (file.empty()) break;
    if (i >= TensorList::kMaxSize) return DataLoss(path, " holds too many elements");
    ONCILLA_ASSIGN(Tensor element, ReadTensorFile(file, one, image));
    if (element.dtype() != wish.dtype || !wish.shape.Accepts(element.shape())) {
      return WithStage(
          InvalidArgument(file, " is ", element.desc(), ", not ", Fact::Of(wish.dtype, wish.shape)),
          Stage::kOptions);
    }
    list.Push(std::move(element));
  }
  if (optional && list.size() != 1) {
    return WithStage(InvalidArgument(path, " holds ", list.size(), " elements, not one"),
                     Stage::kOptions);
  }
  if (optional) return OptionalOf(info, list.at(0));
  Tensor value = Tensor::OfList(std::move(list));
  return sequence ? value : OptionalOf(info, value);
}

Result<Tensor> ReadByEnding(const std::string& path, const std::string& key, const InputWish& wish,
                            const ImageOptions& image) {
  const std::string ending = Lower(path.substr(std::min(path.size(), path.rfind('.'))));
  const bool tensor = wish.kind == TensorInfo::Kind::kTensor;
  const bool optional = !tensor && wish.kind != TensorInfo::Kind::kSequence;
  if ((!tensor && FolderExists(path)) || (optional && ending == ".none" && FileExists(path))) {
    return ReadElements(path, wish, image);
  }
  ONCILLA_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  if (!tensor && ending != ".pb") {
    return WithStage(
        InvalidArgument("the input is a list of tensors: give a folder of its elements, "
                        "0.npy and so on, or a .pb"),
        Stage::kOptions);
  }
  if (ending == ".npy") return ReadNpy(file->bytes(), file);
  if (ending == ".npz") return ReadNpz(file, key);
  if (ending == ".pb") return ReadPb(file, wish);
  if (ending == ".json") return ReadJsonTensor(file->text());
  if (ending == ".png" || ending == ".jpg" || ending == ".jpeg") {
    return ImageTensor(file->bytes(), wish.dtype, wish.shape, image);
  }
  return ReadRaw(file, wish);
}

}  // namespace

namespace {

// Converts integers of one byte each, or floats, to a packed type; each number must be
// representable in that type.
Result<Tensor> Packed(const Tensor& tensor, DType to) {
  ONCILLA_ASSIGN(const std::vector<double> numbers, ToDoubles(tensor));
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({to, tensor.shape()}));
  StoreNumbers(to, numbers, {}, out.mutable_bytes().data(), 0);
  ONCILLA_ASSIGN(const std::vector<double> held, ToDoubles(out));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (held[i] != numbers[i]) return InvalidArgument(numbers[i], " is not a number of type ", to);
  }
  return out;
}

}  // namespace

Result<Tensor> ReadTensorFile(const std::string& file, const InputWish& wish,
                              const ImageOptions& image) {
  std::string path = file, key;
  // The ending counts only if no file has the whole text as its name.
  const size_t split = Lower(file).rfind(".npz:");
  if (split != std::string::npos && !FileExists(file)) {
    path = file.substr(0, split + 4);
    key = file.substr(split + 5);
  }
  Result<Tensor> tensor = ReadByEnding(path, key, wish, image);
  if (!tensor.ok()) {
    Status status = tensor.status();
    // Failures of the file itself already contain its name.
    if (Message(status).find(path) == std::string::npos) status = In(status, path);
    return WithStage(In(std::move(status), StrCat("input '", wish.name, "'")), Stage::kFile);
  }
  // NumPy has no packed elements: files hold them unpacked, as one byte each or as f32.
  if (IsPacked(wish.dtype) && !IsPacked(tensor->dtype()) && tensor->dtype() != DType::kString &&
      !tensor->is_list()) {
    Result<Tensor> packed = Packed(*tensor, wish.dtype);
    if (packed.ok()) return packed;
    return WithStage(In(In(packed.status(), path), StrCat("input '", wish.name, "'")),
                     Stage::kFile);
  }
  // NumPy has no names for these types, so their bits are read.
  const bool bits =
      (wish.dtype == DType::kBF16 && tensor->dtype() == DType::kU16) ||
      (IsSmallFloat(wish.dtype) && !IsPacked(wish.dtype) && tensor->dtype() == DType::kU8);
  if (bits) {
    return Tensor::View({wish.dtype, tensor->shape()}, tensor->bytes(),
                        std::make_shared<Tensor>(*tensor));
  }
  return tensor;
}

Result<std::string> FindInputFile(const std::string& folder, const InputWish& wish, int index) {
  if (!FolderExists(folder)) {
    return WithStage(NotFound(folder, ": no such folder"), Stage::kFile);
  }
  const std::string base = JoinPath(folder, FileNameOf(wish.name));
  const std::string numbered = JoinPath(folder, StrCat("input_", index, ".pb"));
  if (wish.kind != TensorInfo::Kind::kTensor) {
    if (FileExists(base + ".none")) return base + ".none";
    if (FolderExists(base)) return base;
    if (FileExists(numbered)) return numbered;
    return WithStage(NotFound("input '", wish.name, "': there is none of the folder ", base, ", ",
                              base, ".none, ", numbered),
                     Stage::kFile);
  }
  for (const std::string& path : {base + ".npy", base + ".json", numbered}) {
    if (FileExists(path)) return path;
  }
  return WithStage(NotFound("input '", wish.name, "': there is none of ", base, ".npy, ", base,
                            ".json, ", numbered),
                   Stage::kFile);
}

namespace {

// Removes elements of an earlier, longer result, which would be read as elements of this one.
Status RemoveElements(const std::string& folder, int64_t from) {
  for (int64_t i = from;; ++i) {
    const std::string file = ElementFile(folder, i);
    if (file.empty()) return {};
    if (::unlink(file.c_str()) != 0) return NotFound(file, " cannot be removed");
  }
}

Result<std::string> WriteElements(const std::string& folder, const std::string& name,
                                  const TensorList& list, TensorInfo::Kind kind) {
  const std::string base = JoinPath(folder, FileNameOf(name));
  const bool sequence = kind == TensorInfo::Kind::kSequence;
  const bool marked = list.size() > 0 && !list.at(list.size() - 1).valid();
  if (!sequence && list.size() == 0) {
    if (FolderExists(base)) ONCILLA_TRY(RemoveElements(base, 0));
    ONCILLA_TRY(WriteFile(base + ".none", ""));
    return base + ".none";
  }
  const int64_t count = list.size() - (!sequence && marked ? 1 : 0);
  if (FileExists(base + ".none") && ::unlink((base + ".none").c_str()) != 0) {
    return NotFound(base, ".none cannot be removed");
  }
  ONCILLA_TRY(MakeFolder(base));
  for (int64_t i = 0; i < count; ++i) {
    if (!list.at(i).valid()) return DataLoss("element ", i, " of the sequence was never written");
    ONCILLA_TRY(RemoveElements(base, i));
    ONCILLA_TRY(WriteTensorFile(base, StrCat(i), list.at(i)).status());
  }
  ONCILLA_TRY(RemoveElements(base, count));
  return base;
}

// NumPy has no packed elements: integers become one byte each, and 4-bit floats become f32.
Result<Tensor> Unpacked(const Tensor& tensor) {
  const bool is_signed = tensor.dtype() == DType::kI4 || tensor.dtype() == DType::kI2;
  const DType to = !IsSmallInteger(tensor.dtype()) ? DType::kF32
                   : is_signed                     ? DType::kI8
                                                   : DType::kU8;
  ONCILLA_ASSIGN(const std::vector<double> numbers, ToDoubles(tensor));
  ONCILLA_ASSIGN(Tensor out, Tensor::Allocate({to, tensor.shape()}));
  StoreNumbers(to, numbers, {}, out.mutable_bytes().data(), 0);
  return out;
}

}  // namespace

Result<std::string> WriteTensorFile(const std::string& folder, const std::string& name,
                                    const Tensor& tensor, TensorInfo::Kind kind) {
  ONCILLA_TRY(MakeFolder(folder));
  if (tensor.is_list()) {
    // A list inside the graph, of which nothing else is known, is written as a sequence.
    if (kind == TensorInfo::Kind::kTensor) kind = TensorInfo::Kind::kSequence;
    return WriteElements(folder, name, tensor.list(), kind);
  }
  if (IsPacked(tensor.dtype())) {
    ONCILLA_ASSIGN(const Tensor unpacked, Unpacked(tensor));
    return WriteTensorFile(folder, name, unpacked, kind);
  }
  const bool strings = tensor.dtype() == DType::kString;
  const std::string path = JoinPath(folder, FileNameOf(name) + (strings ? ".json" : ".npy"));
  ONCILLA_TRY(strings ? WriteFile(path, JsonTensor(tensor)) : WriteNpy(path, tensor));
  return path;
}

}  // namespace oncilla::tool
