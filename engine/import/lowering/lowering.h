// Lowering: converts one node of a foreign model to canonical nodes, for any format: it has the
// node's inputs and the graph to which nodes are added. Each format derives a class that reads the
// node's attributes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/import/lowering/op_attrs.h"

namespace oncilla {

using Values = std::vector<ValueId>;

// {value}, or the failure.
inline Result<Values> One(Result<ValueId> value) {
  if (!value.ok()) return value.status();
  return Values{*value};
}

// Messages of rows name the node's inputs; the caller of a row adds the node's name.
class Lowering {
 public:
  virtual ~Lowering() = default;

  const std::string& name() const { return name_; }
  // Inputs as the node lists them; an optional one that is not given is kNoValue.
  size_t inputs() const { return inputs_.size(); }
  ValueId in(size_t i) const { return i < inputs_.size() ? inputs_[i] : kNoValue; }
  bool has(size_t i) const { return in(i) != kNoValue; }
  const Values& all_inputs() const { return inputs_; }
  const Graph& graph() const { return graph_; }
  const Fact& fact(ValueId id) const { return graph_.fact(id); }
  const Fact& in_fact(size_t i) const { return graph_.fact(in(i)); }
  DType dtype(size_t i = 0) const { return in_fact(i).dtype; }

  // Adds a canonical node with one output. The node without a `role` gets the foreign node's own
  // name; nodes that prepare its inputs or finish its output are named name/role.
  Result<ValueId> Add(std::string_view op, AttrMap attrs, Values inputs,
                      std::string_view role = "");
  Result<Values> AddAll(std::string_view op, AttrMap attrs, Values inputs,
                        std::string_view role = "");
  // The same with the op's attributes as a struct. The op need not be named if the struct belongs
  // to one op only.
  template <class Attrs>
  Result<ValueId> Add(std::string_view op, const Attrs& attrs, Values inputs,
                      std::string_view role = "") {
    return Add(op, WriteAttrs(attrs), std::move(inputs), role);
  }
  template <class Attrs>
  Result<Values> AddAll(std::string_view op, const Attrs& attrs, Values inputs,
                        std::string_view role = "") {
    return AddAll(op, WriteAttrs(attrs), std::move(inputs), role);
  }
  template <class Attrs>
  requires(!kOpOf<Attrs>.empty()) Result<ValueId> Add(const Attrs& attrs, Values inputs,
                                                      std::string_view role = "") {
    return Add(kOpOf<Attrs>, WriteAttrs(attrs), std::move(inputs), role);
  }
  template <class Attrs>
  requires(!kOpOf<Attrs>.empty()) Result<Values> AddAll(const Attrs& attrs, Values inputs,
                                                        std::string_view role = "") {
    return AddAll(kOpOf<Attrs>, WriteAttrs(attrs), std::move(inputs), role);
  }

  ValueId Constant(Tensor value) { return graph_.AddConstant(std::move(value)); }
  ValueId Ints(std::vector<int64_t> values);          // i64, rank 1
  Result<ValueId> Scalar(DType dtype, double value);  // a number of any type, rank 0
  // These return x itself if nothing has to be done.
  Result<ValueId> Cast(ValueId x, DType to, std::string_view role);
  Result<ValueId> Transpose(ValueId x, std::vector<int64_t> perm, std::string_view role);
  Result<ValueId> Unsqueeze(ValueId x, std::vector<int64_t> axes, std::string_view role);
  // [batch, channels, spatial..] to [batch, spatial.., channels] and back.
  Result<ValueId> ChannelsLast(ValueId x, int rank, std::string_view role = "channels_last");
  Result<ValueId> ChannelsFirst(ValueId x, int rank, std::string_view role = "");
  // Sizes of x along [start, end) as an i64 vector: a constant where they are known.
  Result<ValueId> Sizes(ValueId x, int start, int end, std::string_view role);

  // The integers of an input, which must be known while importing: they become attributes.
  Result<std::vector<int64_t>> KnownInts(size_t input, std::string_view what) const;
  Result<int64_t> KnownInt(size_t input, std::string_view what) const;
  // The input's rank, which must be known, if only because the file states it.
  Result<int> Rank(size_t input, std::string_view what = "the input") const;
  // Whether importing again for the feeds of a run (ImportRequest) would give no rank that is
  // unknown now: then the rank is left to the run.
  virtual bool RanksStayOpen() const { return false; }

 protected:
  Lowering(Graph& graph, std::string name, Values inputs)
      : graph_(graph), name_(std::move(name)), inputs_(std::move(inputs)) {}

  // The rank that the file states for an input, or -1.
  virtual int StatedRank(size_t input) const {
    (void)input;
    return -1;
  }
  // name, or name/role.
  std::string NameOf(std::string_view role) const;

  Graph& graph_;

 private:
  const std::string name_;
  const Values inputs_;
};

}  // namespace oncilla
