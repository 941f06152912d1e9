// Nodes on devices: in the graph, after loading, and from run to run.
//   device_placement MODEL     a SavedModel with an image as its input
// In TensorFlow a tf.device around session.run or get_tensor_by_name does nothing, and what a
// SavedModel stores is followed whether there is such a device or not.
#include <cmath>

#include "examples/show.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: device_placement MODEL\n"), 2;
  auto runtime = oncilla::Runtime::Create().value();
  const auto gpus = show::Gpus(runtime);
  const std::string gpu = gpus.empty() ? "/CPU:0" : "/GPU:0";
  const std::string other = gpus.size() > 1 ? "/GPU:1" : "/CPU:0";

  // config = tf.compat.v1.ConfigProto(allow_soft_placement=True, log_device_placement=False)
  auto session = oncilla::Session::Create(runtime).value();
  {
    oncilla::GraphBuilder g;
    std::vector<oncilla::GraphOutput> fetches;
    {
      // with tf.device('/CPU:0'):
      const oncilla::DeviceScope scope(g, "/CPU:0");
      fetches.push_back(g.Constant({1, 2}) + g.Constant({3, 4}));
    }
    {
      // with tf.device('/GPU:0'):
      const oncilla::DeviceScope scope(g, gpu);
      fetches.push_back(g.Constant({5, 6}) * g.Constant({7, 8}));
    }
    oncilla::LoadOptions soft;
    soft.stored_devices = oncilla::StoredDevices::kSoft;
    auto model = session.Load(g, soft).value();
    // One run that fetches from both devices.
    auto both = model.Run({}, {"", {fetches[0].tensor(), fetches[1].tensor()}, 0}).value();
    show::Expect(show::Numbers(both[0]) == "[4 6]", "on the CPU: " + show::Numbers(both[0]));
    show::Expect(show::Numbers(both[1]) == "[35 48]", "on " + gpu + ": " + show::Numbers(both[1]));
  }

  auto model = session.Load(argv[1]).value();
  const std::vector<uint8_t> pixels(static_cast<size_t>(224) * 224 * 3, 90);
  auto image = oncilla::Tensor::Of<uint8_t>({1, 224, 224, 3}, pixels).value();
  auto reference = model.Run({{"image", image}}, {"", {"logits"}, 0, {}, "/CPU:0"}).value();
  const float* want = reference[0].data<float>();
  const auto agrees = [&](const oncilla::Tensor& got) {
    double worst = 0;
    for (int i = 0; i < 1000; ++i) {
      worst = std::fmax(worst, std::fabs(static_cast<double>(got.data<float>()[i] - want[i])));
    }
    return worst < 1e-3;
  };
  // for i in range(4): with tf.device('/GPU:0' if i % 2 else '/CPU:0'): sess.run(...)
  for (int i = 0; i < 4; ++i) {
    const std::string device = i % 2 ? gpu : "/CPU:0";
    auto result = model.Run({{"image", image}}, {"", {"logits"}, 0, {}, device}).value();
    show::Expect(agrees(result[0]), "run " + std::to_string(i) + ": " + result.report());
  }
  // Ops and variables by name, after loading: the weights move with them.
  show::Expect(model.Place("*", other).ok(), "everything to " + other);
  show::Expect(model.PlaceType("Softmax", "/CPU:0").ok(), "but every Softmax to the CPU");
  auto placed = model.Run({{"image", image}}, {"", {"logits", "probability"}, 0}).value();
  show::Expect(agrees(placed[0]), placed.report());
  // log_device_placement, with the reason for each node.
  const std::string report = model.Placement().value();
  std::printf("%s..\n", report.substr(0, report.find('\n')).c_str());
  show::Expect(report.find("requested") != std::string::npos, "the report gives the reasons");
  show::Expect(model.ClearPlacement().ok(), "and all of it is taken back");
  // with tf.device('/GPU:9'): soft placement relaxes it, and says so.
  show::Expect(model.Place("*", "/GPU:9").ok(), "a device that is not there");
  auto relaxed = model.Run({{"image", image}}, {"", {"logits"}, 0}).value();
  show::Expect(agrees(relaxed[0]) && relaxed.report().find("GPU:9") != std::string::npos,
               relaxed.report());
}
