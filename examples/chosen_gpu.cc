// A frozen model on a chosen GPU, and what happens when that fails.
//   chosen_gpu MODEL FROZEN    a SavedModel, and a file that the program writes a frozen graph to
// tf.saved_model.load cannot read a frozen graph; the guides catch RuntimeError, which is not what
// an exhausted or a lost GPU raises.
#include "examples/show.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: chosen_gpu MODEL FROZEN\n"), 2;
  const std::string frozen = argv[2];
  auto runtime = oncilla::Runtime::Create().value();
  // gpus = tf.config.list_physical_devices('GPU'); if not gpus: print("No GPUs found..")
  const auto gpus = show::Gpus(runtime);
  for (const auto& gpu : gpus) {
    std::printf("%s: %s, %s\n", show::Short(gpu.name).c_str(), gpu.driver_name.c_str(),
                gpu.id.c_str());
  }
  if (gpus.empty()) std::printf("No GPUs found. Proceeding with CPU.\n");

  // A frozen graph, as freezing tools write it: y = relu(x @ w).
  oncilla::GraphBuilder g;
  const auto x = g.Placeholder(ONCILLA_FLOAT32, {1, 2}, "x");
  const auto w = g.Constant({2, 2}, {1, -2, 3, 4}, "w");
  g.Op("Relu", {g.MatMul(x, w, "product")}, "y");
  show::Expect(g.Save(frozen).ok(), "wrote " + frozen);
  const auto one = oncilla::Tensor::Of<float>({1, 2}, {1, 1}).value();

  // tf.config.set_visible_devices(gpus[-1], 'GPU'): the others are never opened.
  oncilla::SessionOptions options;
  const std::string last = gpus.empty() ? "" : show::Short(gpus.back().name);
  if (!last.empty()) options.config = "visible_devices: '" + last + "'";
  {
    // with tf.device('/GPU:1'): model = load(path). The weights go straight there.
    auto session = oncilla::Session::Create(runtime, options).value();
    auto model = session.Load(frozen).value();
    auto result = model.Run({{"x:0", one}}).value();
    show::Expect(show::Numbers(result["y:0"]) == "[4 2]", result.report());
  }
  // A GPU that does not exist is an error with the list of what does ..
  options = {};
  options.device = "gpu:9";
  auto refused = oncilla::Session::Create(runtime, options);
  show::Expect(refused.status().code() == ONCILLA_NOT_FOUND, refused.status().message());
  // .. unless the program says what then: try: with tf.device('/GPU:9') .. except: with
  // tf.device('/CPU:0')
  options.config =
      "fallback { on: 'no_device' on: 'load_out_of_memory' on: 'run_out_of_memory'"
      "           on: 'device_lost' on: 'unsupported' chain: 'gpu:0' chain: 'cpu' }";
  auto session = oncilla::Session::Create(runtime, options).value();
  auto model = session.Load(frozen).value();
  auto result = model.Run({{"x:0", one}}).value();
  show::Expect(result.report().find("not on gpu:9") != std::string::npos, result.report());
  // Memory that is too small for the weights of a real model: on to the next device.
  const std::string card = gpus.empty() ? "CPU:0" : "GPU:0";
  const std::string small = "logical_devices { physical: '" + card +
                            "' memory_limit_bytes: 100000 }" +
                            (gpus.empty() ? "logical_devices { physical: 'CPU:0' }" : "");
  options.device = card;
  options.config = small + "fallback { on: 'load_out_of_memory' on: 'run_out_of_memory' chain: '" +
                   (gpus.empty() ? "cpu:1" : "cpu:0") + "' }";
  session = oncilla::Session::Create(runtime, options).value();
  auto net = session.Load(argv[1]).value();
  const std::vector<uint8_t> pixels(static_cast<size_t>(224) * 224 * 3, 90);
  auto image = oncilla::Tensor::Of<uint8_t>({1, 224, 224, 3}, pixels).value();
  auto moved = net.Run({{"image", image}}).value();
  show::Expect(moved.report().find("not on") != std::string::npos, moved.report());
  // except tf.errors.ResourceExhaustedError as e: stage, device and the numbers come with it.
  options.config = small;
  session = oncilla::Session::Create(runtime, options).value();
  auto failed = session.Load(argv[1]).value().Run({{"image", image}});
  show::Expect(failed.status().code() == ONCILLA_RESOURCE_EXHAUSTED,
               failed.status().message().substr(0, 160));
}
