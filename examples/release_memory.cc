// Graphs built in code, and memory that goes back when it is told to.
//   release_memory
// In TensorFlow neither session.close() nor tf.compat.v1.reset_default_graph() gives a byte of GPU
// memory back to the driver: it stays in the process' pool until the process ends.
#include "examples/show.h"

namespace {

// What a session holds of all its devices, as bytes taken from drivers.
int64_t Taken(const oncilla::Session& session, const std::vector<std::string>& devices) {
  int64_t bytes = 0;
  for (const std::string& device : devices) {
    oncilla_memory_info info{};
    info.size = sizeof(info);
    const oncilla::Status status(oncilla_session_memory(session.get(), device.c_str(), &info));
    if (status.ok()) bytes += info.pool_bytes;
  }
  return bytes;
}

}  // namespace

int main() {
  auto runtime = oncilla::Runtime::Create().value();
  std::vector<std::string> devices;
  for (const oncilla::DeviceInfo& device : runtime.Devices()) devices.push_back(device.name);
  {
    // with tf.compat.v1.Session() as sess:
    auto session = oncilla::Session::Create(runtime).value();
    oncilla::GraphBuilder g;
    // a = tf.constant([1.0, 2.0, 3.0]); b = tf.constant([4.0, 5.0, 6.0])
    const auto a = g.Constant({1, 2, 3}, "a"), b = g.Constant({4, 5, 6}, "b");
    // c = a + b; print(sess.run(c))
    const auto c = a + b;
    auto model = session.Load(g).value();
    auto result = model.Run({}, {"", {c.tensor()}, 0}).value();
    show::Expect(show::Numbers(result[0]) == "[5 7 9]", "a + b = " + show::Numbers(result[0]));
  }  // sess.close(): the session's destructor closes it
  {
    auto session = oncilla::Session::Create(runtime).value();
    // Two graphs, one after the other, as after tf.compat.v1.reset_default_graph().
    oncilla::GraphBuilder first, second;
    const auto product = first.Constant({1, 2}) * first.Constant({3, 4});
    const auto sum = second.Constant({5, 6}) + second.Constant({7, 8});
    auto model = session.Load(first).value();
    auto result = model.Run({}, {"", {product.tensor()}, 0}).value();
    show::Expect(show::Numbers(result[0]) == "[3 8]", "first graph: " + show::Numbers(result[0]));
    model.Unload().value();  // the graph, its plans and its weights
    auto other = session.Load(second).value();
    result = other.Run({}, {"", {sum.tensor()}, 0}).value();
    show::Expect(show::Numbers(result[0]) == "[12 14]",
                 "second graph: " + show::Numbers(result[0]));
  }
  // A model with weights worth counting, over and over.
  auto session = oncilla::Session::Create(runtime).value();
  oncilla::GraphBuilder g;
  const auto x = g.Placeholder(ONCILLA_FLOAT32, {-1, 512}, "x");
  const auto w = g.Constant({512, 512}, std::vector<float>(512 * 512, 0.5F), "w");
  const auto y = g.MatMul(x, w, "y");
  const auto ones = oncilla::Tensor::Of<float>({4, 512}, std::vector<float>(4 * 512, 1.0F)).value();
  int64_t after_first = 0;
  for (int round = 0; round < 20; ++round) {
    auto model = session.Load(g).value();
    auto result = model.Run({{"x:0", ones}}, {"", {y.tensor()}, 0}).value();
    if (result[0].data<float>()[0] != 256.0F) show::Expect(false, "the product is right");
    const int64_t held = Taken(session, devices);
    if (held < 512 * 512 * 4) show::Expect(false, "the weights are counted");
    const int64_t released = model.Unload().value();
    session.Trim().value();
    if (round == 0) {
      after_first = Taken(session, devices);
      std::printf("held %lld bytes, unloading gave back %lld\n", static_cast<long long>(held),
                  static_cast<long long>(released));
    }
  }
  show::Expect(Taken(session, devices) == after_first, "20 rounds leave what one leaves");
  session.Close().value();
  show::Expect(session.Close().value() == 0, "closing twice is nothing");
}
