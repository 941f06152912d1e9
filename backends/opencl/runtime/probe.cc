// Each capability is probed by a separate small program, so that one that does not compile affects
// no other. A result is accepted only if every number is exactly right.
#include "backends/opencl/runtime/probe.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "backends/opencl/runtime/cl_objects.h"
#include "cl_kernels/kernels.gen.h"
#include "engine/base/half.h"

namespace oncilla::opencl {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr int kTrips = 65600;  // just above 16 bits, where a known driver stops loops

class Bench {
 public:
  Bench(const FoundDevice& device, int seconds)
      : api_(*device.platform.api), device_(device), seconds_(seconds) {}
  ~Bench() {
    if (!hung_) return;
    for (Memory* m : {&in_, &out_}) m->Abandon();
    queue_.Abandon();
    context_.Abandon();
  }

  Status Open() {
    ONCILLA_ASSIGN(context_, CreateContext(api_, device_.platform.id, device_.id));
    ONCILLA_ASSIGN(queue_, CreateQueue(api_, context_.get(), device_.id, true));
    ONCILLA_ASSIGN(in_, CreateBuffer(api_, context_.get(), kBufferBytes));
    ONCILLA_ASSIGN(out_, CreateBuffer(api_, context_.get(), kBufferBytes));
    return Status();
  }

  Result<Program> Build(const Source& source) {
    return BuildFromSource(api_, context_.get(), device_.id, source.path, source.text,
                           "-cl-std=CL1.2");
  }

  // The largest group that the driver allows this kernel.
  int64_t GroupLimit(cl_kernel kernel) {
    size_t limit = 0;
    if (api_.GetKernelWorkGroupInfo(kernel, device_.id, CL_KERNEL_WORK_GROUP_SIZE, sizeof(limit),
                                    &limit, nullptr) != CL_SUCCESS) {
      return 1;
    }
    return static_cast<int64_t>(std::min<size_t>(limit, 1 << 20));
  }

  // Runs entry(in, out, extra...) and reads `out`. `extra` is the size in bytes of a local memory
  // argument, or an int if `number` is set.
  template <class T>
  Status Run(const Program& program, const std::string& entry, std::span<const T> in,
             std::span<T> out, size_t global, size_t group, size_t local_bytes,
             const cl_int* number) {
    if (hung_) return Internal("the device hangs");
    if (in.size_bytes() > kBufferBytes || out.size_bytes() > kBufferBytes) {
      return Internal("the probe's buffers are too small");
    }
    ONCILLA_ASSIGN(KernelObject kernel, CreateKernel(api_, program.get(), entry));
    cl_mem in_raw = in_.get(), out_raw = out_.get();
    ONCILLA_TRY(Check(api_.SetKernelArg(kernel.get(), 0, sizeof(in_raw), &in_raw), "argument 0"));
    ONCILLA_TRY(Check(api_.SetKernelArg(kernel.get(), 1, sizeof(out_raw), &out_raw), "argument 1"));
    if (local_bytes > 0) {
      ONCILLA_TRY(Check(api_.SetKernelArg(kernel.get(), 2, local_bytes, nullptr), "argument 2"));
    } else if (number != nullptr) {
      ONCILLA_TRY(Check(api_.SetKernelArg(kernel.get(), 2, sizeof(*number), number), "argument 2"));
    }
    ONCILLA_TRY(Check(api_.EnqueueWriteBuffer(queue_.get(), in_raw, CL_TRUE, 0, in.size_bytes(),
                                              in.data(), 0, nullptr, nullptr),
                      "clEnqueueWriteBuffer"));
    cl_event raw = nullptr;
    ONCILLA_TRY(Check(api_.EnqueueNDRangeKernel(queue_.get(), kernel.get(), 1, nullptr, &global,
                                                &group, 0, nullptr, &raw),
                      entry));
    last_ = EventObject(api_, raw);
    ONCILLA_TRY(Check(api_.Flush(queue_.get()), "clFlush"));
    Status done =
        WaitFor(api_, raw, std::chrono::steady_clock::now() + std::chrono::seconds(seconds_));
    if (done.code() == Code::kDeadlineExceeded) {
      hung_ = true;
      last_.Abandon();
      kernel.Abandon();
    }
    ONCILLA_TRY(done);
    return Check(api_.EnqueueReadBuffer(queue_.get(), out_raw, CL_TRUE, 0, out.size_bytes(),
                                        out.data(), 0, nullptr, nullptr),
                 "clEnqueueReadBuffer");
  }

  // Whether the last kernel has time stamps and they are in order.
  bool StampsWork() {
    cl_ulong start = 0, end = 0;
    return api_.GetEventProfilingInfo(last_.get(), CL_PROFILING_COMMAND_START, sizeof(start),
                                      &start, nullptr) == CL_SUCCESS &&
           api_.GetEventProfilingInfo(last_.get(), CL_PROFILING_COMMAND_END, sizeof(end), &end,
                                      nullptr) == CL_SUCCESS &&
           start != 0 && end >= start;
  }

 private:
  const Api& api_;
  const FoundDevice& device_;
  int seconds_;
  bool hung_ = false;
  Context context_;
  CommandQueue queue_;
  Memory in_, out_;
  EventObject last_;
};

Status Wrong(std::string_view what) { return Internal(what, " gives wrong results"); }

Status ProbeInt64(Bench& bench, const Program& program) {
  const std::array<int64_t, 3> in = {0x123456789abll, -1000003, int64_t{1} << 62};
  std::array<int64_t, 5> out = {};
  ONCILLA_TRY(bench.Run<int64_t>(program, "int64_ops", in, out, 1, 1, 0, nullptr));
  const std::array<int64_t, 5> expected = {in[0] * in[1], in[0] / in[1], in[0] >> 3,
                                           in[0] < in[1] ? 1 : 0, in[2]};
  return out == expected ? Status() : Wrong("64-bit integer arithmetic");
}

// Finds the largest group that works; the size is halved as long as the driver promised too much.
Status ProbeGroups(Bench& bench, const Program& program, const FoundDevice& device, int64_t limit,
                   ProbeResult& result) {
  constexpr size_t kGroups = 3;
  limit =
      std::min({limit, device.facts.max_work_group, device.facts.max_work_items[0],
                static_cast<int64_t>(kBufferBytes / 4 / kGroups), device.facts.local_memory / 4});
  Status status = Internal("no group size is allowed");
  for (auto group =
           static_cast<size_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(limit, 1))));
       group >= 2; group /= 2) {
    std::vector<int32_t> in(group * kGroups), out(kGroups), expected(kGroups);
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<int32_t>(i * i % 1013);
      expected[i / group] += in[i];
    }
    status =
        bench.Run<int32_t>(program, "group_sum", in, out, in.size(), group, group * 4, nullptr);
    if (status.ok() && out == expected) {
      result.local_groups = true;
      // Sizes between this power of two and the driver's own limit were not tried.
      result.max_work_group = static_cast<int64_t>(group);
      return Status();
    }
    if (status.ok()) status = Wrong("a reduction in local memory");
  }
  return status;
}

Status ProbeTrips(Bench& bench, const Program& program, ProbeResult& result) {
  const std::array<int32_t, 8> in = {1, 1, 1, 1, 1, 1, 1, 1};
  std::array<int32_t, 1> out = {};
  const cl_int trips = kTrips;
  ONCILLA_TRY(bench.Run<int32_t>(program, "count_trips", in, out, 1, 1, 0, &trips));
  if (out[0] != kTrips) {
    if (out[0] < 1024) return Wrong("a loop");
    result.max_loop_trips = out[0];
    result.notes.push_back(StrCat("a loop of ", kTrips, " trips stops after ", out[0]));
  }
  return Status();
}

Status ProbeFp64(Bench& bench, const Source& source) {
  ONCILLA_ASSIGN(Program program, bench.Build(source));
  const std::array<double, 2> in = {1.0 + 0x1p-50, 3.0 + 0x1p-40};
  std::array<double, 4> out = {};
  ONCILLA_TRY(bench.Run<double>(program, "fp64_ops", in, out, 1, 1, 0, nullptr));
  const double product = in[0] * in[1];
  const std::array<double, 4> expected = {in[0] + in[1], product, in[0] / in[1],
                                          std::fma(in[0], in[1], -product)};
  return out == expected ? Status() : Wrong("double arithmetic");
}

Status ProbeFp16(Bench& bench, const Source& source) {
  ONCILLA_ASSIGN(Program program, bench.Build(source));
  const std::array<Half, 2> in = {Half(2.25f), Half(-0.333f)};
  std::array<Half, 4> out = {};
  ONCILLA_TRY(bench.Run<Half>(program, "fp16_ops", in, out, 1, 1, 0, nullptr));
  const float a = in[0], b = in[1];
  const std::array<Half, 4> expected = {Half(a + b), Half(a * b), Half(std::sqrt(a)), in[1]};
  for (size_t i = 0; i < out.size(); ++i) {
    // sqrt may be off by an ulp or two; the other results must be correctly rounded.
    const int off = std::abs(int{out[i].bits} - int{expected[i].bits});
    if (off > (i == 2 ? 2 : 0)) return Wrong("half arithmetic");
  }
  return Status();
}

// Sets the size of the sub-groups that Intel's extensions offer: 8 lanes if the driver allows that.
Status ProbeSubGroups(Bench& bench, const Source& source, ProbeResult& result) {
  Status status;
  for (const size_t lanes : {size_t{8}, size_t{16}}) {
    const std::string text = StrCat("#define LANES ", lanes, "\n", source.text);
    const Result<Program> program = bench.Build({source.path, text});
    if (!program.ok()) {
      status = program.status();
      continue;
    }
    // Two sub-groups, which read the same elements.
    std::vector<float> in(5 * lanes), out(8 * lanes), expected(8 * lanes);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * i % 61) + 0.25f;
    for (size_t i = 0; i < 2 * lanes; ++i) {
      const size_t lane = i % lanes;
      const std::array<float, 4> own = {in[lane], in[lanes + lane] + in[4 * lanes + lane],
                                        in[lanes - 1 - lane % 2], static_cast<float>(lane)};
      std::ranges::copy(own, expected.begin() + static_cast<std::ptrdiff_t>(4 * i));
    }
    status = bench.Run<float>(*program, "sub_groups", in, out, 2 * lanes, 2 * lanes, 0, nullptr);
    if (status.ok() && out == expected) {
      result.sub_group = static_cast<int64_t>(lanes);
      return Status();
    }
    if (status.ok()) status = Wrong("a sub-group");
  }
  return status;
}

// Dot products of signed bytes: extremes, sums that wrap around, and numbers of all sizes.
Status ProbeByteDot(Bench& bench, const Source& source, ByteDot dot, ProbeResult& result) {
  const std::string_view define = dot == ByteDot::kKhr ? "DOT_KHR" : "DOT_PTX";
  const std::string text = StrCat("#define ", define, " 1\n", source.text);
  ONCILLA_ASSIGN(Program program, bench.Build({source.path, text}));
  constexpr size_t kCount = 64;
  std::vector<int32_t> in(3 * kCount), out(kCount), expected(kCount);
  uint32_t random = 1;
  const std::array<uint32_t, 6> extremes = {0x80808080U, 0x7f7f7f7fU, 0x807f807fU,
                                            0xffffffffU, 0x7fffffffU, 0x80000000U};
  for (size_t i = 0; i < in.size(); ++i) {
    random = random * 1664525U + 1013904223U;
    // Pairs of all extremes come first, with sums at the ends of their range.
    const size_t pair = i / 3;
    const bool extreme = pair < extremes.size() * extremes.size();
    const size_t which = i % 3 == 0 ? pair % extremes.size() : pair / extremes.size();
    in[i] = static_cast<int32_t>(extreme ? extremes[i % 3 == 2 ? 4 + pair % 2 : which] : random);
  }
  for (size_t i = 0; i < kCount; ++i) {
    auto sum = static_cast<uint32_t>(in[3 * i + 2]);
    for (int byte = 0; byte < 4; ++byte) {
      const auto a = static_cast<int8_t>(static_cast<uint32_t>(in[3 * i]) >> (8 * byte));
      const auto b = static_cast<int8_t>(static_cast<uint32_t>(in[3 * i + 1]) >> (8 * byte));
      sum += static_cast<uint32_t>(a * b);
    }
    expected[i] = static_cast<int32_t>(sum);
  }
  ONCILLA_TRY(bench.Run<int32_t>(program, "dot4_words", in, out, kCount, 1, 0, nullptr));
  if (out != expected) return Wrong("a dot product of bytes");
  result.byte_dot = dot;
  return Status();
}

// The types that a matrix unit multiplies: 16-bit elements, or pairs of bytes.
struct MatrixKind {
  std::string_view name, define;
  uint16_t (*element)(uint32_t random);
  float (*product)(uint16_t a, uint16_t b);
  bool whole = false;  // sums are int
};
// Numbers whose products and sums are all exact in float: sixteenths from -8 to 8, and bytes.
float Sixteenth(uint32_t random) {
  return static_cast<float>(static_cast<int32_t>(random >> 24) - 128) / 16;
}
constexpr MatrixKind kMatrixKinds[] = {
    {"f16", "T f16", [](uint32_t random) { return Half(Sixteenth(random)).bits; },
     [](uint16_t a, uint16_t b) { return float{std::bit_cast<Half>(a)} * std::bit_cast<Half>(b); }},
    {"bf16", "T bf16", [](uint32_t random) { return BFloat16(Sixteenth(random)).bits; },
     [](uint16_t a, uint16_t b) {
       return float{std::bit_cast<BFloat16>(a)} * std::bit_cast<BFloat16>(b);
     }},
    {"byte", "MATRIX_BYTES 1", [](uint32_t random) { return static_cast<uint16_t>(random >> 16); },
     [](uint16_t a, uint16_t b) {
       const int low = static_cast<int8_t>(a) * static_cast<int8_t>(b);
       return static_cast<float>(low + static_cast<int8_t>(a >> 8) * static_cast<int8_t>(b >> 8));
     },
     true},
};

Status ProbeMatrixUnit(Bench& bench, const Source& source, ProbeResult& result) {
  constexpr size_t kSide = 16, kSquare = kSide * kSide;
  for (const MatrixKind& kind : kMatrixKinds) {
    const std::string text =
        StrCat("#define ", kind.define, "\n#define MATRIX 1\n#define MATRIX_PTX 1\n", source.text);
    ONCILLA_ASSIGN(Program program, bench.Build({source.path, text}));
    std::vector<uint16_t> in(2 * kSquare);
    uint32_t random = 1;
    for (uint16_t& element : in) {
      random = random * 1664525U + 1013904223U;
      element = kind.element(random);
    }
    std::vector<uint32_t> words(kSquare), out(2 * kSquare);
    std::memcpy(words.data(), in.data(), 2 * in.size());
    ONCILLA_TRY(bench.Run<uint32_t>(program, "matrix_words", words, out, 32, 32, 0, nullptr));
    for (size_t i = 0; i < 2 * kSquare; ++i) {
      const size_t row = i % kSquare / kSide, column = i % kSide;
      float sum = 0;
      for (size_t k = 0; k < kSide; ++k) {
        sum += kind.product(in[row * kSide + k], in[kSquare + k * kSide + column]);
      }
      const float got = kind.whole ? static_cast<float>(static_cast<int32_t>(out[i]))
                                   : std::bit_cast<float>(out[i]);
      if (got != sum) return Wrong(StrCat("a product of ", kind.name, " matrices"));
    }
  }
  result.matrix_unit = MatrixUnit::kPtx;
  return Status();
}

ProbeResult Failed(const Status& status) {
  ProbeResult result;
  result.failure = Message(status);
  return result;
}

}  // namespace

ProbeSources ProbeSources::Embedded() {
  return {&cl::kProbeBasics,   &cl::kProbeFp64, &cl::kProbeFp16,
          &cl::kProbeSubGroup, &cl::kProbeDot4, &cl::kProbeMatrix};
}

ProbeResult Probe(const FoundDevice& device, const ProbeSources& sources, int seconds) {
  Bench bench(device, seconds);
  if (Status opened = bench.Open(); !opened.ok()) return Failed(opened);
  Result<Program> basics = bench.Build(*sources.basics);
  if (!basics.ok()) return Failed(basics.status());
  if (Status status = ProbeInt64(bench, *basics); !status.ok()) return Failed(status);

  ProbeResult result;
  if (Status status = ProbeTrips(bench, *basics, result); !status.ok()) return Failed(status);
  result.profiling = bench.StampsWork();
  if (!result.profiling) result.notes.push_back("events have no time stamps");

  Status groups;
  {
    Result<KernelObject> kernel = CreateKernel(*device.platform.api, basics->get(), "group_sum");
    groups = kernel.ok()
                 ? ProbeGroups(bench, *basics, device, bench.GroupLimit(kernel->get()), result)
                 : kernel.status();
  }
  auto keep = [&](bool& flag, std::string_view what, const Status& status) {
    flag = status.ok();
    result.of_the_moment |=
        status.code() == Code::kResourceExhausted || status.code() == Code::kUnavailable;
    if (!flag) result.notes.push_back(StrCat("no ", what, ": ", Message(status)));
  };
  keep(result.local_groups, "work-groups with barriers", groups);
  if (device.facts.claims_fp64) keep(result.fp64, "fp64", ProbeFp64(bench, *sources.fp64));
  if (device.facts.claims_fp16) keep(result.fp16, "fp16 math", ProbeFp16(bench, *sources.fp16));
  if (device.facts.HasExtension("cl_intel_subgroups") &&
      device.facts.HasExtension("cl_intel_required_subgroup_size")) {
    bool found = false;
    keep(found, "sub-groups", ProbeSubGroups(bench, *sources.sub_group, result));
  }
  const bool khr = device.facts.HasExtension("cl_khr_integer_dot_product");
  // NVIDIA's instructions are probed only with NVIDIA's driver.
  if (khr || device.facts.HasExtension("cl_nv_device_attribute_query")) {
    bool found = false;
    const ByteDot dot = khr ? ByteDot::kKhr : ByteDot::kPtx;
    keep(found, "dot products of bytes", ProbeByteDot(bench, *sources.dot4, dot, result));
  }
  if (device.facts.HasExtension("cl_nv_device_attribute_query") && result.local_groups) {
    bool found = false;
    keep(found, "products of matrices", ProbeMatrixUnit(bench, *sources.matrix, result));
  }
  return result;
}

std::string ToText(const ProbeResult& r) {
  std::string text =
      StrCat("fp64=", r.fp64, "\nfp16=", r.fp16, "\nlocal_groups=", r.local_groups,
             "\nprofiling=", r.profiling, "\nmax_work_group=", r.max_work_group,
             "\nsub_group=", r.sub_group, "\nbyte_dot=", static_cast<int>(r.byte_dot),
             "\nmatrix_unit=", static_cast<int>(r.matrix_unit),
             "\nmax_loop_trips=", r.max_loop_trips, "\n");
  auto line = [&](std::string_view name, std::string value) {
    std::replace(value.begin(), value.end(), '\n', ' ');
    text += StrCat(name, "=", value, "\n");
  };
  if (!r.failure.empty()) line("failure", r.failure);
  for (const std::string& note : r.notes) line("note", note);
  return text;
}

std::optional<ProbeResult> ParseProbe(const std::string& text) {
  ProbeResult r;
  int numbers_seen = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const size_t equals = text.find('=', at);
    if (end == text.npos || equals == text.npos || equals > end) return std::nullopt;
    const std::string_view name = std::string_view(text).substr(at, equals - at);
    const std::string value = text.substr(equals + 1, end - equals - 1);
    at = end + 1;
    if (name == "failure") {
      r.failure = value;
      continue;
    }
    if (name == "note") {
      r.notes.push_back(value);
      continue;
    }
    int64_t number = 0;
    const char* last = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), last, number);
    if (parsed.ec != std::errc() || parsed.ptr != last || number < 0) return std::nullopt;
    ++numbers_seen;
    if (name == "fp64") {
      r.fp64 = number != 0;
    } else if (name == "fp16") {
      r.fp16 = number != 0;
    } else if (name == "local_groups") {
      r.local_groups = number != 0;
    } else if (name == "profiling") {
      r.profiling = number != 0;
    } else if (name == "max_work_group") {
      r.max_work_group = number;
    } else if (name == "sub_group") {
      r.sub_group = number;
    } else if (name == "byte_dot" && number <= static_cast<int64_t>(ByteDot::kPtx)) {
      r.byte_dot = static_cast<ByteDot>(number);
    } else if (name == "matrix_unit" && number <= static_cast<int64_t>(MatrixUnit::kPtx)) {
      r.matrix_unit = static_cast<MatrixUnit>(number);
    } else if (name == "max_loop_trips") {
      r.max_loop_trips = number;
    } else {
      return std::nullopt;
    }
  }
  return numbers_seen == 9 ? std::optional(r) : std::nullopt;
}

}  // namespace oncilla::opencl
