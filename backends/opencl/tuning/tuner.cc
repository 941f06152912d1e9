// Measures the choices of a node against each other: with one set of operands, and a kernel and a
// recording for each choice.
//
// The steps: compile every choice, run each once and compare its first output with that of the
// generic choice, then time the rest in rounds (Race) and take the fastest if it is clearly faster
// than the generic one.
#include "backends/opencl/tuning/tuner.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/tensor/numbers.h"

namespace oncilla::opencl {
namespace {

using Clock = std::chrono::steady_clock;

// The number of rounds over the remaining choices, launches in a round, and the time that these
// should take together.
constexpr int kRounds = 7, kMostLaunches = 20;
constexpr double kRoundUs = 3000;
// A choice that is slower than the best by more than this factor is dropped.
constexpr double kSlow = 1.25;
// A choice replaces the generic one only if it takes less than this fraction of its time: a smaller
// gain is not worth another order of sums.
constexpr double kWorth = 0.97;
// A launch that has not ended after this time hangs.
constexpr std::chrono::milliseconds kPatience(60'000);

// The largest difference that the order of additions explains, as a share of the largest value.
double MostError(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-10;
    case DType::kF16:
      return 4e-3;
    case DType::kBF16:
      return 3e-2;
    default:
      return 1e-4;
  }
}

// Random floats in [-1, 1), or small integers; the same in every run.
Result<Tensor> RandomTensor(const TensorDesc& desc, uint32_t seed) {
  ONCILLA_ASSIGN(Tensor tensor, Tensor::Allocate(desc));
  std::mt19937 random(seed);
  if (IsFloat(desc.dtype)) {
    constexpr size_t kPiece = 4096;
    std::vector<double> values(kPiece);
    for (int64_t at = 0; at < desc.elements(); at += kPiece) {
      const auto count = static_cast<size_t>(std::min<int64_t>(kPiece, desc.elements() - at));
      for (size_t i = 0; i < count; ++i) values[i] = static_cast<double>(random()) / 0x1p31 - 1;
      StoreNumbers(desc.dtype, std::span(values).first(count), {}, tensor.mutable_bytes().data(),
                   at);
    }
    return tensor;
  }
  for (std::byte& byte : tensor.mutable_bytes()) byte = static_cast<std::byte>(random() & 0x77);
  return tensor;
}

// A buffer of the device that is released with this object.
class Buffer {
 public:
  static Result<Buffer> Make(Device& device, int64_t bytes) {
    Buffer buffer;
    buffer.device_ = &device;
    ONCILLA_ASSIGN(buffer.region_, device.AllocateRegion(std::max<int64_t>(bytes, 4)));
    buffer.bytes_ = bytes;
    return buffer;
  }
  Buffer() = default;
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = default;
  ~Buffer() {
    if (region_ != nullptr) (void)device_->ReleaseRegion(std::move(region_)).ok();
  }
  BufferView view() const { return {region_.get(), 0, bytes_}; }

 private:
  Device* device_ = nullptr;
  std::unique_ptr<Region> region_;
  int64_t bytes_ = 0;
};

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// An estimate from several times. Times far above the median are dropped, since something else ran
// then.
struct Estimate {
  double us = 0, spread = 0;
};
Estimate EstimateOf(const std::vector<double>& times) {
  const double median = Median(times);
  std::vector<double> off;
  for (const double t : times) off.push_back(std::abs(t - median));
  const double spread = Median(off);
  double sum = 0, count = 0;
  for (const double t : times) {
    if (t > median + 3 * spread) continue;
    sum += t;
    count += 1;
  }
  return {sum / count, spread};
}

// One choice, prepared and timed.
struct Contender {
  std::string choice;
  Buffer scratch;
  std::unique_ptr<ClKernel> kernel;
  std::unique_ptr<Recording> once, often;
  std::vector<double> times;  // us
  bool out = false;
  Estimate now;
};

// A node's operands, and the runs of its choices.
class Bench {
 public:
  Bench(ClDevice& device, Queue& queue, const LayerNode& node)
      : device_(device), queue_(queue), node_(node) {}

  Status Start() {
    std::vector<Tensor> kept;
    std::vector<std::vector<std::byte>> packed;
    std::vector<Upload> uploads;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const Fact& fact = node_.inputs[i];
      inputs_.emplace_back();
      if (fact.absent() || node_.op->traits.IsPlanInput(i)) continue;
      ONCILLA_ASSIGN(Tensor tensor, RandomTensor(fact.desc(), static_cast<uint32_t>(i)));
      std::span<const std::byte> bytes = tensor.bytes();
      if (fact.constant) {
        ONCILLA_ASSIGN(const Packing packing,
                       device_.PackingFor(node_.view(), static_cast<int>(i)));
        if (packing.write != nullptr) {
          packed.emplace_back(static_cast<size_t>(packing.bytes));
          ONCILLA_TRY(packing.write(tensor, packed.back()));
          bytes = packed.back();
        }
      }
      ONCILLA_ASSIGN(inputs_.back(), Buffer::Make(device_, static_cast<int64_t>(bytes.size())));
      if (!bytes.empty()) uploads.push_back({inputs_.back().view(), bytes});
      kept.push_back(std::move(tensor));
    }
    for (const Fact& fact : node_.outputs) {
      outputs_.emplace_back();
      if (fact.absent()) continue;
      ONCILLA_ASSIGN(outputs_.back(), Buffer::Make(device_, fact.desc().bytes()));
    }
    ONCILLA_ASSIGN(const EventPtr done, device_.Transfer(queue_, uploads, {}));
    return Wait(done);
  }

  // Compiles a choice. Unimplemented if the device does not support it.
  Result<Contender> Prepare(const std::string& choice, const Recipe& recipe, const EarlyEnd& end,
                            int64_t* group_limit = nullptr) {
    Contender c;
    c.choice = choice;
    ONCILLA_ASSIGN(c.kernel,
                   device_.PrepareRecipe(std::string(node_.op->name), recipe,
                                         static_cast<int>(node_.inputs.size()),
                                         static_cast<int>(node_.outputs.size()), group_limit, end));
    if (recipe.scratch_bytes > 0) {
      ONCILLA_ASSIGN(c.scratch, Buffer::Make(device_, recipe.scratch_bytes));
    }
    ONCILLA_ASSIGN(c.once, Record(c, 1));
    return c;
  }

  // Compiles the generic choice, with smaller groups where the compiled kernel needs them, as
  // ClDevice::Prepare does.
  Result<Contender> PrepareGeneric(const KernelRow& row, Capabilities caps, Decision& decision,
                                   const EarlyEnd& end) {
    for (int attempt = 0;; ++attempt) {
      ONCILLA_ASSIGN(Recipe recipe, row.make(node_.view(), caps));
      int64_t limit = caps.max_work_group;
      decision = recipe.decision;
      auto made = Prepare(decision.choice, recipe, end, &limit);
      if (made.ok() || attempt == 3 || limit < 1 || limit >= caps.max_work_group) return made;
      caps.max_work_group = limit;
    }
  }

  // The first output of one run. The buffer is filled first, so that an element that was not
  // written is noticed.
  Result<std::vector<double>> FirstOutput(const Contender& c) {
    const TensorDesc desc = node_.outputs[0].desc();
    ONCILLA_ASSIGN(Tensor y, Tensor::Allocate(desc));
    std::ranges::fill(y.mutable_bytes(), std::byte{0x7f});  // a large number or a NaN
    const Upload blank{outputs_[0].view(), y.bytes()};
    ONCILLA_ASSIGN(EventPtr done, device_.Transfer(queue_, {&blank, 1}, {}));
    ONCILLA_TRY(Wait(done));
    ONCILLA_ASSIGN(done, device_.Submit(queue_, *c.once, {}, {}));
    ONCILLA_TRY(Wait(done));
    const Download download{y.mutable_bytes(), outputs_[0].view()};
    ONCILLA_ASSIGN(done, device_.Transfer(queue_, {}, {&download, 1}));
    ONCILLA_TRY(Wait(done));
    std::vector<double> values(static_cast<size_t>(desc.elements()));
    LoadNumbers(desc.dtype, y.bytes().data(), 0, values);
    return values;
  }

  // One round: adds the times of `launches` runs.
  Status Run(Contender& c, int launches) {
    if (c.often == nullptr) {
      ONCILLA_ASSIGN(c.often, Record(c, launches));
    }
    const auto begin = Clock::now();
    ONCILLA_ASSIGN(const EventPtr done,
                   device_.Submit(queue_, *c.often, {}, {.profile = stamps()}));
    ONCILLA_TRY(Wait(done));
    const double host_us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    size_t told = 0;
    for (const StepTime& step : done->step_times()) {
      if (step.end_ns <= step.start_ns) continue;
      c.times.push_back(1e-3 * static_cast<double>(step.end_ns - step.start_ns));
      ++told;
    }
    if (told == 0) c.times.push_back(host_us / launches);
    return Status();
  }

  bool stamps() const { return device_.capabilities().profiling; }

 private:
  Status Wait(const EventPtr& event) {
    const Status status = device_.Wait(event, Clock::now() + kPatience);
    if (status.code() != Code::kDeadlineExceeded) return status;
    return WithStage(Error(Code::kUnavailable, "a launch of ", node_.op->name,
                           " was not over after ", kPatience.count(), " ms: the device hangs"),
                     Stage::kDevice);
  }

  Result<std::unique_ptr<Recording>> Record(const Contender& c, int times) {
    Step step{c.kernel.get(), {}, {}, {}, std::string(node_.op->name)};
    for (const Buffer& input : inputs_) step.inputs.push_back({input.view()});
    for (const Buffer& output : outputs_) step.outputs.push_back({output.view()});
    step.scratch = c.scratch.view();
    return device_.Record(std::vector<Step>(static_cast<size_t>(times), step));
  }

  ClDevice& device_;
  Queue& queue_;
  const LayerNode& node_;
  std::vector<Buffer> inputs_, outputs_;
};

// The difference as a share of the largest value; infinite where only one side has a number.
double ErrorBetween(const std::vector<double>& got, const std::vector<double>& right) {
  double most = 0, largest = 1e-30;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(right[i])) continue;
    largest = std::max(largest, std::abs(right[i]));
    const double off = std::abs(got[i] - right[i]);
    if (!(off <= most)) most = std::isnan(off) ? INFINITY : off;
  }
  return most / largest;
}

// Runs all rounds, interleaved, until the time is over.
Status Race(Bench& bench, std::vector<Contender>& all, Deadline until) {
  ONCILLA_TRY(bench.Run(all[0], 1));
  const double first_us = std::max(all[0].times[0], 1.0);
  all[0].times.clear();
  all[0].often = nullptr;
  const int launches = static_cast<int>(std::clamp(kRoundUs / first_us, 1.0, 1.0 * kMostLaunches));
  for (int round = 0; round < kRounds; ++round) {
    if (round > 0 && Clock::now() >= until) break;
    double best = INFINITY;
    for (size_t i = 0; i < all.size(); ++i) {
      // Forwards and backwards in turn, so that no choice always runs after the same other one.
      Contender& c = all[round % 2 == 0 ? i : all.size() - 1 - i];
      if (c.out) continue;
      ONCILLA_TRY(bench.Run(c, launches));
      c.now = EstimateOf(c.times);
      best = std::min(best, c.now.us);
    }
    for (size_t i = 1; i < all.size(); ++i) all[i].out |= all[i].now.us > kSlow * best;
  }
  return Status();
}

}  // namespace

Tuner::Tuner(ClDevice& device, const TunerOptions& options) : device_(device), options_(options) {}
Tuner::~Tuner() = default;

Capabilities Tuner::With(const std::string& layer, const std::string& choice) const {
  auto table = std::make_shared<TunedTable>();
  table->lists = choice.empty();
  if (!choice.empty()) table->Set(layer, {choice});
  Capabilities caps = device_.capabilities();
  caps.tuned = std::move(table);
  return caps;
}

Result<std::optional<size_t>> Tuner::Add(const LayerNode& node, int nodes) {
  const Capabilities caps = With("", "");
  const auto row = FindRunnable(node.view(), caps);
  if (!row.ok()) return std::optional<size_t>();
  ONCILLA_ASSIGN(const Recipe recipe, (*row)->make(node.view(), caps));
  const Decision& decision = recipe.decision;
  if (decision.layer.empty() || decision.choices.size() < 2) return std::optional<size_t>();
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].name != decision.layer) continue;
    layers_[i].nodes += nodes;
    return std::optional(i);
  }
  layers_.push_back({decision.layer, node, nodes, decision.choices.size()});
  return std::optional(layers_.size() - 1);
}

Result<MeasuredLayer> Tuner::Measure(size_t layer, Deadline until) {
  const TunableLayer& tunable = layers_.at(layer);
  const NodeView view = tunable.node.view();
  const auto begin = Clock::now();
  if (begin >= until) return Error(Code::kDeadlineExceeded, "no time is left");
  // The rest of the time is for comparing. A compilation that has begun is waited for, since it
  // would disturb the next measurements.
  const Deadline compile_until = begin + (until - begin) / 10 * 7;
  const EarlyEnd end{.watchdog = kPatience};
  ONCILLA_ASSIGN(const KernelRow* row, FindRunnable(view, device_.capabilities()));
  if (queue_ == nullptr) {
    ONCILLA_ASSIGN(queue_, device_.OpenQueue({.stamps = device_.capabilities().profiling}));
  }
  Bench bench(device_, *queue_, tunable.node);
  ONCILLA_TRY(bench.Start());
  Decision decision;
  ONCILLA_ASSIGN(Contender first, bench.PrepareGeneric(*row, With("", ""), decision, end));
  MeasuredLayer measured;
  measured.generic = decision.choice;
  measured.choices = decision.choices.size();
  std::vector<Contender> all;
  ONCILLA_ASSIGN(const std::vector<double> right, bench.FirstOutput(first));
  all.push_back(std::move(first));
  const double most = options_.most_error_scale * MostError(tunable.node.outputs[0].desc().dtype);
  for (const std::string& choice : decision.choices) {
    if (choice == measured.generic) {
      ++measured.tried;
      continue;
    }
    if (Clock::now() >= compile_until) break;
    ONCILLA_ASSIGN(const Recipe recipe, row->make(view, With(tunable.name, choice)));
    auto made = bench.Prepare(choice, recipe, end);
    ++measured.tried;
    if (!made.ok()) {
      // The compiled kernel needs smaller groups or less local memory: that is not an error, but
      // the choice is not possible on this device.
      if (made.status().code() == Code::kUnimplemented) continue;
      if (made.status().code() == Code::kUnavailable) return made.status();
      measured.faults.push_back({choice, std::string(Message(made.status()))});
      continue;
    }
    const auto got = bench.FirstOutput(*made);
    if (!got.ok()) return got.status();
    const double error = ErrorBetween(*got, right);
    if (!(error <= most)) {
      measured.faults.push_back(
          {choice, StrCat("differs from the generic choice by ", error, " of the largest value")});
      continue;
    }
    all.push_back(*std::move(made));
  }
  ONCILLA_TRY(Race(bench, all, until));
  const Contender& usual = all[0];
  measured.best = measured.generic;
  measured.generic_us = measured.best_us = usual.now.us;
  for (const Contender& c : all) {
    const bool faster = c.now.us < kWorth * usual.now.us &&
                        c.now.us + c.now.spread < usual.now.us - usual.now.spread;
    if (c.out || !faster || c.now.us >= measured.best_us) continue;
    measured.best = c.choice;
    measured.best_us = c.now.us;
  }
  return measured;
}

TunedDevice Tuner::Row() const {
  return {ClassOf(device_.facts(), device_.capabilities()), device_.facts().driver, {}};
}

}  // namespace oncilla::opencl
