// A loop read as a recurrent layer: which of the values that it carries are the state, the list of
// inputs, the list of results and counters, and with which weights its body computes. What the body
// computes with them is for the reader to find out; nothing here looks at activations.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace oncilla {

struct RecurrentLoop {
  const Graph* body = nullptr;
  // Numbers of values that the loop carries.
  int inputs = -1;            // list of what each step reads, [N, F]
  std::vector<int> states;    // [N, H] each: the one that is multiplied with weights comes first
  std::vector<int> results;   // lists that take the new first state at each step, at its number ..
  std::vector<int> lasts;     // .. or always at 0, so that they end with the last one
  std::vector<int> counters;  // begin at 0 and count steps
  std::vector<int> unchanged;
  // The numbers that the counters stay below: constants of the condition, or values of the loop.
  std::vector<int64_t> limits;
  std::vector<int> limit_values;

  ValueId step = kNoValue;      // of the body: what it reads of `inputs`
  std::vector<ValueId> next;    // of the body: new states
  Tensor input_weights;         // [F, G*H]
  Tensor recurrent_weights;     // [H, G*H]
  // The last H columns of it multiply a product with the state, which a gate resets before.
  bool resets_before = false;
  // Constants that are added anywhere: rows of G*H numbers, and single ones.
  std::vector<std::vector<float>> biases;
  std::vector<double> scalars;
  int64_t units = 0, features = 0, gates = 0;
};

// Nothing when the loop is no such layer. `initial` are the facts of what the loop starts with.
std::optional<RecurrentLoop> ReadRecurrentLoop(const Graph& cond, const Graph& body,
                                               const Facts& initial);

}  // namespace oncilla
