// Logical devices, limits, what happens when memory is short, and tensors that stay on a device.
//   memory_limits
// In TensorFlow logical devices and growth must be set before anything else has run, the CPU has no
// limit, and running out of memory ends in advice to try a smaller batch.
#include <algorithm>
#include <cmath>

#include "examples/show.h"

namespace {

// y = x @ w, 1024 floats per sample and layer.
void Build(oncilla::GraphBuilder& g) {
  const auto x = g.Placeholder(ONCILLA_FLOAT32, {-1, 1024}, "x");
  const auto w = g.Constant({1024, 1024}, std::vector<float>(1024 * 1024, 0.001F), "w");
  auto y = g.MatMul(x, w, "first");
  y = g.Op("Tanh", {y}, "tanh");
  g.MatMul(y, w, "y");
}

oncilla::Tensor Batch(int64_t samples) {
  return oncilla::Tensor::Of<float>({samples, 1024},
                                    std::vector<float>(static_cast<size_t>(samples) * 1024, 1.0F))
      .value();
}

}  // namespace

int main() {
  auto runtime = oncilla::Runtime::Create().value();
  const bool has_gpu = !show::Gpus(runtime).empty();
  const std::string card = has_gpu ? "GPU" : "CPU";

  // tf.config.set_logical_device_configuration(gpu, [LogicalDeviceConfiguration(memory_limit=64),
  //                                                  LogicalDeviceConfiguration(memory_limit=16)])
  // In TensorFlow this is refused for the CPU.
  oncilla::SessionOptions options;
  options.device = card + ":0";
  options.config = "logical_devices { physical: '" + card +
                   ":0' memory_limit_bytes: 67108864 }"
                   "logical_devices { physical: '" +
                   card + ":0' memory_limit_bytes: 16777216 }";
  auto session = oncilla::Session::Create(runtime, options).value();
  oncilla::GraphBuilder g;
  Build(g);
  auto model = session.Load(g).value();
  const std::string big = "/device:" + card + ":0", little = "/device:" + card + ":1";
  auto result = model.Run({{"x:0", Batch(1000)}}, {"", {"y:0"}, 0, {}, big}).value();
  show::Expect(result[0].dims() == std::vector<int64_t>{1000, 1024}, result.report());

  // The same on the smaller part: refused before anything runs, and the error says what would fit.
  auto full = model.Run({{"x:0", Batch(4000)}}, {"", {"y:0"}, 0, {}, little});
  show::Expect(full.status().code() == ONCILLA_RESOURCE_EXHAUSTED, full.status().message());

  // tf.config.experimental.get_memory_info('GPU:0'), for every device.
  const auto info = session.MemoryInfo(little).value();
  show::Expect(info.pool_bytes <= info.limit_bytes && info.limit_bytes == 16777216,
               card + ":1 holds " + std::to_string(info.pool_bytes) + " of " +
                   std::to_string(info.limit_bytes) + " bytes");
  std::printf("%s\n", session.MemoryReport().value().c_str());
  show::Expect(session.Close().value() > 0, "closed");

  // A smaller batch by itself: the run is divided, and the results put together.
  options.config += "on_out_of_memory { steps: 'trim' steps: 'split' }";
  options.device = card + ":1";
  session = oncilla::Session::Create(runtime, options).value();
  model = session.Load(g).value();
  auto parts = model.Run({{"x:0", Batch(4000)}}, {"", {"y:0"}, 0}).value();
  show::Expect(parts[0].dims() == std::vector<int64_t>{4000, 1024}, parts.report());

  // with tf.device('/GPU:0'): intermediate tensors that never visit the host.
  options = {};
  options.device = has_gpu ? "gpu:0" : "cpu";
  session = oncilla::Session::Create(runtime, options).value();
  model = session.Load(g).value();
  oncilla::RunOptions keep;
  keep.outputs = {"y:0"};
  keep.keep_all = true;
  auto first = model.Run({{"x:0", Batch(8)}}, keep).value();
  auto second = model.Run({{"x:0", first[0]}}, {"", {"y:0"}, 0}).value();
  show::Expect(second[0].dims() == std::vector<int64_t>{8, 1024}, second.report());

  // tf.keras.mixed_precision.set_global_policy('mixed_float16'): here of a session, for any model,
  // and without cards that compute in 16 bits. Numbers are stored in 16 bits, sums are in 32.
  options.config += "precision { storage: 'fp16' }";
  auto half = oncilla::Session::Create(runtime, options).value();
  auto narrow = half.Load(g).value();
  auto third = narrow.Run({{"x:0", Batch(8)}}, {"", {"y:0"}, 0}).value();
  auto wide = model.Run({{"x:0", Batch(8)}}, {"", {"y:0"}, 0}).value();
  const std::string device = second.report().substr(0, second.report().find(' '));
  const auto held = [&](oncilla::Session& of) { return of.MemoryInfo(device).value().peak_bytes; };
  double error = 0, largest = 0;
  const float *a = third[0].data<float>(), *b = wide[0].data<float>();
  for (size_t i = 0; i < wide[0].size(); ++i) {
    error = std::max(error, std::abs(double{a[i]} - double{b[i]}));
    largest = std::max(largest, std::abs(double{b[i]}));
  }
  show::Expect(error <= largest / 100, "fp16 differs by at most 1 %");
  show::Expect(held(half) < held(session), "and takes " + std::to_string(held(half)) + " of " +
                                               std::to_string(held(session)) + " bytes");
}
