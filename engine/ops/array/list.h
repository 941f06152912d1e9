// Attributes of ops on lists of tensors (tensor_list.h). Lists live on the host, so these run
// there.
//
// An element that was reserved and never written reads as zeros when its shape is known: from the
// list, or from the optional last input, a shape with -1 for what is not known.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// length[] -> a list of so many empty elements. `type` is the list's fact as text:
// "list<f32[?,3]>".
struct ListReserveAttrs {
  std::string type;
  void Fields(auto&& field) { field("type", type); }
};

// list, index[], [shape] -> the element.
struct ListGetAttrs {
  bool zeros = true;  // else reading an empty element fails the run
  void Fields(auto&& field) { field("zeros", zeros); }
};

// list, index[], x -> the list with x there.
struct ListSetAttrs {
  bool grow = false;  // an index at or above the length makes the list longer; else it fails
  void Fields(auto&& field) { field("grow", grow); }
};

// list, indices[n], x[n, ..] -> the list with rows of x there.
struct ListScatterAttrs {
  bool grow = true;
  void Fields(auto&& field) { field("grow", grow); }
};

// Besides: ListFromTensor x[n, ..] -> list; ListStack list, [shape] -> [n, ..]; ListGather list,
// indices[n], [shape] -> [n, ..]; ListConcat list, [shape] -> [sum of n, ..], lengths[];
// ListSplit x, lengths[n] -> list; ListPush list, x -> list; ListPop list, [shape] -> list, x;
// ListLength list -> i32[]; ListResize list, length[] -> list.

}  // namespace oncilla
