// Two applications in one process, each with a session, memory and threads of its own.
//   parallel_sessions MODEL     a SavedModel with an image as its input
// TensorFlow has one runtime per process: its memory options must be set before anything else has
// run, count for every model, and all models share one pool per GPU.
#include <thread>

#include "examples/show.h"

namespace {

struct Application {
  std::string name, device;
  int64_t limit_bytes;
};

// Loads, runs a few times and closes; everything here is this thread's own.
void Serve(const oncilla::Runtime& runtime, const Application& app, const std::string& path,
           int* label) {
  // tf.config.experimental.set_memory_growth(gpu, True): memory always grows as it is needed.
  // tf.config.set_logical_device_configuration(gpu, [...memory_limit=N]): a session's own limit.
  oncilla::SessionOptions options;
  options.device = app.device;
  options.memory_limit_bytes = app.limit_bytes;
  options.threads = 1;
  // with tf.compat.v1.Session(config=config) as session:
  auto session = oncilla::Session::Create(runtime, options).value();
  // model = tf.saved_model.load(path)
  auto model = session.Load(path).value();
  const std::vector<uint8_t> pixels(static_cast<size_t>(224) * 224 * 3, 127);
  auto image = oncilla::Tensor::Of<uint8_t>({1, 224, 224, 3}, pixels).value();
  for (int i = 0; i < 3; ++i) {
    // output = model.signatures['serving_default'](image)
    auto result = model.Run({{"image", image}}).value();
    const float* logits = result["logits"].data<float>();
    for (int c = 0; c < 1000; ++c) *label = logits[c] > logits[*label] ? c : *label;
    if (i == 0) std::printf("%s: %s\n", app.name.c_str(), result.report().c_str());
  }
  // The session's memory goes back here, to the driver: in TensorFlow it stays in the process.
  const int64_t released = session.Close().value();
  show::Expect(released > 0, app.name + " gave back " + std::to_string(released) + " bytes");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: parallel_sessions MODEL\n"), 2;
  // tf.config.list_physical_devices(): opens nothing, whenever it is called.
  auto runtime = oncilla::Runtime::Create().value();
  std::printf("%zu devices, %zu GPUs\n", runtime.Devices().size(), show::Gpus(runtime).size());
  const size_t gpus = show::Gpus(runtime).size();
  // CUDA_VISIBLE_DEVICES per process: here a device per session.
  const Application apps[] = {
      {"web server", gpus > 0 ? "gpu:0" : "cpu", int64_t{256} << 20},
      {"batch job", gpus > 1 ? "gpu:1" : "cpu", int64_t{128} << 20},
  };
  int labels[2] = {0, 0};
  std::thread first([&] { Serve(runtime, apps[0], argv[1], &labels[0]); });
  std::thread second([&] { Serve(runtime, apps[1], argv[1], &labels[1]); });
  first.join();
  second.join();
  show::Expect(labels[0] == labels[1], "both see the same picture");
}
