// Tensors of strings as JSON, which NumPy's files cannot hold:
//   {"dtype": "string", "shape": [2], "encoding": "utf8", "data": ["a", "b"]}
// "data" is flat, in C order. "encoding" is "utf8" (also when absent) or "base64"; what is written
// is base64 as soon as one string is not UTF-8.
#pragma once

#include <string>
#include <string_view>

#include "engine/tensor/tensor.h"

namespace oncilla::tool {

Result<Tensor> ReadJsonTensor(std::string_view text);

// `tensor` must hold strings.
std::string JsonTensor(const Tensor& tensor);

// Whether the text is valid UTF-8, which every JSON reader accepts.
bool IsUtf8(std::string_view text);

}  // namespace oncilla::tool
