// Failures that name the node that they concern, as the model's file names it.
#pragma once

#include <type_traits>
#include <utility>

#include "engine/base/caught.h"
#include "engine/graph/graph.h"

namespace oncilla {

// The name of a node in messages: that of the model's node that it was made from, if there is only
// one.
const std::string& NameInModel(const Node& node);

// Prefixes the message with "node 'conv1' (Conv): ", and adds the name as a detail.
Status AtNode(Status status, std::string_view name, std::string_view op);
Status AtNode(Status status, const Node& node);

// Calls `work`, which returns a Status or a Result, and returns its result, or CaughtStatus()
// (caught.h) if it threw; a failure that names no node yet names this one.
template <class F>
std::invoke_result_t<F> FencedAtNode(F&& work, const Node& node) {
  auto done = Fenced(std::forward<F>(work));
  if (done.ok()) return done;
  Status failed;
  if constexpr (std::is_same_v<std::invoke_result_t<F>, Status>) {
    failed = std::move(done);
  } else {
    failed = done.status();
  }
  if (!Details(failed).node.empty()) return failed;
  return AtNode(std::move(failed), node);
}

}  // namespace oncilla
