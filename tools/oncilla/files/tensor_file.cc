// Picks the reader by ending and puts the file's name before every failure.
#include "tools/oncilla/files/tensor_file.h"

#include <algorithm>
#include <cctype>

#include "engine/base/file.h"
#include "engine/import/onnx/tensor.h"
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

Result<Tensor> ReadPb(const std::shared_ptr<const MappedFile>& file) {
  Result<OnnxTensor> tensor = DataLoss("nothing was read");
  const Status status = ReadWire("the TensorProto", [&]() -> Status {
    tensor = TensorFromOnnx(file->text(), file);
    return tensor.status();
  });
  if (!status.ok()) return status;
  return std::move(tensor->value);
}

// The wished shape with its one unknown size told by the number of bytes.
Result<Tensor> ReadRaw(const std::shared_ptr<const MappedFile>& file, const InputWish& wish) {
  const auto wrong = [&](const auto&... parts) {
    return WithStage(InvalidArgument("read as raw bytes: ", parts...), Stage::kOptions);
  };
  if (wish.dtype == DType::kInvalid) return wrong("the model does not say the input's type");
  if (wish.dtype == DType::kString) return wrong("the input holds strings, give a .json file");
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
      return wrong("its ", bytes, " bytes are no multiple of ", known, ", as ", wish.dtype,
                   wish.shape, " asks");
    }
    shape[open] = bytes / known;
  } else if (bytes != known) {
    return wrong("it has ", bytes, " bytes, ", wish.dtype, wish.shape, " needs ", known);
  }
  return Tensor::View({wish.dtype, shape}, file->bytes(), file);
}

Result<Tensor> ReadByEnding(const std::string& path, const std::string& key, const InputWish& wish,
                            const ImageOptions& image) {
  ONCILLA_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const std::string ending = Lower(path.substr(std::min(path.size(), path.rfind('.'))));
  if (ending == ".npy") return ReadNpy(file->bytes(), file);
  if (ending == ".npz") return ReadNpz(file, key);
  if (ending == ".pb") return ReadPb(file);
  if (ending == ".json") return ReadJsonTensor(file->text());
  if (ending == ".png" || ending == ".jpg" || ending == ".jpeg") {
    return ImageTensor(file->bytes(), wish.dtype, wish.shape, image);
  }
  return ReadRaw(file, wish);
}

}  // namespace

Result<Tensor> ReadTensorFile(const std::string& file, const InputWish& wish,
                              const ImageOptions& image) {
  std::string path = file, key;
  // The ending counts only where no file is named so as a whole.
  const size_t split = Lower(file).rfind(".npz:");
  if (split != std::string::npos && !FileExists(file)) {
    path = file.substr(0, split + 4);
    key = file.substr(split + 5);
  }
  Result<Tensor> tensor = ReadByEnding(path, key, wish, image);
  if (!tensor.ok()) {
    Status status = tensor.status();
    // Failures of the file itself name it already.
    if (Message(status).find(path) == std::string::npos) status = In(status, path);
    return WithStage(In(std::move(status), StrCat("input '", wish.name, "'")), Stage::kFile);
  }
  if (wish.dtype == DType::kBF16 && tensor->dtype() == DType::kU16) {
    return Tensor::View({DType::kBF16, tensor->shape()}, tensor->bytes(),
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
  for (const std::string& path : {base + ".npy", base + ".json", numbered}) {
    if (FileExists(path)) return path;
  }
  return WithStage(NotFound("input '", wish.name, "': there is none of ", base, ".npy, ", base,
                            ".json, ", numbered),
                   Stage::kFile);
}

Result<std::string> WriteTensorFile(const std::string& folder, const std::string& name,
                                    const Tensor& tensor) {
  ONCILLA_TRY(MakeFolder(folder));
  const bool strings = tensor.dtype() == DType::kString;
  const std::string path = JoinPath(folder, FileNameOf(name) + (strings ? ".json" : ".npy"));
  ONCILLA_TRY(strings ? WriteFile(path, JsonTensor(tensor)) : WriteNpy(path, tensor));
  return path;
}

}  // namespace oncilla::tool
