// Making a plan: classify nodes, drop what nobody needs, order by device, give every value a home,
// pack the arenas.
#include "engine/compile/plan.h"

#include <algorithm>
#include <set>

#include "engine/compile/plan_memo.h"
#include "engine/graph/at_node.h"

namespace oncilla {
namespace {

constexpr int kNever = -1;

bool IsPlanInput(const Node& node, size_t i) { return node.op->traits.IsPlanInput(i); }

class Planner {
 public:
  Planner(std::shared_ptr<const CompiledGraph> compiled, std::span<Device* const> devices,
          Classified classified, const SegmentStart& start, const PlanOptions& options)
      : start_(start),
        options_(options),
        graph_(compiled->graph),
        compiled_(*compiled),
        devices_(devices),
        in_(std::move(classified)),
        plan_(std::make_shared<Plan>()) {
    plan_->compiled = std::move(compiled);
    homes_.resize(graph_.values().size() * devices.size());
    for (const auto& [id, device] : start.on_device) given_on_[Index(id)] = device;
  }

  Result<std::shared_ptr<Plan>> Run() {
    plan_->fates.assign(graph_.nodes().size(), NodeFate::kElsewhere);
    for (NodeId id : in_.settled_nodes) FateOf(id) = NodeFate::kSettled;
    for (NodeId id : in_.steps) FateOf(id) = NodeFate::kUnneeded;
    for (NodeId id : in_.host_nodes) FateOf(id) = NodeFate::kHost;
    FindOutputs();
    DropUnneeded();
    Order();
    CountReads();
    for (Stretch& stretch : plan_->stretches) ONCILLA_TRY(PlaceStretch(stretch));
    PlaceOutputs();
    ONCILLA_TRY(Pack());
    plan_->host_nodes = in_.host_nodes;
    plan_->done = in_.done;
    plan_->complete = in_.complete;
    Remember();
    return plan_;
  }

 private:
  const Fact& FactOf(ValueId id) const { return in_.facts[Index(id)]; }
  Availability StateOf(ValueId id) const { return in_.values[Index(id)]; }
  NodeFate& FateOf(NodeId id) { return plan_->fates[Index(id)]; }
  Home& HomeOf(ValueId id, int device) {
    return homes_[Index(id) * devices_.size() + static_cast<size_t>(device)];
  }

  void Remember() {
    auto memo = std::make_shared<PlanMemo>();
    memo->begun = start_.done;
    memo->kernels.resize(graph_.nodes().size());
    for (const Stretch& stretch : plan_->stretches) {
      for (const PlannedStep& step : stretch.steps) memo->kernels[Index(step.node)] = step.kernel;
    }
    memo->classified = std::move(in_);
    for (ArenaPlan& arena : plan_->arenas) memo->arenas.push_back(std::exchange(arena.found, {}));
    plan_->memo = std::move(memo);
  }

  // The earlier plan's kernel of a node, where it was prepared for the same: a kernel knows what
  // plan inputs hold, but of other operands no more than their types.
  std::shared_ptr<Kernel> EarlierKernel(const Node& node, NodeId id) const {
    const OpTraits& traits = node.op->traits;
    if (options_.earlier == nullptr || traits.is_random || traits.has_effects) return nullptr;
    const std::shared_ptr<Kernel>& kernel = options_.earlier->kernels[Index(id)];
    if (kernel == nullptr) return nullptr;
    const auto same_type = [&](ValueId value) {
      if (in_.same[Index(value)]) return true;
      const Fact& fact = options_.earlier->classified.facts[Index(value)];
      return fact.fixed() && fact.desc() == FactOf(value).desc();
    };
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == kNoValue || in_.same[Index(input)]) continue;
      if (IsPlanInput(node, i) || !same_type(input)) return nullptr;
    }
    return std::ranges::all_of(node.outputs, same_type) ? kernel : nullptr;
  }

  // Finds the values that leave the segment: graph outputs, inputs of host nodes, and what later
  // nodes read.
  void FindOutputs() {
    std::vector<bool> wanted(graph_.values().size());
    for (const NamedValue& output : graph_.outputs()) wanted[Index(output.value)] = true;
    for (ValueId id : in_.wanted_on_host) wanted[Index(id)] = true;
    for (NodeId id : in_.host_nodes) {
      for (ValueId v : graph_.node(id).inputs) {
        if (v != kNoValue) wanted[Index(v)] = true;
      }
    }
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      if (in_.done[n]) continue;
      for (ValueId v : graph_.node(NodeId{n}).inputs) {
        if (v != kNoValue) wanted[Index(v)] = true;
      }
    }
    for (uint32_t i = 0; i < wanted.size(); ++i) {
      const ValueId id{i};
      if (!wanted[i]) continue;
      if (StateOf(id) == Availability::kPlanned) {
        SegmentOutput output;
        output.value = id;
        output.desc = FactOf(id).desc();
        plan_->outputs.push_back(std::move(output));
      } else if (StateOf(id) == Availability::kSettled && FactOf(id).has_value()) {
        plan_->settled.emplace_back(id, FactOf(id).value);
      }
    }
  }

  // Drops steps whose results only settled nodes read.
  void DropUnneeded() {
    std::vector<bool> needed(graph_.values().size());
    for (const SegmentOutput& output : plan_->outputs) needed[Index(output.value)] = true;
    std::vector<NodeId> kept;
    for (auto it = in_.steps.rbegin(); it != in_.steps.rend(); ++it) {
      const Node& node = graph_.node(*it);
      const bool any = std::any_of(node.outputs.begin(), node.outputs.end(),
                                   [&](ValueId id) { return needed[Index(id)]; });
      if (!any && !node.op->traits.has_effects) continue;
      kept.push_back(*it);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != kNoValue && !IsPlanInput(node, i))
          needed[Index(node.inputs[i])] = true;
      }
    }
    std::reverse(kept.begin(), kept.end());
    in_.steps = std::move(kept);
  }

  // A topological order that stays on one device as long as a node there is ready, so that
  // stretches are long.
  void Order() {
    // How many planned inputs each step still waits for, and which steps read each one.
    std::vector<int> waiting(graph_.nodes().size(), 0);
    std::vector<std::vector<uint32_t>> next(graph_.nodes().size());
    std::vector<bool> planned(graph_.nodes().size());
    for (NodeId id : in_.steps) planned[Index(id)] = true;
    std::vector<std::set<uint32_t>> ready(devices_.size());
    for (NodeId id : in_.steps) {
      for (ValueId v : graph_.node(id).inputs) {
        if (v == kNoValue || graph_.value(v).producer == kNoNode) continue;
        const uint32_t producer = Index(graph_.value(v).producer);
        if (!planned[producer] || StateOf(v) != Availability::kPlanned) continue;
        ++waiting[Index(id)];
        next[producer].push_back(Index(id));
      }
      if (waiting[Index(id)] == 0) ready[graph_.node(id).device].insert(Index(id));
    }
    int device = kNever;
    for (size_t left = in_.steps.size(); left > 0; --left) {
      if (device == kNever || ready[device].empty()) {
        // Switch to the device whose first ready node comes earliest in the graph.
        device = kNever;
        for (size_t d = 0; d < ready.size(); ++d) {
          if (ready[d].empty()) continue;
          if (device == kNever || *ready[d].begin() < *ready[device].begin()) {
            device = static_cast<int>(d);
          }
        }
        plan_->stretches.emplace_back().device = device;
      }
      // Take the first ready step in graph order, and release the steps that waited for it.
      const uint32_t n = *ready[device].begin();
      ready[device].erase(ready[device].begin());
      PlannedStep step;
      step.node = NodeId{n};
      plan_->stretches.back().steps.push_back(std::move(step));
      for (uint32_t reader : next[n]) {
        if (--waiting[reader] == 0) ready[graph_.node(NodeId{reader}).device].insert(reader);
      }
    }
  }

  // Counts how often each (value, device) is read: after the last read its memory may be reused.
  void CountReads() {
    reads_.assign(homes_.size(), 0);
    auto at = [&](ValueId id, int device) -> int& {
      return reads_[Index(id) * devices_.size() + static_cast<size_t>(device)];
    };
    for (const Stretch& stretch : plan_->stretches) {
      for (const PlannedStep& step : stretch.steps) {
        const Node& node = graph_.node(step.node);
        for (size_t i = 0; i < node.inputs.size(); ++i) {
          if (node.inputs[i] != kNoValue && !IsPlanInput(node, i))
            ++at(node.inputs[i], node.device);
        }
      }
    }
    // Copies and outputs count as reads until the end of the plan, so their sources are never
    // overwritten.
    for (const SegmentOutput& output : plan_->outputs) {
      at(output.value, graph_.node(graph_.value(output.value).producer).device) += kPinned;
    }
    for (uint32_t i = 0; i < graph_.values().size(); ++i) {
      const NodeId producer = graph_.value(ValueId{i}).producer;
      if (producer == kNoNode || StateOf(ValueId{i}) != Availability::kPlanned) continue;
      for (size_t d = 0; d < devices_.size(); ++d) {
        if (static_cast<int>(d) != graph_.node(producer).device && at(ValueId{i}, d) > 0) {
          at(ValueId{i}, graph_.node(producer).device) += kPinned;
        }
      }
    }
  }

  // `what` is what the node needs it for, in messages: "its result 0".
  int NewStorage(int device, int64_t bytes, NodeId node, std::string_view what, size_t which) {
    Storage storage;
    storage.device = device;
    storage.bytes = std::max<int64_t>(bytes, 1);
    storage.first = storage.last = clock_;
    plan_->storages.push_back(storage);
    pending_.push_back(0);
    needed_for_.push_back({node, what, which});
    return static_cast<int>(plan_->storages.size()) - 1;
  }

  void Touch(const Home& home) {
    if (home.kind != Home::kStorage) return;
    int& last = plan_->storages[home.index].last;
    last = std::max(last, clock_);
  }

  int& Reads(ValueId id, int device) {
    return reads_[Index(id) * devices_.size() + static_cast<size_t>(device)];
  }

  // Gives a value its home on a device; the reads of the value become reads of the home's storage.
  void SetHome(ValueId id, int device, Home home) {
    HomeOf(id, device) = home;
    if (home.kind == Home::kStorage) pending_[home.index] += Reads(id, device);
  }

  int GivenOn(ValueId id) const {
    const auto it = given_on_.find(Index(id));
    return it == given_on_.end() ? 0 : it->second;
  }

  int InputIndex(ValueId id) {
    auto it = std::find(plan_->inputs.begin(), plan_->inputs.end(), id);
    if (it == plan_->inputs.end()) {
      it = plan_->inputs.insert(it, id);
      plan_->input_devices.push_back(GivenOn(id));
    }
    return static_cast<int>(it - plan_->inputs.begin());
  }

  // Makes the value readable on the stretch's device, copying it there if it is elsewhere.
  Status Bring(Stretch& stretch, NodeId node, size_t input, ValueId id) {
    const int device = stretch.device;
    if (HomeOf(id, device).kind != Home::kNone) return Status();
    const int64_t bytes = FactOf(id).desc().bytes();
    Home home;
    if (PackedOf(node, input) != nullptr) return Status();  // read through the packed copy
    if (StateOf(id) == Availability::kSettled) {
      // A value known at plan time is uploaded when the instance is made.
      home = {Home::kStorage, NewStorage(device, bytes, node, "its input ", input), {}};
      plan_->storages[home.index].first = 0;
      plan_->storages[home.index].last = kEnd;  // live until the instance ends, in every run
      SetHome(id, device, home);
      pending_[home.index] += kPinned;  // uploaded once per instance, so it must not be overwritten
      plan_->uploads.push_back({home, device, FactOf(id).value});
      return Status();
    }
    Home from;
    int from_device = 0;
    // Given to the segment: readable in place if it is on this device, or if both use host memory.
    if (StateOf(id) == Availability::kGiven) {
      from = {Home::kInput, InputIndex(id), {}};
      from_device = GivenOn(id);
      if (from_device == device || (from_device == 0 && devices_[device]->info().host_memory)) {
        SetHome(id, device, from);
        return Status();
      }
    } else {
      from_device = graph_.node(graph_.value(id).producer).device;
      from = HomeOf(id, from_device);
      Touch(from);
      // The upload from host memory may still be under way when later steps run.
      if (from.kind == Home::kStorage && devices_[from_device]->info().host_memory) {
        plan_->storages[from.index].last = kEnd;
      }
    }
    home = {Home::kStorage, NewStorage(device, bytes, node, "its input ", input), {}};
    SetHome(id, device, home);
    stretch.copies.push_back({from_device, from, home, bytes});
    return Status();
  }

  // The clock ticks once for the copies of a stretch and once for each of its steps.
  Status PlaceStretch(Stretch& stretch) {
    ++clock_;
    for (const PlannedStep& step : stretch.steps) {
      const Node& node = graph_.node(step.node);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == kNoValue || IsPlanInput(node, i)) continue;
        const NodeId producer = graph_.value(node.inputs[i]).producer;
        const bool local = producer != kNoNode &&
                           StateOf(node.inputs[i]) == Availability::kPlanned &&
                           graph_.node(producer).device == stretch.device;
        if (!local) {
          ONCILLA_TRY(Bring(stretch, step.node, i, node.inputs[i]));
        }
      }
    }
    std::vector<PlannedStep> kept;
    for (PlannedStep& step : stretch.steps) {
      step.clock = ++clock_;
      ONCILLA_ASSIGN(const bool runs, FencedAtNode([&] { return PlaceStep(step, stretch.device); },
                                                   graph_.node(step.node)));
      FateOf(step.node) = runs ? NodeFate::kStep : NodeFate::kView;
      ++placed_;
      if (options_.progress) {
        options_.progress(static_cast<double>(placed_) / static_cast<double>(in_.steps.size()));
      }
      if (runs) kept.push_back(std::move(step));
    }
    stretch.steps = std::move(kept);
    return Status();
  }

  // Gives the step its homes and its kernel. Returns false if it needs no kernel, because its
  // output shares its input's memory.
  Result<bool> PlaceStep(PlannedStep& step, int device) {
    const Node& node = graph_.node(step.node);
    const OpTraits& traits = node.op->traits;
    // Where each input is read from.
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == kNoValue || IsPlanInput(node, i)) {
        step.inputs.push_back({});
        continue;
      }
      const BufferView* packed = PackedOf(step.node, i);
      const Home home = packed != nullptr ? Home{Home::kConstant, 0, *packed} : HomeOf(id, device);
      Touch(home);
      step.inputs.push_back(home);
    }

    // A view shares its input's storage. A packed constant cannot be shared: its layout is another
    // one.
    if (traits.is_view && step.inputs[0].kind != Home::kConstant) {
      Release(node, device);
      SetHome(node.outputs[0], device, step.inputs[0]);
      return false;
    }
    int reuse = -1;
    // An output has storage of its own, unless it may overwrite an input with no other reader.
    if (traits.may_overwrite || traits.may_overwrite_first) reuse = OverwritableInput(node, step);
    Release(node, device);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const int64_t bytes = FactOf(node.outputs[i]).desc().bytes();
      const int storage =
          i == 0 && reuse >= 0 ? reuse : NewStorage(device, bytes, step.node, "its result ", i);
      const Home home{Home::kStorage, storage, {}};
      SetHome(node.outputs[i], device, home);
      Touch(home);
      step.outputs.push_back(home);
    }
    step.kernel = EarlierKernel(node, step.node);
    if (step.kernel == nullptr) {
      // The kernel is prepared for these very shapes.
      Facts out;
      for (ValueId id : node.outputs) out.push_back(FactOf(id));
      const Facts in = InputsOf(node, step.node);
      const NodeView view{node.op, &node.attrs, in, out, node.name};
      auto kernel = devices_[device]->Prepare(view, options_.end);
      if (!kernel.ok()) {
        return WithDevice(AtNode(kernel.status(), node), compiled_.placement.devices[device]);
      }
      step.kernel = *std::move(kernel);
    }
    if (step.kernel->scratch_bytes() > 0) {
      step.scratch =
          NewStorage(device, step.kernel->scratch_bytes(), step.node, "its scratch memory ", 0);
    }
    return true;
  }

  const BufferView* PackedOf(NodeId node, size_t input) const {
    const auto it = compiled_.packed.find({Index(node), static_cast<int>(input)});
    return it == compiled_.packed.end() ? nullptr : &it->second;
  }

  // What the kernel may know of its inputs: their types, the values of plan inputs, and the
  // contents of packed constants.
  Facts InputsOf(const Node& node, NodeId id) const {
    Facts in;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == kNoValue) {
        in.push_back(Fact::Absent());
      } else if (IsPlanInput(node, i)) {
        in.push_back(FactOf(input));
      } else if (PackedOf(id, i) != nullptr) {
        in.push_back(FactOf(input));
        in.back().constant = true;
      } else {
        in.push_back(Fact::Of(FactOf(input).desc()));
      }
    }
    return in;
  }

  // Ends this node's reads. Storage that nobody else will read may then be overwritten.
  void Release(const Node& node, int device) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || IsPlanInput(node, i)) continue;
      const Home& home = HomeOf(node.inputs[i], device);
      if (home.kind == Home::kStorage) --pending_[home.index];
    }
  }

  int OverwritableInput(const Node& node, const PlannedStep& step) {
    const TensorDesc out = FactOf(node.outputs[0]).desc();
    // An input may be overwritten if it has the output's dtype and shape and all remaining reads of
    // its storage are this step's own.
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i].kind != Home::kStorage) continue;
      if (FactOf(node.inputs[i]).desc() != out) continue;
      const int storage = step.inputs[i].index;
      int own = 0;
      for (size_t j = 0; j < step.inputs.size(); ++j) {
        const bool same = step.inputs[j].kind == Home::kStorage && step.inputs[j].index == storage;
        if (same && !IsPlanInput(node, j)) ++own;
      }
      if (node.op->traits.may_overwrite_first && (i > 0 || own > 1)) break;
      if (pending_[storage] == own && plan_->storages[storage].bytes >= out.bytes()) {
        return storage;
      }
    }
    return -1;
  }

  // Whether the value stays on the device that computes it: if the caller asked for it there, or if
  // only later nodes on that device read it.
  bool StaysOnDevice(const SegmentOutput& output) const {
    if (devices_[output.device]->info().host_memory || output.desc.bytes() == 0) return false;
    bool fetched = false, asked = true;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (graph_.outputs()[i].value != output.value) continue;
      fetched = true;
      asked &= i < start_.keep.size() && start_.keep[i];
    }
    if (fetched) return asked;
    for (ValueId id : in_.wanted_on_host) {
      if (id == output.value) return false;
    }
    for (uint32_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.node(NodeId{n});
      const bool later = !in_.done[n];
      const bool host = plan_->fates[n] == NodeFate::kHost;
      if (!later && !host) continue;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != output.value) continue;
        const bool there = later && node.device == output.device && !IsPlanInput(node, i) &&
                           !RunsOnHost(graph_, node);
        if (!there || compiled_.fixes_shapes[Index(output.value)]) return false;
      }
    }
    return true;
  }

  // Lets an output use its own memory instead of the arena where the device's memory is the host's
  // or the output stays on the device. Otherwise it is downloaded.
  void PlaceOutputs() {
    for (size_t i = 0; i < plan_->outputs.size(); ++i) {
      SegmentOutput& output = plan_->outputs[i];
      output.device = graph_.node(graph_.value(output.value).producer).device;
      output.home = HomeOf(output.value, output.device);
      const bool stays = StaysOnDevice(output);
      if (output.home.kind == Home::kInput) {
        output.on_device = stays && plan_->input_devices[output.home.index] == output.device;
      }
      if (output.home.kind != Home::kStorage) continue;
      Storage& storage = plan_->storages[output.home.index];
      storage.last = kEnd;
      if (!stays && !devices_[output.device]->info().host_memory) continue;
      if (storage.output < 0 && storage.bytes == output.desc.bytes()) {
        storage.output = static_cast<int>(i);
        output.direct = true;
        output.on_device = stays;
      } else if (stays && storage.output >= 0) {
        output.same_as = storage.output;
        output.on_device = true;
      }
    }
  }

  // What a storage was first needed for.
  struct Need {
    NodeId node;
    std::string_view what;
    size_t which = 0;
  };

  // PackArena would name the buffer by its index.
  Status CheckFits(const BufferUse& use, const ArenaOptions& options, const Need& need) const {
    if (use.bytes <= options.largest()) return Status();
    return AtNode(Exhausted(need.what, need.which, " takes ", use.bytes,
                            " bytes; the largest allocation of the device is ", options.largest()),
                  graph_.node(need.node));
  }

  Status Pack() {
    for (size_t d = 0; d < devices_.size(); ++d) {
      std::vector<BufferUse> uses;
      std::vector<size_t> which;
      for (size_t s = 0; s < plan_->storages.size(); ++s) {
        const Storage& storage = plan_->storages[s];
        if (storage.device != static_cast<int>(d) || storage.output >= 0) continue;
        uses.push_back({storage.bytes, storage.first, storage.last});
        which.push_back(s);
      }
      const DeviceInfo& info = devices_[d]->info();
      const ArenaOptions options{info.alignment_bytes, info.max_allocation_bytes,
                                 options_.arena_work};
      for (size_t i = 0; i < which.size(); ++i) {
        ONCILLA_TRY(WithDevice(CheckFits(uses[i], options, needed_for_[which[i]]),
                               compiled_.placement.devices[d]));
      }
      const ArenaOrder* like = options_.earlier != nullptr ? &options_.earlier->arenas[d] : nullptr;
      auto arena = PackArena(uses, options, like);
      if (!arena.ok()) return WithDevice(arena.status(), compiled_.placement.devices[d]);
      for (size_t i = 0; i < which.size(); ++i) {
        plan_->storages[which[i]].block = arena->places[i].block;
        plan_->storages[which[i]].offset = arena->places[i].offset;
      }
      plan_->arenas.push_back(*std::move(arena));
    }
    return Status();
  }

  static constexpr int kPinned = 1 << 20;  // a count of reads that never reaches zero
  static constexpr int kEnd = 1 << 30;     // later than any step on the plan's clock

  const SegmentStart& start_;
  const PlanOptions& options_;
  size_t placed_ = 0;  // steps whose kernels are ready
  const Graph& graph_;
  const CompiledGraph& compiled_;
  std::span<Device* const> devices_;
  Classified in_;
  std::shared_ptr<Plan> plan_;
  std::map<uint32_t, int> given_on_;  // values that are given on a device other than the host
  std::vector<Home> homes_;           // per (value, device)
  std::vector<int> reads_;            // per (value, device)
  std::vector<int> pending_;          // per storage: reads still to come
  std::vector<Need> needed_for_;      // per storage
  int clock_ = 0;
};

}  // namespace

Result<std::shared_ptr<Plan>> MakePlan(std::shared_ptr<const CompiledGraph> compiled,
                                       std::span<Device* const> devices, const SegmentStart& start,
                                       const PlanOptions& options) {
  const Classified* earlier = options.earlier != nullptr ? &options.earlier->classified : nullptr;
  ONCILLA_ASSIGN(Classified classified, Classify(*compiled, *devices[0], start, earlier));
  return Planner(std::move(compiled), devices, std::move(classified), start, options).Run();
}

}  // namespace oncilla
