// Two loads of one file in a session: equal weights are stored once, and stay when the first of the
// loads is unloaded.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "engine/session/model.h"
#include "engine/session/runtime.h"
#include "engine/session/session.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMiB = int64_t{1} << 20;
const std::string kSource = ONCILLA_SOURCE_DIR;
const std::string kNet = kSource + "/testdata/quickstart/efficientnet_lite0";
const std::string kMlp = kSource + "/testdata/tensorflow/models/mlp";

class SharedWeights : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    RuntimeOptions options = RuntimeOptionsFromEnvironment();
    options.opencl_cpu_devices = true;
    options.threads = 2;
    runtime_ = Runtime::Create(options);
    if (!runtime_->Resolve(GetParam()).ok()) GTEST_SKIP() << "no device " << GetParam();
  }
  std::shared_ptr<Session> Open() {
    return Session::Create(runtime_, SessionOptions{.device = GetParam()}).value();
  }
  static std::shared_ptr<Model> Load(Session& session, const std::string& path) {
    auto model = session.Load(path, {});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *model : nullptr;
  }
  static RunRequest Request() {
    RunRequest request;
    Tensor image = Tensor::Allocate({DType::kU8, {1, 48, 48, 3}}).value();
    int seed = 1;
    for (uint8_t& v : image.MutableAs<uint8_t>())
      v = static_cast<uint8_t>(seed = seed * 75 % 65537);
    request.feeds = {{"image", std::move(image)}};
    request.fetches = {"logits"};
    return request;
  }
  static DeviceMemory MemoryOf(const Session& session) {
    return session.memory().Devices()[static_cast<size_t>(session.device_set().preferred())];
  }

  std::shared_ptr<Runtime> runtime_;
};

TEST_P(SharedWeights, LoadsOfOneFileHoldItsWeightsOnce) {
  const auto session = Open();
  const auto one = Load(*session, kNet);
  const auto first = one->Run(Request());
  ASSERT_TRUE(first.ok()) << first.status();
  const int64_t weights = one->executables().counters().constant_bytes,
                taken = MemoryOf(*session).pool_bytes;
  ASSERT_GT(weights, 10 * kMiB);
  const auto two = Load(*session, kNet);
  const auto right = [&] {
    const auto result = two->Run(Request());
    ASSERT_TRUE(result.ok()) << result.status();
    const auto got = result->outputs[0].second.bytes(), want = first->outputs[0].second.bytes();
    EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin(), want.end()));
  };
  right();
  EXPECT_LT(MemoryOf(*session).pool_bytes, taken + weights / 2);
  EXPECT_EQ(two->executables().counters().constant_bytes, weights);
  EXPECT_THAT(session->memory().Report(), HasSubstr("of which other models hold"));
  // Whoever goes first leaves them to the other.
  one->Unload();
  right();
  EXPECT_GE(MemoryOf(*session).pool_bytes, weights);
  EXPECT_THAT(session->memory().Report(), Not(HasSubstr("of which other models hold")));
  const auto three = Load(*session, kNet);
  ASSERT_TRUE(three->Run(Request()).ok());
  two->Unload();
  ASSERT_TRUE(three->Run(Request()).ok());
  three->Unload();
  session->memory().Trim();
  EXPECT_EQ(MemoryOf(*session).pool_bytes, 0);
  EXPECT_EQ(MemoryOf(*session).in_use_bytes, 0);
}

TEST_P(SharedWeights, AFileThatHasChangedHasWeightsOfItsOwn) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/mlp";
  std::filesystem::copy(kMlp, path, std::filesystem::copy_options::recursive);
  const auto session = Open();
  const auto shared = [&](const Model& model) {
    const auto constants = model.executables().memory().constants;
    return std::count_if(constants.begin(), constants.end(),
                         [](const auto& c) { return c.shared; });
  };
  const auto one = Load(*session, path), two = Load(*session, path);
  ASSERT_TRUE(one->Prepare({}).ok());
  ASSERT_TRUE(two->Prepare({}).ok());
  EXPECT_GT(shared(*two), 0);
  EXPECT_EQ(shared(*one), shared(*two));
  std::filesystem::last_write_time(
      path + "/saved_model.pb",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto three = Load(*session, path);
  ASSERT_TRUE(three->Prepare({}).ok());
  EXPECT_EQ(shared(*three), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, SharedWeights, ::testing::Values("cpu", "gpu"));

}  // namespace
}  // namespace oncilla
