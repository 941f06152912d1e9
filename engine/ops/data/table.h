// Ops on tables: keys in ascending order, of any shape [n], with values [n, ..]. Strings are
// ordered byte by byte. Tables are looked up on the host.
//
// TableMake keys, values -> keys, values in order; two different values for one key fail the run.
// TableFind keys, values, query, default -> the values for query's elements, default for those that
// are not in the table: [query's shape, values' shape without its first axis]. TableInsert keys,
// values, new keys, new values -> keys, values; new values replace old ones. TableRemove keys,
// values, removed -> keys, values.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {}  // namespace oncilla
