// Ops on tables: keys in ascending order, of any shape [n], and values [n, ..] beside them. Strings
// are ordered byte by byte. Tables are looked up on the host.
//
// TableMake keys, values -> keys, values in order; a key that stands there twice with two values
// fails the run. TableFind keys, values, query, default -> values of query's elements, default for
// those that are not there: [query's shape, values' shape but its first axis]. TableInsert keys,
// values, new keys, new values -> keys, values; new ones replace old ones. TableRemove keys, values,
// removed -> keys, values.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

}  // namespace oncilla
