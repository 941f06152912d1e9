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
  bool zeros = true;      // else reading an empty element fails the run
  bool from_end = false;  // an index below zero counts from the end; else it fails
  void Fields(auto&& field) {
    field("zeros", zeros);
    field("from_end", from_end);
  }
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

// list, [shape] -> the elements joined along an axis they have, or stacked along a new one. They
// must all be there, and agree in every other size.
struct ListJoinAttrs {
  int64_t axis = 0;    // below zero: from the end of the result's shape
  bool stack = false;  // the axis is a new one
  // An empty list gives a tensor without elements, else it fails. Where the list does not say their
  // shape the last input does, with -1 for a size that is not known; that counts as 0.
  bool may_be_empty = false;
  void Fields(auto&& field) {
    field("axis", axis);
    field("stack", stack);
    field("may_be_empty", may_be_empty);
  }
};

// x, lengths[n] -> list of n parts of x along the axis, together as long as x is there.
struct ListSplitAttrs {
  int64_t axis = 0;
  void Fields(auto&& field) { field("axis", axis); }
};

// Besides: ListInsert list, x, [position[]] -> the list with x before that position, at the end
// without one; ListErase list, [position[]] -> the list without the element there, without its last
// one. Positions below zero count from the end.
//
// ListFromTensor x[n, ..] -> list; ListStack list, [shape] -> [n, ..]; ListGather list,
// indices[n], [shape] -> [n, ..]; ListConcat list, [shape] -> [sum of n, ..], lengths[];
// ListPush list, x -> list; ListPop list, [shape] -> list, x;
// ListLength list -> i32[]; ListResize list, length[] -> list; ListExtend list, list -> list.

}  // namespace oncilla
