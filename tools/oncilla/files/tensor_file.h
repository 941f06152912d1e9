// Reads and writes tensors in the user's files; the extension determines the format:
//   .npy   .npz:KEY   .pb (ONNX TensorProto)   .json (strings)   .png .jpg .jpeg (photographs)
// Any other file is the raw little-endian bytes of the model's dtype.
//
// A sequence of tensors is a folder with its elements in order (0.npy, 1.npy, .. or .json), or a
// .pb with a SequenceProto; an optional value is a folder of what it holds, or a .pb with an
// OptionalProto. <NAME>.none, whatever it holds, stands for an optional value that holds nothing.
//
// A file that cannot be read or is damaged gives Stage::kFile; one that is fine but does not fit
// the input gives Stage::kOptions. Shapes are compared when the model runs, not here.
#pragma once

#include <string>
#include <vector>

#include "engine/import/model_source.h"
#include "tools/oncilla/files/image.h"

namespace oncilla::tool {

// What the model says about the input that a file is for.
struct InputWish {
  std::string name;
  DType dtype = DType::kInvalid;  // kInvalid: anything
  PartialShape shape;
  TensorInfo::Kind kind = TensorInfo::Kind::kTensor;
};

// `file` may end in ".npz:KEY". uint16 bits become bfloat16 where that is wished for.
Result<Tensor> ReadTensorFile(const std::string& file, const InputWish& wish,
                              const ImageOptions& image);

// The file for `wish` in a folder as --output-dir writes it: <NAME>.npy or <NAME>.json; for values
// other than tensors the folder <NAME> or <NAME>.none; or else ONNX's input_<index>.pb. NotFound
// says which files it tried.
Result<std::string> FindInputFile(const std::string& folder, const InputWish& wish, int index);

// Writes `tensor` as <NAME>.npy, or <NAME>.json for strings; a value of another kind as the folder
// <NAME> or <NAME>.none. Returns the path.
Result<std::string> WriteTensorFile(const std::string& folder, const std::string& name,
                                    const Tensor& tensor,
                                    TensorInfo::Kind kind = TensorInfo::Kind::kTensor);

}  // namespace oncilla::tool
