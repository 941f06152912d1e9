// op_bench: how fast single ops run on one device, in Gflop/s or GB/s, at shapes from real models.
//
//   op_bench [--device cpu|opencl[:N]] [--threads N] [--only TEXT] [--ms BUDGET]
//
// Each line gives the best of many runs, so that other work on the machine disturbs little, and the
// share of the device's rate at the largest matrix product measured in the same process: compare
// shares rather than rates. Weights are constants, packed as the device asks. No value is checked.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "engine/base/thread_pool.h"
#include "engine/device/linked_backends.h"
#include "engine/ops/op_set.h"

namespace oncilla {
namespace {

struct Operand {
  Shape shape;
  bool weight = false;
  std::vector<int64_t> ints = {};  // a plan input
};

struct Bench {
  std::string name;
  std::string op;
  AttrMap attrs = {};
  std::vector<Operand> inputs = {};
  double flops = 0;  // 0: count bytes
};

using Ints = std::vector<int64_t>;

Bench MatMul(int64_t m, int64_t n, int64_t k, const char* activation = "none") {
  Bench b{StrCat("matmul ", m, 'x', n, 'x', k), "MatMul", {}, {}, 2.0 * m * n * k};
  b.attrs["activation"] = std::string(activation);
  if (std::strcmp(activation, "none") != 0) b.name += StrCat(' ', activation);
  b.inputs = {{{m, k}}, {{k, n}, true}, {{n}, true}};
  return b;
}
// Attention: both operands computed.
Bench Batched(int64_t batch, int64_t m, int64_t n, int64_t k, bool transposed) {
  Bench b{StrCat("attention ", batch, " of ", m, 'x', n, 'x', k, transposed ? " B^T" : ""),
          "MatMul",
          {},
          {},
          2.0 * batch * m * n * k};
  b.attrs["transpose_b"] = transposed;
  b.inputs = {{{batch, m, k}}, {transposed ? Shape{batch, n, k} : Shape{batch, k, n}}};
  return b;
}
Bench Conv(int64_t size, int64_t in, int64_t out, int64_t kernel, int64_t stride,
           const char* activation, bool residual = false, int64_t groups = 1) {
  const int64_t o = size / stride;
  Bench b{StrCat(groups == in ? "depthwise " : "conv ", kernel, 'x', kernel, " s", stride, ' ', in,
                 "->", out, " @", o, residual ? " +res" : ""),
          "Conv",
          {},
          {},
          2.0 * o * o * out * kernel * kernel * in / groups};
  b.attrs = {{"strides", Ints{stride, stride}},
             {"pads", Ints(4, (kernel - 1) / 2)},
             {"groups", groups},
             {"activation", std::string(activation)}};
  b.inputs = {{{1, size, size, in}}, {{kernel, kernel, in / groups, out}, true}, {{out}, true}};
  if (residual) b.inputs.push_back({{1, o, o, out}});
  return b;
}
Bench Pool(const char* op, int64_t size, int64_t channels, int64_t kernel, int64_t stride) {
  Bench b{StrCat(op, ' ', kernel, 'x', kernel, " s", stride, ' ', channels, " @", size / stride),
          op,
          {},
          {{{1, size, size, channels}}}};
  b.attrs = {{"kernel", Ints{kernel, kernel}},
             {"strides", Ints{stride, stride}},
             {"auto_pad", std::string("same_upper")}};
  return b;
}
Bench Resize(int64_t from, int64_t to, int64_t channels, const char* mode) {
  Bench b{StrCat("resize ", mode, ' ', from, "->", to, " x", channels),
          "Resize",
          {},
          {{{1, from, from, channels}}, {{2}, false, {to, to}}}};
  b.attrs["mode"] = std::string(mode);
  return b;
}

std::vector<Bench> All() {
  std::vector<Bench> all;
  for (auto [m, n, k] : std::initializer_list<std::array<int64_t, 3>>{{1024, 1024, 1024},
                                                                      {512, 512, 512},
                                                                      {128, 384, 384},
                                                                      {128, 1536, 384},
                                                                      {128, 384, 1536},
                                                                      {128, 3072, 768},
                                                                      {3136, 64, 64},
                                                                      {3136, 256, 64},
                                                                      {196, 1024, 256},
                                                                      {196, 256, 1024},
                                                                      {49, 2048, 512},
                                                                      {49, 512, 2048},
                                                                      {12544, 96, 16},
                                                                      {3136, 24, 144},
                                                                      {1, 4096, 4096}}) {
    all.push_back(MatMul(m, n, k));
  }
  all.push_back(MatMul(128, 1536, 384, "gelu"));
  all.push_back(Batched(12, 128, 128, 32, true));
  all.push_back(Batched(12, 128, 32, 128, false));
  // ResNet-50.
  all.push_back(Conv(224, 3, 64, 7, 2, "relu"));
  all.push_back(Pool("MaxPool", 112, 64, 3, 2));
  for (auto [size, c] : {std::pair{56, 64}, {28, 128}, {14, 256}, {7, 512}}) {
    all.push_back(Conv(size, c, c, 3, 1, "relu"));
    all.push_back(Conv(size, c, 4 * c, 1, 1, "relu", true));
    all.push_back(Conv(size, 4 * c, c, 1, 1, "relu"));
  }
  for (auto [size, c] : {std::pair{56, 128}, {28, 256}, {14, 512}}) {
    all.push_back(Conv(size, c, c, 3, 2, "relu"));
    all.push_back(Conv(size, 2 * c, 4 * c, 1, 2, "none"));
  }
  // MobileNetV2.
  all.push_back(Conv(224, 3, 32, 3, 2, "relu6"));
  for (auto [size, c, stride] : std::initializer_list<std::array<int64_t, 3>>{
           {112, 32, 1}, {112, 96, 2}, {56, 144, 1}, {28, 192, 1}, {14, 384, 1}, {7, 960, 1}}) {
    all.push_back(Conv(size, c, c, 3, stride, "relu6", false, c));
  }
  all.push_back(Conv(112, 16, 96, 1, 1, "relu6"));
  all.push_back(Conv(56, 144, 24, 1, 1, "none", true));
  all.push_back(Conv(14, 96, 576, 1, 1, "relu6"));
  all.push_back(Conv(7, 320, 1280, 1, 1, "relu6"));
  all.push_back(Conv(28, 256, 256, 3, 1, "relu", false, 32));
  all.push_back(Pool("AveragePool", 56, 64, 3, 2));
  all.push_back(Resize(64, 128, 64, "linear"));
  all.push_back(Resize(112, 224, 3, "linear"));
  all.push_back(Resize(64, 128, 64, "nearest"));
  return all;
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Small numbers that are nowhere all alike.
Result<Tensor> Fill(const Shape& shape) {
  ONCILLA_ASSIGN(Tensor t, Tensor::Allocate({DType::kF32, shape}));
  uint32_t state = 1;
  for (float& v : t.MutableAs<float>()) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-32f;
  }
  return t;
}

struct Measured {
  double seconds = 0;
  double bytes = 0;
  std::string description;
};

Result<Measured> Measure(const Bench& bench, const OpSet& ops, Device& device, double budget) {
  const OpDef* op = ops.Find(bench.op);
  Facts in;
  std::vector<Tensor> values;
  for (const Operand& operand : bench.inputs) {
    Tensor t = Tensor::Int64s(operand.ints);
    if (operand.ints.empty()) {
      ONCILLA_ASSIGN(t, Fill(operand.shape));
    }
    const bool known = operand.weight || !operand.ints.empty();
    in.push_back(known ? Fact::Constant(t) : Fact::Of(t.desc()));
    values.push_back(std::move(t));
  }
  ONCILLA_ASSIGN(const Facts out, op->infer(bench.attrs, in));
  const NodeView node{op, &bench.attrs, in, out, bench.name};
  ONCILLA_TRY(device.CanRun(node));
  ONCILLA_ASSIGN(auto kernel, device.Prepare(node));

  Measured result;
  result.description = kernel->description();
  ONCILLA_ASSIGN(auto queue, device.OpenQueue());
  std::vector<std::unique_ptr<Region>> regions;
  auto buffer = [&](int64_t bytes) -> Result<BufferView> {
    ONCILLA_ASSIGN(auto region, device.AllocateRegion(std::max<int64_t>(bytes, 64)));
    regions.push_back(std::move(region));
    return BufferView{regions.back().get(), 0, bytes};
  };
  Step step{kernel.get(), {}, {}, {}, bench.name};
  for (size_t i = 0; i < in.size(); ++i) {
    if (!bench.inputs[i].ints.empty()) {
      step.inputs.emplace_back();
      continue;
    }
    std::vector<std::byte> bytes(values[i].bytes().begin(), values[i].bytes().end());
    if (bench.inputs[i].weight) {
      ONCILLA_ASSIGN(const Packing packing, device.PackingFor(node, static_cast<int>(i)));
      if (packing.write != nullptr) {
        bytes.assign(static_cast<size_t>(packing.bytes), std::byte{0});
        ONCILLA_TRY(packing.write(values[i], bytes));
      }
    }
    ONCILLA_ASSIGN(const BufferView view, buffer(static_cast<int64_t>(bytes.size())));
    result.bytes += static_cast<double>(bytes.size());
    const Upload upload{view, bytes};
    ONCILLA_ASSIGN(const EventPtr done, device.Transfer(*queue, {&upload, 1}, {}));
    ONCILLA_TRY(device.Wait(done, kNoDeadline));
    step.inputs.push_back({view, -1});
  }
  ONCILLA_ASSIGN(const BufferView y, buffer(out[0].desc().bytes()));
  step.outputs.push_back({y, -1});
  result.bytes += static_cast<double>(y.bytes);
  if (kernel->scratch_bytes() > 0) {
    ONCILLA_ASSIGN(step.scratch, buffer(kernel->scratch_bytes()));
  }
  ONCILLA_ASSIGN(auto recording, device.Record({step}));
  const double end = Now() + budget;
  result.seconds = 1e9;
  for (int runs = 0; runs < 5 || Now() < end; ++runs) {
    const double begin = Now();
    ONCILLA_ASSIGN(const EventPtr done, device.Submit(*queue, *recording, {}, {}));
    ONCILLA_TRY(device.Wait(done, kNoDeadline));
    result.seconds = std::min(result.seconds, Now() - begin);
  }
  recording.reset();
  queue.reset();
  for (auto& region : regions) ONCILLA_TRY(device.ReleaseRegion(std::move(region)));
  return result;
}

Result<std::unique_ptr<Device>> OpenDevice(const std::string& spec, ThreadPool* threads) {
  const size_t colon = spec.find(':');
  const int ordinal = colon == std::string::npos ? 0 : std::atoi(spec.c_str() + colon + 1);
  std::vector<std::string> notes;
  for (const Backend* backend : LinkedBackends()) {
    if (backend->name != spec.substr(0, colon)) continue;
    for (const DeviceInfo& info : backend->discover({.opencl_cpu_devices = true}, notes)) {
      if (info.ordinal != ordinal) continue;
      return backend->open(info, {.threads = threads, .plain = false, .cache_dir = ""});
    }
  }
  return NotFound("there is no device ", spec);
}

int Main(int argc, char** argv) {
  std::string spec = "cpu", only;
  int thread_count = 0;
  double budget = 0.3;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--device") spec = argv[i + 1];
    if (flag == "--only") only = argv[i + 1];
    if (flag == "--threads") thread_count = std::atoi(argv[i + 1]);
    if (flag == "--ms") budget = std::atof(argv[i + 1]) / 1000;
  }
  ThreadPool threads(thread_count);
  const auto ops = OpSet::Builtin();
  auto device = OpenDevice(spec, &threads);
  if (!device.ok()) {
    std::cerr << Message(device.status()) << "\n";
    return 1;
  }
  std::printf("%s: %s, %d threads\n", spec.c_str(), (*device)->info().name.c_str(), threads.size());
  double roof = 0;
  for (const Bench& bench : All()) {
    const bool first = roof == 0;
    if (!first && bench.name.find(only) == std::string::npos) continue;
    const auto measured = Measure(bench, *ops, **device, budget);
    if (!measured.ok()) {
      std::printf("%-44s %s\n", bench.name.c_str(), Message(measured.status()).c_str());
      continue;
    }
    const double rate = bench.flops / measured->seconds * 1e-9;
    if (first) roof = rate;
    std::printf("%-44s %9.1f us %8.1f GF/s %5.2f %7.1f GB/s  %s\n", bench.name.c_str(),
                measured->seconds * 1e6, rate, rate / roof,
                measured->bytes / measured->seconds * 1e-9,
                measured->description.substr(0, measured->description.find('\n')).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace oncilla

int main(int argc, char** argv) { return oncilla::Main(argc, argv); }
