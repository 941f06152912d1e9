// Lowers the functions of a StableHLO module to canonical nodes.
//
// A builder lowers one region into one graph. Calls of functions are lowered in place; the regions
// of loops and branches become functions of the target module, those of reductions, scatters and
// sorts small graphs of scalars (engine/import/xla).
//
// StableHLO spells every broadcast out, and stores a constant for all elements as one element. Such
// values stay narrow: the elements before the broadcast, which elementwise ops broadcast by
// themselves, so that the graph has the form that other formats' graphs have.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "engine/import/lowering/lowering.h"
#include "engine/import/stablehlo/module.h"

namespace oncilla {

struct HloValue {
  ValueId id = kNoValue;  // none for a token
  // Whether `id` has yet to be broadcast to the value's type: it is a scalar, or has axes of size
  // one.
  bool narrow = false;
  ValueId shape = kNoValue;  // of a narrow value whose type is open: i64
  int type = -1;
  ValueId full = kNoValue;  // of a narrow value, once something needed all elements
  ValueId imag = kNoValue;  // of complex numbers, which are never narrow: `id` is the real part
};
using HloValues = std::vector<HloValue>;

// What the builders of one module share.
struct HloState {
  const HloModule& source;
  Module& target;
  int64_t budget = int64_t{1} << 20;  // ops that may still be lowered
  int depth = 0;                      // calls and regions around the current op
};

class HloBuilder;

// One op being lowered, with its operands in full.
class HloNode : public Lowering {
 public:
  HloNode(HloBuilder& builder, Graph& graph, std::string name, Values inputs, const HloOp& op,
          const HloModule& source)
      : Lowering(graph, std::move(name), std::move(inputs)),
        builder_(builder),
        op_(op),
        source_(source) {}

  const HloOp& op() const { return op_; }
  const HloModule& source() const { return source_; }
  Result<int64_t> Int(std::string_view attr) const { return source_.Int(op_, attr); }
  Result<std::vector<int64_t>> List(std::string_view attr) const { return source_.Ints(op_, attr); }
  // Numbers before and after, per axis; none when the attribute is empty.
  Status Padding(std::string_view attr, std::vector<int64_t>& low,
                 std::vector<int64_t>& high) const;
  const HloType& result_type(size_t i = 0) const {
    return source_.types[static_cast<size_t>(op_.result_types[i])];
  }
  // A region as a graph of scalars.
  Result<Graph> Body(size_t region);
  // A function of the module that the op names, as a graph of scalars.
  Result<Graph> CalledBody() const;
  // Whether this is within the body of a sort.
  bool sorts() const;

 private:
  HloBuilder& builder_;
  const HloOp& op_;
  const HloModule& source_;
};

struct HloOpRow {
  std::string_view op;
  size_t operands;  // at least
  Result<Values> (*lower)(HloNode&);
};
// Null when there is none. Elementwise ops, constants, broadcasts, calls and control flow are known
// to the builder itself.
const HloOpRow* FindHloOp(std::string_view op);
std::span<const HloOpRow> HloMovementRows();
std::span<const HloOpRow> HloContractionRows();
// Elementwise ops: the operands may be narrow, and so the result.
Result<Values> LowerHloElementwise(HloNode& b);
bool IsHloElementwise(const HloOp& op, const HloModule& source);
// What an op on few integers gives, if these are known while importing: sizes that are computed
// from those of a run's feeds decide what other ops become.
std::optional<Tensor> KnownHloInts(const HloNode& b);
// Custom calls by name, for those that are not elementwise.
Result<Values> LowerHloCustomCall(HloNode& b);

class HloBuilder {
 public:
  HloBuilder(HloState& state, Graph& graph, std::string prefix)
      : state_(state), graph_(graph), prefix_(std::move(prefix)) {}

  // The results of a region for these arguments.
  Result<HloValues> Run(const HloRegion& region, HloValues arguments);
  // All elements of a value.
  Result<ValueId> Full(HloValue& value);
  Result<Graph> BodyOf(const HloOp& op, size_t region);
  Result<Graph> BodyOf(const HloRegion& region, std::map<int, HloValue> outside, Graph body,
                       bool sorts);
  // A value of this type.
  HloValue Whole(ValueId id, int type) const;

 private:
  friend class HloControl;
  friend class HloComplex;
  friend class HloNode;
  const HloType& TypeOf(int type) const { return state_.source.types[static_cast<size_t>(type)]; }
  Result<HloValue*> Find(int number);
  Status Define(const std::vector<int>& numbers, HloValues values);
  Status Lower(const HloOp& op);
  Result<HloValues> LowerOp(const HloOp& op, std::string name);
  Result<HloValues> Call(std::string_view function, const HloOp& op);
  Result<HloValues> Constant(const HloOp& op);
  Result<HloValues> Iota(const HloOp& op, const std::string& name);
  Result<HloValues> Broadcast(const HloOp& op, const std::string& name);
  Result<HloValues> Elementwise(const HloOp& op, const std::string& name);
  Result<HloValues> Assertion(const HloOp& op, const std::string& name);
  Result<HloValues> PassOn(const HloOp& op);
  std::optional<HloValues> MoveSplat(const HloOp& op);

  HloState& state_;
  Graph& graph_;
  const std::string prefix_;
  std::map<int, HloValue> values_;
  int64_t count_ = 0;
  bool sorts_ = false;
};

// Ops of complex numbers, in complex.cc, whose parts are values of their own.
bool IsHloComplex(const HloOp& op, const HloModule& source, const HloValues& operands);
Result<HloValues> LowerHloComplex(HloBuilder& builder, const HloOp& op, const std::string& name,
                                  HloValues operands);

// Loops and branches, in control.cc.
Result<HloValues> LowerHloControl(HloBuilder& builder, const HloOp& op, const std::string& name);

// Lowers a function of the module in place; `arguments` are tensors, or kNoValue for tokens. Names
// of nodes begin with `name`.
Result<Values> LowerHloFunction(const HloModule& source, std::string_view function, Module& target,
                                Graph& graph, const std::string& name, const Values& arguments);

}  // namespace oncilla
