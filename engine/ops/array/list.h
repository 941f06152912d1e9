// Attributes of ops on lists of tensors (tensor_list.h). Lists exist on the host only, so these ops
// run there.
//
// An element that was reserved and never written is read as zeros when its shape is known: from the
// list, or from the optional last input, a shape with -1 for unknown sizes.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// length[] -> a list of that many empty elements. `type` is the list's fact as text:
// "list<f32[?,3]>".
struct ListReserveAttrs {
  std::string type;
  void Fields(auto&& field) { field("type", type); }
};

// list, index[], [shape] -> the element.
struct ListGetAttrs {
  bool zeros = true;      // else reading an empty element fails the run
  bool from_end = false;  // an index below zero counts from the end; else it fails
  void Fields(auto&& field) {
    field("zeros", zeros);
    field("from_end", from_end);
  }
};

// list, index[], x -> the list with element `index` set to x.
struct ListSetAttrs {
  bool grow = false;  // an index at or above the length makes the list longer; else it fails
  void Fields(auto&& field) { field("grow", grow); }
};

// list, indices[n], x[n, ..] -> the list with the elements at `indices` set to the rows of x.
struct ListScatterAttrs {
  bool grow = true;
  void Fields(auto&& field) { field("grow", grow); }
};

// list, [shape] -> the elements concatenated along an existing axis, or stacked along a new one.
// None may be empty, and they must agree in every other size.
struct ListJoinAttrs {
  int64_t axis = 0;    // negative: from the end of the result's shape
  bool stack = false;  // the axis is a new one
  // An empty list gives a tensor without elements, else it fails. If the list does not give their
  // shape, the last input does, with -1 for an unknown size, which counts as 0.
  bool may_be_empty = false;
  void Fields(auto&& field) {
    field("axis", axis);
    field("stack", stack);
    field("may_be_empty", may_be_empty);
  }
};

// x, lengths[n] -> list of n parts of x along the axis; the lengths add up to its size.
struct ListSplitAttrs {
  int64_t axis = 0;
  void Fields(auto&& field) { field("axis", axis); }
};

// Further ops: ListInsert list, x, [position[]] -> the list with x inserted before that position,
// or at the end without one; ListErase list, [position[]] -> the list without that element, or
// without the last one. Negative positions count from the end.
//
// ListFromTensor x[n, ..] -> list; ListStack list, [shape] -> [n, ..]; ListGather list,
// indices[n], [shape] -> [n, ..]; ListConcat list, [shape] -> [sum of n, ..], lengths[];
// ListPush list, x -> list; ListPop list, [shape] -> list, x;
// ListLength list -> i32[]; ListResize list, length[] -> list; ListExtend list, list -> list.

}  // namespace oncilla
