// Requests in Triton's buffers, conversion to tensors, and writing of results.
#pragma once

#include <oncilla/oncilla.hpp>
#include <string>
#include <utility>
#include <vector>

#include "integrations/triton/src/abi.h"

namespace oncilla::triton {

// An input of a request: where its bytes are. They stay valid until the request is released.
struct InputView {
  std::string name;
  DataType type = kNoType;
  std::vector<int64_t> dims;
  std::vector<std::pair<const char*, size_t>> buffers;
  size_t bytes() const;
};

// A request while it is executed.
struct Request {
  TRITONBACKEND_Request* handle = nullptr;
  TRITONBACKEND_Response* response = nullptr;  // null once it was sent
  std::vector<InputView> inputs;               // sorted by name
  std::vector<std::string> outputs;            // those that are wanted
  int64_t rows = 1;                            // of its batch axis, where the model takes batches
  std::string key;                             // requests of equal keys can be joined
  int64_t timeout_us = 0;                      // 0: none
};

// Reads and checks a request: memory that the host can read, and as many bytes as the shapes say.
// `batches`: the first axis of every input is its batch.
void Read(Request& request, bool batches);

// One input of several requests as one tensor, concatenated along the first axis. If there is one
// request and its bytes are contiguous and aligned, the tensor uses them in place.
Tensor Join(const std::vector<const InputView*>& parts);

// Writes rows [first, first + count) of an output into a response; count -1: all of it.
void Write(TRITONBACKEND_Response* response, const std::string& name, const Tensor& tensor,
           int64_t first, int64_t count);

// Whether the client cancelled the request; false where Triton cannot tell.
bool IsCancelled(const Request& request) noexcept;

}  // namespace oncilla::triton
