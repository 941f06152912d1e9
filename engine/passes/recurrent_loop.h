// Recognises a loop as a recurrent layer: which of its loop-carried values are the state, the list
// of inputs, the list of results and counters, and which weights its body uses. The caller must
// find out which function the body computes; activations are not examined here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace oncilla {

struct RecurrentLoop {
  const Graph* body = nullptr;
  // Indices of loop-carried values.
  int inputs = -1;            // the list that each step reads an element of, [N, F]
  std::vector<int> states;    // [N, H] each; first the one that is multiplied by weights
  std::vector<int> results;   // lists that store the new first state at the index of the step,
  std::vector<int> lasts;     // or always at 0, so that they end with the last state
  std::vector<int> counters;  // start at 0 and count steps
  std::vector<int> unchanged;
  // Upper bounds of the counters: constants of the condition, or loop-carried values.
  std::vector<int64_t> limits;
  std::vector<int> limit_values;

  ValueId step = kNoValue;    // in the body: the element of `inputs` that it reads
  std::vector<ValueId> next;  // in the body: the new states
  Tensor input_weights;       // [F, G*H]
  Tensor recurrent_weights;   // [H, G*H]
  // Whether its last H columns multiply a product with the state that a gate has reset before.
  bool resets_before = false;
  // All constants that the body adds: rows of G*H numbers, and scalars.
  std::vector<std::vector<float>> biases;
  std::vector<double> scalars;
  int64_t units = 0, features = 0, gates = 0;
};

// Nothing when the loop is not such a layer. `initial` are the facts of the initial values.
std::optional<RecurrentLoop> ReadRecurrentLoop(const Graph& cond, const Graph& body,
                                               const Facts& initial);

}  // namespace oncilla
