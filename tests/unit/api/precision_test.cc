// The error of 16-bit storage, through the public interface, in C++ and in C. Includes nothing of
// the engine.
#include <gmock/gmock.h>

#include <cstring>
#include <oncilla/oncilla_precision.hpp>
#include <string>

namespace {

using ::testing::HasSubstr;

const std::string kModel =
    std::string(ONCILLA_SOURCE_DIR) + "/testdata/quickstart/efficientnet_lite0";

// Stripes and gradients: an image of one colour would show almost only errors.
oncilla::Tensor Picture() {
  constexpr int kSide = 64;
  std::vector<uint8_t> pixels;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      for (int c = 0; c < 3; ++c) {
        pixels.push_back(static_cast<uint8_t>((x / 8 + y / 16) % 2 * 100 + x + y + 9 * c));
      }
    }
  }
  return oncilla::Tensor::Of<uint8_t>({1, kSide, kSide, 3}, pixels).value();
}

class ApiPrecision : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.session.device = "cpu";
    options_.run.outputs = {"logits", "label"};
  }
  oncilla::Result<oncilla::PrecisionCheck> Run() {
    return oncilla::PrecisionCheck::Run(runtime_, kModel, {{"image", image_}}, options_);
  }

  oncilla::Runtime runtime_ = oncilla::Runtime::Create().value();
  oncilla::Tensor image_ = Picture();
  oncilla::PrecisionOptions options_;
};

TEST_F(ApiPrecision, TellsHowFarOutputsAreFromFp32) {
  double fp16 = 0;
  for (const char* storage : {"fp16", "bf16"}) {
    options_.storage = storage;
    auto check = Run();
    ASSERT_TRUE(check.ok()) << check.status().message();
    ASSERT_EQ(check->outputs.size(), 2u);
    EXPECT_TRUE(check->inner.empty());
    const oncilla::NumberErrors& logits = check->outputs[0];
    EXPECT_EQ(logits.name, "logits");
    EXPECT_GT(logits.max_error, 0);
    EXPECT_GE(logits.max_error, logits.rms_error);
    EXPECT_DOUBLE_EQ(logits.relative_error, logits.max_error / logits.largest);
    EXPECT_EQ(logits.overflowed, 0);
    EXPECT_EQ(check->outputs[1].name, "label");
    EXPECT_LT(check->outputs[1].top1_agreement, 0);
    EXPECT_THAT(check->text, HasSubstr("logits"));
    if (std::string(storage) == "fp16") {
      EXPECT_LT(logits.relative_error, 0.01);
      EXPECT_EQ(logits.top1_agreement, 1);
      fp16 = logits.max_error;
    } else {
      EXPECT_GT(logits.max_error, 2 * fp16);
    }
  }
}

// The check must report the same numbers as two sessions that are run and compared by the caller.
TEST_F(ApiPrecision, AgreesWithRunsOfTheTwoSessions) {
  options_.session.config = "precision { storage: 'fp16' deny: 'op:Conv2D' }";
  options_.inner_values = 3;
  auto check = Run();
  ASSERT_TRUE(check.ok()) << check.status().message();
  EXPECT_EQ(check->inner.size(), 3u);
  std::vector<float> numbers[2];
  for (int i = 0; i < 2; ++i) {
    oncilla::SessionOptions session = options_.session;
    if (i == 1) session.config.clear();
    auto made = oncilla::Session::Create(runtime_, session).value();
    const auto model = made.Load(kModel).value();
    const auto result = model.Run({{"image", image_}}, options_.run).value();
    numbers[i].assign(result[0].data<float>(), result[0].data<float>() + result[0].size());
  }
  double largest = 0, error = 0;
  for (size_t i = 0; i < numbers[0].size(); ++i) {
    largest = std::max(largest, std::abs(double{numbers[1][i]}));
    error = std::max(error, std::abs(double{numbers[0][i]} - double{numbers[1][i]}));
  }
  EXPECT_EQ(check->outputs[0].largest, largest);
  EXPECT_EQ(check->outputs[0].max_error, error);
}

TEST_F(ApiPrecision, RefusesWhatCannotBeCompared) {
  const auto refusal = [&] {
    auto check = Run();
    EXPECT_FALSE(check.ok());
    EXPECT_EQ(check.status().code(), ONCILLA_INVALID_ARGUMENT);
    return check.status().message();
  };
  EXPECT_THAT(refusal(), HasSubstr("stores fp32"));
  options_.storage = "fp8";
  EXPECT_THAT(refusal(), HasSubstr("'fp8'"));
  options_.storage = "fp16";
  options_.inner_values = -1;
  EXPECT_THAT(refusal(), HasSubstr("inner_values"));
}

TEST_F(ApiPrecision, StructsOfCAreReadAndFilledByTheirSize) {
  const char* names[] = {"image"};
  const oncilla_tensor* inputs[] = {image_.get()};
  oncilla_session_options session{};
  session.size = sizeof(session);
  session.device = "cpu";
  oncilla_precision_options options{};
  options.size = sizeof(options);
  options.storage = "fp16";
  options.session = &session;
  oncilla_precision_check* check = nullptr;
  options.inner_values = -5;  // beyond the size: not read
  options.size = offsetof(oncilla_precision_options, inner_values);
  oncilla::Status status(oncilla_precision_check_run(runtime_.get(), kModel.c_str(), names, inputs,
                                                     1, &options, &check));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(oncilla_precision_check_output_count(check), 3u);
  EXPECT_EQ(oncilla_precision_check_inner_count(check), 0u);
  oncilla_number_errors errors{};
  errors.size = sizeof(errors);
  errors.size = offsetof(oncilla_number_errors, max_error);
  errors.max_error = -7;
  EXPECT_TRUE(oncilla::Status(oncilla_precision_check_output(check, 0, &errors)).ok());
  EXPECT_STRNE(errors.name, "");
  EXPECT_EQ(errors.max_error, -7);
  EXPECT_EQ(oncilla::Status(oncilla_precision_check_output(check, 3, &errors)).code(),
            ONCILLA_INVALID_ARGUMENT);
  EXPECT_EQ(oncilla::Status(oncilla_precision_check_inner(check, 0, &errors)).code(),
            ONCILLA_INVALID_ARGUMENT);
  oncilla_precision_check_free(check);
  oncilla_precision_check_free(nullptr);
}

}  // namespace
