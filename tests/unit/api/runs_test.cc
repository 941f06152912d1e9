// Runs through the public interface, as an application uses it: asynchronous, cancelled, chained on
// a device, by position. Includes nothing of the engine.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <complex>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <oncilla/oncilla.hpp>
#include <string>
#include <thread>

namespace {

using ::testing::HasSubstr;

const std::string kModel =
    std::string(ONCILLA_SOURCE_DIR) + "/testdata/quickstart/efficientnet_lite0";

std::string Refused(oncilla_status* status) {
  const oncilla::Status own(status);
  EXPECT_EQ(own.code(), ONCILLA_INVALID_ARGUMENT);
  return own.message();
}

TEST(ApiBorders, SizesOfStructsHaveABound) {
  oncilla_runtime* runtime = nullptr;
  oncilla_runtime_options options{};
  options.size = size_t{1} << 40;
  EXPECT_THAT(Refused(oncilla_runtime_create(&options, &runtime)),
              HasSubstr("oncilla_runtime_options: size is 1099511627776"));
  options.size = sizeof(options);
  options.threads = 1025;
  EXPECT_THAT(Refused(oncilla_runtime_create(&options, &runtime)),
              HasSubstr("threads is 1025, not in 0 to 1024"));
  options.threads = 1;
  const oncilla::Status made(oncilla_runtime_create(&options, &runtime));
  ASSERT_TRUE(made.ok()) << made.message();
  oncilla_session* session = nullptr;
  oncilla_session_options wanted{};
  wanted.size = 4097;
  EXPECT_THAT(Refused(oncilla_session_create(runtime, &wanted, &session)),
              HasSubstr("size is 4097, more than a struct can have (4096)"));
  wanted.size = sizeof(wanted);
  wanted.threads = 100000;
  EXPECT_THAT(Refused(oncilla_session_create(runtime, &wanted, &session)),
              HasSubstr("threads is 100000"));
  oncilla_device_info device{};
  device.size = size_t{1} << 40;
  EXPECT_THAT(Refused(oncilla_runtime_device(runtime, 0, &device)),
              HasSubstr("size is 1099511627776"));
  oncilla_runtime_free(runtime);
}

TEST(ApiBorders, ElementsOfBoolTensorsAreZeroOrOne) {
  const int64_t dims[] = {3};
  const unsigned char good[] = {0, 1, 1}, bad[] = {0, 7, 1};
  oncilla_tensor* tensor = nullptr;
  EXPECT_EQ(oncilla_tensor_create(ONCILLA_BOOL, dims, 1, good, 3, &tensor), nullptr);
  oncilla_tensor_free(tensor);
  EXPECT_THAT(Refused(oncilla_tensor_create(ONCILLA_BOOL, dims, 1, bad, 3, &tensor)),
              HasSubstr("element 1 of a bool tensor is 7"));
  EXPECT_THAT(
      Refused(oncilla_tensor_wrap(ONCILLA_BOOL, dims, 1, bad, 3, nullptr, nullptr, &tensor)),
      HasSubstr("element 1 of a bool tensor is 7"));
}

TEST(ApiBorders, StringsAreAsManyAsTheShapeHolds) {
  EXPECT_TRUE(oncilla::Tensor::Strings({2}, {"a", "b"}).ok());
  EXPECT_TRUE(oncilla::Tensor::Strings({0, 3}, {}).ok());
  for (const auto& values : {std::vector<std::string>{"a"}, {"a", "b", "c"}}) {
    const auto refused = oncilla::Tensor::Strings({2}, values);
    EXPECT_EQ(refused.status().code(), ONCILLA_INVALID_ARGUMENT);
    EXPECT_THAT(refused.status().message(), HasSubstr("holds 2 strings, not "));
  }
  EXPECT_FALSE(oncilla::Tensor::Strings({-1}, {"a"}).ok());
  EXPECT_FALSE(oncilla::Tensor::Strings({int64_t{1} << 40, int64_t{1} << 40}, {"a"}).ok());
}

TEST(ApiTensor, SharedHandleOutlivesTheOther) {
  const float values[] = {1, 2, 3};
  const int64_t dims[] = {3};
  int released = 0;
  oncilla_tensor *tensor = nullptr, *shared = nullptr;
  ASSERT_EQ(oncilla_tensor_wrap(
                ONCILLA_FLOAT32, dims, 1, values, sizeof(values),
                [](void* count) { ++*static_cast<int*>(count); }, &released, &tensor),
            nullptr);
  ASSERT_EQ(oncilla_tensor_share(tensor, &shared), nullptr);
  oncilla_tensor_free(tensor);
  EXPECT_EQ(released, 0);
  EXPECT_EQ(oncilla_tensor_data(shared), values);
  EXPECT_EQ(oncilla_tensor_dims(shared)[0], 3);
  oncilla_tensor_free(shared);
  EXPECT_EQ(released, 1);
  EXPECT_THAT(Refused(oncilla_tensor_share(nullptr, &shared)), HasSubstr("tensor is null"));
}

TEST(ApiComplex, NumbersGoInAndComeOut) {
  oncilla::SessionOptions options;
  options.device = "cpu";
  options.max_concurrent_runs = 2;
  auto session = oncilla::Session::Create(options).value();
  EXPECT_THAT(session.config(), HasSubstr("max_concurrent_runs"));
  auto model =
      session
          .Load(std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/runs/complex_border/model")
          .value();
  using Wide = std::complex<double>;
  const auto z = oncilla::Tensor::Of<Wide>({}, {Wide(3, -4)}).value();
  const auto result = model.Run({{"z", z}}, {"wide"}).value();
  const oncilla::Tensor y = result["y"];
  EXPECT_EQ(y.dtype(), ONCILLA_COMPLEX128);
  ASSERT_NE(y.data<Wide>(), nullptr);
  EXPECT_EQ(*y.data<Wide>(), Wide(2, -1));
  EXPECT_EQ(y.data<double>(), nullptr);
}

class ApiRuns : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    oncilla::SessionOptions options;
    options.device = GetParam();
    options.opencl_cpu_devices = true;
    auto session = oncilla::Session::Create(options);
    if (!session.ok() && session.status().code() == ONCILLA_NOT_FOUND) {
      GTEST_SKIP() << "not run: no OpenCL";
    }
    session_ = std::make_unique<oncilla::Session>(std::move(session).value());
    model_ = std::make_unique<oncilla::Model>(session_->Load(kModel).value());
    image_ = std::make_unique<oncilla::Tensor>(
        oncilla::Tensor::Of<uint8_t>({1, 16, 16, 3}, std::vector<uint8_t>(16 * 16 * 3, 77))
            .value());
    options_.outputs = {"logits"};
    const auto result = model_->Run({{"image", *image_}}, options_).value();
    logits_.assign(result[0].data<float>(), result[0].data<float>() + 1000);
  }
  bool far() const { return std::string(GetParam()) == "gpu"; }
  void ExpectLogits(const oncilla::Tensor& t) const {
    const oncilla::Tensor host = t.Read().value();
    ASSERT_EQ(host.size(), 1000u);
    EXPECT_EQ(std::memcmp(host.data<float>(), logits_.data(), 4000), 0);
  }

  std::unique_ptr<oncilla::Session> session_;
  std::unique_ptr<oncilla::Model> model_;
  std::unique_ptr<oncilla::Tensor> image_;
  oncilla::RunOptions options_;
  std::vector<float> logits_;
};

TEST_P(ApiRuns, RunOnThreadsOfTheSession) {
  std::atomic<int> done = 0;
  std::vector<oncilla::AsyncRun> runs;
  for (int i = 0; i < 6; ++i) {
    runs.push_back(model_->RunAsync({{"image", *image_}}, options_, [&] { ++done; }).value());
  }
  for (const oncilla::AsyncRun& run : runs) {
    const auto result = run.Wait().value();
    EXPECT_TRUE(run.Done());
    ExpectLogits(result[0]);
    EXPECT_EQ(run.Wait().status().code(), ONCILLA_FAILED_PRECONDITION) << "given once";
  }
  while (done < 6) std::this_thread::yield();
  EXPECT_EQ(model_->RunAsync({}).value().Wait().status().code(), ONCILLA_INVALID_ARGUMENT);
}

TEST_P(ApiRuns, ResultsGoToMemoryOfTheCaller) {
  // Aligned, where the CPU computes; not aligned, where results are copied.
  alignas(64) float memory[1001];
  for (float* at : {memory, memory + 1}) {
    std::fill(std::begin(memory), std::end(memory), -1.0f);
    options_.into = {{"logits", at, 4000}};
    {
      const auto result = model_->Run({{"image", *image_}}, options_).value();
      EXPECT_EQ(result[0].data<float>(), at);
    }
    EXPECT_EQ(std::memcmp(at, logits_.data(), 4000), 0);
    EXPECT_EQ(at == memory ? memory[1000] : memory[0], -1.0f) << "written outside of the output";
  }
  options_.timeout_ms = 60000;  // a run that may end early
  std::fill(std::begin(memory), std::end(memory), -1.0f);
  options_.into = {{"logits", memory, 4000}};
  const auto run = model_->RunAsync({{"image", *image_}}, options_).value();
  ASSERT_TRUE(run.Wait().ok());
  EXPECT_EQ(std::memcmp(memory, logits_.data(), 4000), 0);
}

TEST_P(ApiRuns, MemoryForResultsThatCannotBeIsRefused) {
  alignas(64) float memory[2000];
  const auto refused = [&](std::vector<oncilla::OutputMemory> into) {
    options_.into = std::move(into);
    const auto run = model_->Run({{"image", *image_}}, options_);
    EXPECT_EQ(run.status().code(), ONCILLA_INVALID_ARGUMENT);
    return run.status().message();
  };
  EXPECT_THAT(refused({{"logits", memory, 3996}}),
              HasSubstr("output 'logits' is f32[1,1000] of 4000 bytes, and the memory given for it "
                        "has 3996"));
  EXPECT_THAT(refused({{"logit", memory, 4000}}), HasSubstr("memory is given for 'logit'"));
  EXPECT_THAT(refused({{"logits", nullptr, 4000}}), HasSubstr("into[0].data"));
  EXPECT_THAT(refused({{"logits", memory, 4000}, {"logits", memory + 1000, 4000}}),
              HasSubstr("memory is given for 'logits' twice"));
  EXPECT_THAT(refused({{"logits", const_cast<uint8_t*>(image_->data<uint8_t>()), 768}}),
              HasSubstr("overlaps with the input 'image'"));
  options_.outputs = {"logits", "label"};
  EXPECT_THAT(refused({{"logits", memory, 4000}, {"label", memory + 999, 8}}),
              HasSubstr("the memory for 'logits' and 'label' overlaps"));
  EXPECT_THAT(refused({{"label", memory, 8}}), HasSubstr("strings are not written to memory"));
  options_.keep_all = true;
  EXPECT_THAT(refused({{"logits", memory, 4000}}), HasSubstr("to be kept on its device"));
}

TEST_P(ApiRuns, AreTraced) {
  auto result = model_->Run({{"image", *image_}}, options_).value();
  EXPECT_EQ(result.Trace().status().code(), ONCILLA_FAILED_PRECONDITION);
  options_.trace_level = ONCILLA_TRACE_FULL;
  result = model_->Run({{"image", *image_}}, options_).value();
  const std::string chrome = result.Trace().value();
  EXPECT_THAT(chrome, HasSubstr("\"traceEvents\""));
  EXPECT_THAT(chrome, HasSubstr("\"peak_by_op\""));
  EXPECT_THAT(chrome, HasSubstr(far() ? "GPU:0 fragmentation" : "CPU:0 fragmentation"));
  EXPECT_THAT(result.Trace(ONCILLA_TRACE_STEP_STATS).value(), HasSubstr("device:"));
  const std::string path = ::testing::TempDir() + "oncilla_api_trace.json";
  ASSERT_TRUE(result.SaveTrace(path).ok());
  std::ifstream file(path);
  std::string saved((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(saved, chrome);
  std::remove(path.c_str());
  EXPECT_EQ(result.SaveTrace("/no/such/folder/trace.json").code(), ONCILLA_NOT_FOUND);
  options_.trace_level = 7;
  EXPECT_EQ(model_->Run({{"image", *image_}}, options_).status().code(), ONCILLA_INVALID_ARGUMENT);
}

TEST_P(ApiRuns, AreCancelled) {
  options_.cancellation = oncilla::Cancellation::Create().value();
  ASSERT_TRUE(model_->Run({{"image", *image_}}, options_).ok());
  options_.cancellation.Cancel();
  EXPECT_EQ(model_->Run({{"image", *image_}}, options_).status().code(), ONCILLA_CANCELLED);
  const auto run = model_->RunAsync({{"image", *image_}}, options_).value();
  EXPECT_EQ(run.Wait(60000).status().code(), ONCILLA_CANCELLED);
  options_.cancellation = {};
  const auto other = model_->RunAsync({{"image", *image_}}, options_).value();
  other.Cancel();
  const oncilla_code code = other.Wait().status().code();
  EXPECT_TRUE(code == ONCILLA_CANCELLED || code == ONCILLA_OK) << code;
  EXPECT_TRUE(session_->CloseWithin(/*cancel=*/true).ok());
  EXPECT_EQ(model_->Run({{"image", *image_}}).status().code(), ONCILLA_FAILED_PRECONDITION);
}

TEST_P(ApiRuns, ValuesStayOnTheDevice) {
  options_.keep_all = true;
  auto result = model_->Run({{"image", *image_}}, options_).value();
  const oncilla::Tensor kept = result[0];
  EXPECT_EQ(kept.dims(), (std::vector<int64_t>{1, 1000}));
  EXPECT_EQ(kept.bytes(), 4000u);
  if (!far()) {
    EXPECT_EQ(kept.device(), "") << "the CPU's memory is the host's";
    const auto copy = session_->Upload(*image_).value();
    EXPECT_NE(copy.raw(), image_->raw()) << "a copy of the caller's memory";
    ExpectLogits(model_->Run({{"image", copy}}, options_).value()[0]);
    return;
  }
  EXPECT_THAT(kept.device(), HasSubstr("device:GPU:0"));
  EXPECT_EQ(kept.raw(), nullptr);
  ExpectLogits(kept);
  const auto image = session_->Upload(*image_).value();
  result = model_->Run({{"image", image}}, options_).value();
  ExpectLogits(result[0]);
  EXPECT_THAT(result.report(), HasSubstr("0 copies"));
  session_->Close().value();
  EXPECT_EQ(kept.Read().status().code(), ONCILLA_FAILED_PRECONDITION);
}

TEST_P(ApiRuns, CallablesTakePositions) {
  oncilla::CallableOptions wanted;
  wanted.inputs = {"image"};
  wanted.outputs = {"label", "logits"};
  const auto classify = model_->MakeCallable(wanted).value();
  for (int i = 0; i < 3; ++i) {
    const auto result = classify({*image_}).value();
    ASSERT_EQ(result.size(), 2u);
    EXPECT_EQ(result.name(1), "logits");
    EXPECT_FALSE(result[0].string(0).empty());
    ExpectLogits(result[1]);
  }
  EXPECT_EQ(classify({}).status().code(), ONCILLA_INVALID_ARGUMENT);
  wanted.outputs = {"nothing"};
  EXPECT_FALSE(model_->MakeCallable(wanted).ok());
}

TEST_P(ApiRuns, AreFedAhead) {
  oncilla::CallableOptions wanted;
  wanted.inputs = {"image"};
  wanted.outputs = {"logits"};
  const auto classify = model_->MakeCallable(wanted).value();
  int made = 0;
  const auto prefetcher =
      oncilla::Prefetcher::Create(classify, [&](std::vector<oncilla::Tensor>& inputs) {
        if (made == 5) return false;
        ++made;
        inputs.push_back(*image_);
        return true;
      }).value();
  for (int i = 0; i < 5; ++i) {
    const auto item = prefetcher.Next().value();
    ASSERT_FALSE(item.empty());
    ExpectLogits(item[0]);
  }
  EXPECT_TRUE(prefetcher.Next().value().empty());
  const auto broken = oncilla::Prefetcher::Create(classify, [](std::vector<oncilla::Tensor>&) {
                        return true;
                      }).value();
  EXPECT_EQ(broken.Next().status().code(), ONCILLA_INVALID_ARGUMENT);
  const auto greedy =
      oncilla::Prefetcher::Create(classify, [&](std::vector<oncilla::Tensor>& inputs) {
        inputs = {*image_, *image_};
        return true;
      }).value();
  EXPECT_THAT(greedy.Next().status().message(), HasSubstr("more than the 1 inputs"));
  EXPECT_FALSE(oncilla::Prefetcher::Create(classify, nullptr, -1).ok());
}

TEST_P(ApiRuns, RulesThatAreNoneAndAnswersThatAreNoDevicesAreRefused) {
  EXPECT_EQ(model_->PlaceBy(nullptr).code(), ONCILLA_INVALID_ARGUMENT);
  ASSERT_TRUE(model_
                  ->PlaceBy([](const std::string&, const std::string& op, const std::string&) {
                    return std::string(op == "Softmax" ? "banana" : "");
                  })
                  .ok());
  const auto refused = model_->Run({{"image", *image_}});
  EXPECT_EQ(refused.status().code(), ONCILLA_INVALID_ARGUMENT);
  EXPECT_THAT(refused.status().message(), HasSubstr("banana"));
  EXPECT_THAT(refused.status().message(), HasSubstr("the answer of a rule for node '"));
  ASSERT_TRUE(model_->ClearPlacement().ok());
  ExpectLogits(model_->Run({{"image", *image_}}, options_).value()[0]);
}

TEST_P(ApiRuns, AnOutputThatIsTakenOutIsTheCallersToChange) {
  oncilla::RunResult result = model_->Run({{"image", *image_}}, options_).value();
  const oncilla::Tensor shared = result[0];
  oncilla::Tensor taken = result.Take(0).value();
  EXPECT_EQ(shared.raw(), nullptr);  // it was of the result
  ASSERT_NE(taken.mutable_raw(), nullptr);
  EXPECT_EQ(taken.mutable_raw(), taken.raw());
  ExpectLogits(taken);
  EXPECT_THAT(result.Take(0).status().message(), HasSubstr("was taken before"));
  EXPECT_EQ(result.Take(7).status().code(), ONCILLA_NOT_FOUND);
  {
    const oncilla::Tensor copy = taken, share = taken.Share().value();
    EXPECT_EQ(taken.mutable_raw(), nullptr);
  }
  EXPECT_NE(taken.mutable_raw(), nullptr);
  // Wrapped memory belongs to the application: the engine must not hand it out.
  const std::vector<float> own = {1, 2};
  oncilla::Tensor wrapped = oncilla::Tensor::Wrap<float>({2}, own.data(), own.size()).value();
  EXPECT_EQ(wrapped.mutable_raw(), nullptr);
  EXPECT_FALSE(result.report().empty());
}

INSTANTIATE_TEST_SUITE_P(On, ApiRuns, ::testing::Values("cpu", "gpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
