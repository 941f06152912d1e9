// Uses the C++ interface as an application does.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <oncilla/oncilla.hpp>
#include <oncilla/oncilla_opencl.hpp>
#include <oncilla/oncilla_precision.hpp>
#include <sstream>

namespace {

int failures = 0;
#define EXPECT(condition)                                               \
  do {                                                                  \
    if (!(condition)) {                                                 \
      std::printf("line %d: %s does not hold\n", __LINE__, #condition); \
      ++failures;                                                       \
    }                                                                   \
  } while (0)

// Tensors, their descriptions, and names that do not exist.
void Values(const std::string& path) {
  // The session of a model may be a temporary: the model keeps it.
  auto model = oncilla::Session::Create({"cpu"}).value().Load(path).value();
  EXPECT(model.signatures() == std::vector<std::string>{"serving_default"});
  const std::vector<oncilla::TensorInfo> inputs = model.inputs();
  EXPECT(inputs.size() == 1 && inputs[0].name == "image" && inputs[0].dtype == ONCILLA_UINT8);
  EXPECT(model.outputs().size() == 3 && model.outputs("nothing").empty());

  const std::vector<oncilla::TensorInfo> variables = model.variables();
  EXPECT(!variables.empty());
  for (const oncilla::TensorInfo& variable : variables) {
    const auto value = model.ReadVariable(variable.name);
    EXPECT(value.ok() && value->dims() == variable.dims && value->dtype() == variable.dtype);
    EXPECT(
        !model.AssignVariable(variable.name, oncilla::Tensor::Of<int8_t>({1}, {1}).value()).ok());
  }
  EXPECT(model.ReadVariable("nothing").status().code() == ONCILLA_NOT_FOUND);

  static uint8_t pixels[8 * 8 * 3];
  std::memset(pixels, 90, sizeof(pixels));
  int released = 0;
  {
    auto image =
        oncilla::Tensor::Wrap({1, 8, 8, 3}, pixels, sizeof(pixels), [&] { ++released; }).value();
    std::ostringstream text;
    text << image;
    EXPECT(text.str().find("u8[1,8,8,3] 90 90") == 0);
    EXPECT(model.Prepare({{"image", image}}).ok());
    const auto result = model(image);
    EXPECT(result.ok() && result->Has("logits") && !result->Has("nothing"));
    const oncilla::Tensor nothing = (*result)["nothing"];
    EXPECT(!nothing.valid() && nothing.data<float>() == nullptr && nothing.dims().empty());
    const std::string name = "logits";
    std::vector<float> logits(1000);
    EXPECT(result->CopyTo(name, logits.data(), logits.size() * sizeof(float)).ok());
    EXPECT(std::memcmp(logits.data(), (*result)[name].raw(), logits.size() * sizeof(float)) == 0);
    EXPECT(!result->CopyTo(name, logits.data(), 5).ok());
    EXPECT(result->CopyTo("lgits", logits.data(), 4).message().find("'logits'") !=
           std::string::npos);
  }
  EXPECT(released == 1);
  try {
    (void)model.Run({}, {"serving_default"}).value();
    EXPECT(!"a run without inputs gives a value");
  } catch (const oncilla::Error& error) {
    EXPECT(error.code() == ONCILLA_INVALID_ARGUMENT && !error.status().stage().empty());
  }
}

// Options of loading, and graphs built in code.
void Loading(const std::string& path) {
  auto session = oncilla::Session::Create({"cpu"}).value();
  EXPECT(session.Load(path, {{"serve"}}).ok() && session.Load(path, {"serve"}).ok());
  // Two tags must not be read as one text.
  const auto two = session.Load(path, {{"serve", "gpu"}});
  EXPECT(!two.ok() && two.status().code() == ONCILLA_NOT_FOUND);
  EXPECT(!session.Load(path, {" serve , gpu "}).ok());
  oncilla::LoadOptions eager;
  eager.load_policy = oncilla::LoadPolicy::kEager;
  EXPECT(session.Load(path, eager).ok());

  oncilla::GraphBuilder g;
  auto x = g.Placeholder(ONCILLA_FLOAT32, {1, 4, 4, 1}, "x");
  auto filter = g.Constant({2, 2, 1, 1}, {1, 1, 1, 1});
  g.Attr("strides", {1, 2, 2, 1}).Attr("padding", "VALID");
  auto y = g.Op("Conv2D", {x, filter}, "y");
  const auto one = g.Constant({1}, {1}), named = g.Constant({1, 2}, "named");
  EXPECT(one.tensor() == "Const_1:0" && named.tensor() == "named:0");
  EXPECT(g.Save("conv.pb").ok());
  auto ones = oncilla::Tensor::Of<float>({1, 4, 4, 1}, std::vector<float>(16, 1.0f)).value();
  std::FILE* file = std::fopen("conv.pb", "rb");
  if (file == nullptr) return;
  std::vector<char> bytes(1 << 16);
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  std::fclose(file);
  int released = 0;
  {
    auto model = session.LoadBytes(bytes.data(), bytes.size(), {}, [&] { ++released; }).value();
    auto result = model.Run({{"x:0", ones}}, {{}, {"y:0"}}).value();
    EXPECT(result[0].data<float>()[0] == 4 && released == 0);
    (void)model.Unload().value();
  }
  EXPECT(released == 1);
  const auto none = session.LoadBytes("no model", 8);
  EXPECT(!none.ok() && none.status().code() == ONCILLA_DATA_LOSS);
  EXPECT(session.Load(g).value().Run({{"x:0", ones}}, {{}, {"y:0"}}).ok());
}

// Which nodes of an ONNX file are supported: Relu is, "Nope" is not an op.
void Judgement() {
  const char bytes[] =
      "\x08\x08\x12\x00:A\x0a\x0c\x0a\x01x\x12\x01"
      "a\x22\x04Relu\x0a\x0c\x0a\x01"
      "a\x12\x01y\x22\x04Nope\x12\x01gZ\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08"
      "\x02"
      "b\x0f\x0a\x01y\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x02"
      "B\x04\x0a\x00\x10\x11";
  auto session = oncilla::Session::Create({"cpu"}).value();
  oncilla::LoadOptions options;
  options.name = "relu_and_nope";
  auto model = session.LoadBytes(bytes, sizeof(bytes) - 1, options).value();
  const auto judged = model.JudgeNodes().value();
  EXPECT(judged.size() == 2 && judged[0].op == "Relu" && judged[0].reason.empty());
  EXPECT(judged[1].node == "y" && judged[1].reason.find("Nope") != std::string::npos);
  const auto failed = model.Prepare({});
  EXPECT(failed.code() == ONCILLA_UNIMPLEMENTED);
  EXPECT(failed.message().find("relu_and_nope") != std::string::npos);
}

// Every spelling of a device names it.
void Devices() {
  auto runtime = oncilla::Runtime::Create().value();
  for (const char* name : {"CPU", "cpu", "CPU:0", "cpu:0", "/CPU:0", "/cpu:0", "/device:CPU:0",
                           "/job:localhost/replica:0/task:0/device:CPU:0"}) {
    EXPECT(runtime.HasDevice(name));
  }
  for (const char* name : {"", "CPU:7", "/TPU:0", "nonsense"}) EXPECT(!runtime.HasDevice(name));
  auto session = oncilla::Session::Create(runtime, {"cpu"}).value();
  const auto devices = session.Devices();
  EXPECT(!devices.empty() && devices[0].in_use && devices[0].preferred &&
         devices[0].limit_bytes > 0);
}

// The application's functions are called, and released with the last handle.
void Functions(const std::string& path) {
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watch = alive;
  std::atomic<int> logged = 0, placed = 0, done = 0;
  std::atomic<int64_t> held = 0, most = 0;
  oncilla::RuntimeOptions options;
  options.log = [&, alive](oncilla_log_level, const std::string& line) { logged += !line.empty(); };
  options.log_level = ONCILLA_LOG_DEBUG;
  options.allocator.allocate = [&](size_t bytes, size_t alignment) {
    most = std::max<int64_t>(most, held += static_cast<int64_t>(bytes));
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  };
  options.allocator.release = [&](void* memory, size_t bytes) {
    held -= static_cast<int64_t>(bytes);
    std::free(memory);
  };
  {
    auto runtime = oncilla::Runtime::Create(options).value();
    auto session = oncilla::Session::Create(runtime, {"cpu"}).value();
    oncilla::LoadOptions load;
    load.progress = [&](const std::string& what, double fraction) {
      done += what == "load" && fraction == 1;
    };
    auto model = session.Load(path, load).value();
    EXPECT(done == 1);
    EXPECT(model.MemoryReport().value().find("\"constants\"") != std::string::npos);
    EXPECT(model
               .PlaceBy([&, alive](const std::string& node, const std::string& op,
                                   const std::string&) -> std::string {
                 placed += !node.empty() && !op.empty();
                 return op == "Softmax" ? "/CPU:0" : "";
               })
               .ok());
    auto image =
        oncilla::Tensor::Of<uint8_t>({1, 8, 8, 3}, std::vector<uint8_t>(8 * 8 * 3, 90)).value();
    alignas(64) static float logits[1000];
    oncilla::RunOptions run;
    run.outputs = {"logits"};
    run.into = {{"logits", logits, sizeof(logits)}};
    const auto result = model.Run({{"image", image}}, run).value();
    EXPECT(result[0].data<float>() == logits && logits[0] != 0);
    EXPECT(placed > 10 && most > 1000000);
    run.into = {{"lgits", logits, sizeof(logits)}};
    EXPECT(!model.Run({{"image", image}}, run).ok());
    alive.reset();
    options = {};
    EXPECT(!watch.expired());
    const auto closed = runtime.CloseSessions().value();
    EXPECT(closed.released_bytes > 0 && !closed.still_held.empty());
    EXPECT(!model.Run({{"image", image}}).ok());
  }
  EXPECT(held == 0 && logged > 0 && watch.expired());
  EXPECT(!oncilla::Version().empty() && !oncilla::BuildInfo().empty());
  options.allocator.allocate = [](size_t, size_t) -> void* { return nullptr; };
  EXPECT(!oncilla::Runtime::Create(options).ok());  // without its release
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Values(argv[1]);
  Loading(argv[1]);
  Judgement();
  Devices();
  Functions(argv[1]);
  oncilla::SessionOptions options;
  options.device = "cpu";
  auto session = oncilla::Session::Create(options).value();
  auto model = session.Load(argv[1]).value();
  auto image =
      oncilla::Tensor::Of<uint8_t>({1, 8, 8, 3}, std::vector<uint8_t>(8 * 8 * 3, 90)).value();
  auto result = model.Run({{"image", image}}).value();
  auto only = model.Run({{"image", image}}, {"", {"label"}, 0}).value();
  auto missing = model.Run({});
  const bool ok = result.size() == 3 && result["probability"].data<float>() != nullptr &&
                  result["logits"].dims() == std::vector<int64_t>{1, 1000} && only.size() == 1 &&
                  !only[0].string(0).empty() && !missing.ok() &&
                  missing.status().code() == ONCILLA_INVALID_ARGUMENT &&
                  !oncilla::opencl::MakeRuntime(nullptr).ok() &&
                  !oncilla::PrecisionCheck::Run(oncilla::Runtime::Create().value(), argv[1],
                                                {{"image", image}}, {"fp8"})
                       .ok() &&
                  session.MemoryReport().value().find("limit") != std::string::npos &&
                  session.Close().value() > 0 && failures == 0;
  std::printf("%s: %s\n", only[0].string(0).c_str(), ok ? "consumer ok" : "consumer FAILED");
  return ok ? 0 : 1;
}
