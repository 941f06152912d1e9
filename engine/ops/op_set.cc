// The table of contents of the op set: one line per family.
#include "engine/ops/op_set.h"

#include "engine/ops/control.h"
#include "engine/ops/check.h"
#include "engine/ops/conv.h"
#include "engine/ops/diagonal.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linalg.h"
#include "engine/ops/matmul.h"
#include "engine/ops/indexing.h"
#include "engine/ops/list.h"
#include "engine/ops/movement.h"
#include "engine/ops/norm.h"
#include "engine/ops/pool.h"
#include "engine/ops/recurrent.h"
#include "engine/ops/reduce.h"
#include "engine/ops/resize.h"
#include "engine/ops/sampling.h"
#include "engine/ops/table.h"
#include "engine/ops/segment.h"
#include "engine/ops/sparse.h"
#include "engine/ops/special.h"
#include "engine/ops/records.h"
#include "engine/ops/strings.h"
#include "engine/ops/image.h"
#include "engine/ops/random.h"
#include "engine/ops/quantize.h"
#include "engine/ops/sequence.h"
#include "engine/ops/text.h"

namespace oncilla {

std::shared_ptr<const OpSet> OpSet::Builtin() {
  auto set = std::make_shared<OpSet>();
  for (std::span<const OpDef> family : {
           ElementwiseOps(),
           ControlOps(),
           ConvOps(),
           ListOps(),
           CheckOps(),
           ConvOps(),
           DiagonalOps(),
           LinalgOps(),
           MatMulOps(),
           IndexingOps(),
           MovementOps(),
           PadOps(),
           SelectOps(),
           ShapeOps(),
           SliceOps(),
           SpaceOps(),
           NormOps(),
           PoolOps(),
           RecurrentOps(),
           ReduceOps(),
           ResizeOps(),
           SamplingOps(),
           TableOps(),
           SegmentOps(),
           SparseOps(),
           SpecialOps(),
           RecordOps(),
           StringOps(),
           UnicodeOps(),
           ImageOps(),
           BoxOps(),
           RandomOps(),
           QuantizeOps(),
           SequenceOps(),
           TextOps(),
       }) {
    // Names of built-in ops are unique; a test adds the families one by one and checks.
    (void)set->Add(family);
  }
  return set;
}

const OpDef* OpSet::Find(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

Status OpSet::Add(std::span<const OpDef> family) {
  for (const OpDef& op : family) {
    if (!by_name_.emplace(op.name, &op).second) {
      return Error(Code::kAlreadyExists, "there is already an op ", op.name);
    }
    ops_.push_back(&op);
  }
  return Status();
}

}  // namespace oncilla
