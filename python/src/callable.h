// Callables, as their calls use them.
#pragma once

#include "python/src/requests.h"

namespace oncilla_python {

struct Callable {
  Handle<oncilla_callable, oncilla_callable_free> handle;
  nb::object model, convert;
  nb::tuple inputs;
  bool bytes = false, plain = true;  // as the model's
  ~Callable() { FreeUnlocked(handle); }
};

// The inputs of a call, in the callable's order.
struct Fed {
  std::vector<Feed> feeds;
  std::vector<const oncilla_tensor*> tensors;
};

Fed FeedsOf(const Callable& callable, nb::handle values);

}  // namespace oncilla_python
