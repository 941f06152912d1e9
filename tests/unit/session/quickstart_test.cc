// The quickstart model on a photograph, computed by the CPU's plain code, against TensorFlow's
// recorded logits, probabilities, labels, and intermediate tensors by name.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "engine/base/file.h"
#include "engine/graph/verify.h"
#include "engine/import/model_source.h"
#include "tests/case_runner/case_file.h"
#include "tests/unit/support/run_graph.h"
#include "tools/oncilla/files/image.h"
#include "tools/oncilla/files/npy.h"

namespace oncilla {
namespace {

const std::string kFolder = std::string(ONCILLA_SOURCE_DIR) + "/testdata/quickstart/";

Tensor Recorded(const std::string& name) {
  auto file = MappedFile::Open(kFolder + "recorded/" + name + ".npy");
  EXPECT_TRUE(file.ok()) << file.status();
  auto tensor = tool::ReadNpy((*file)->bytes(), *file);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return *tensor;
}

TEST(Quickstart, CoffeeIsEspressoAsInTensorFlow) {
  auto model = OpenModel(kFolder + "efficientnet_lite0", {});
  ASSERT_TRUE(model.ok()) << model.status();
  ImportRequest request;
  request.fetches = {"logits",
                     "probability",
                     "label",
                     "StatefulPartitionedCall/add_5:0",
                     "StatefulPartitionedCall/Mean:0",
                     "StatefulPartitionedCall/resize/ResizeBilinear:0"};
  auto module = (*model)->Import(request, OpSet::Builtin());
  ASSERT_TRUE(module.ok()) << module.status();
  ASSERT_TRUE(Verify(module->main).ok());
  ASSERT_EQ(module->main.inputs().size(), 1u);

  auto file = MappedFile::Open(kFolder + "coffee.png");
  ASSERT_TRUE(file.ok()) << file.status();
  const Fact& input = module->main.fact(module->main.inputs()[0].value);
  auto image = tool::ImageTensor((*file)->bytes(), input.dtype, input.shape, {});
  ASSERT_TRUE(image.ok()) << image.status();
  ASSERT_EQ(image->shape(), Shape({1, 400, 600, 3}));
  auto results = testing::RunGraph(module->main, {{"image", *image}});
  ASSERT_TRUE(results.ok()) << results.status();

  EXPECT_TRUE(testing::Agree((*results)[0], Recorded("coffee.logits"), 1e-4).ok())
      << testing::Agree((*results)[0], Recorded("coffee.logits"), 1e-4);
  const Status probability = testing::Agree((*results)[1], Recorded("coffee.probability"), 1e-4);
  EXPECT_TRUE(probability.ok()) << probability;
  ASSERT_EQ((*results)[2].dtype(), DType::kString);
  const std::vector<std::string>& labels = (*results)[2].strings();
  ASSERT_EQ(labels.size(), 5u);
  EXPECT_EQ(labels[0], "espresso");
  EXPECT_EQ(labels[1], "cup");
  const Status middle = testing::Agree((*results)[3], Recorded("coffee.residual_add"), 1e-4);
  EXPECT_TRUE(middle.ok()) << middle;
  const Status pooled = testing::Agree((*results)[4], Recorded("coffee.pooled"), 1e-4);
  EXPECT_TRUE(pooled.ok()) << pooled;
  // recorded.json: the mean of the resized picture, and its first and last value.
  const std::span<const float> resized = (*results)[5].As<float>();
  ASSERT_EQ(resized.size(), 224u * 224 * 3);
  double sum = 0;
  for (float v : resized) sum += v;
  EXPECT_NEAR(sum / static_cast<double>(resized.size()), 94.58261822681038, 1e-4);
  EXPECT_NEAR(resized.front(), 158.4150390625, 1e-3);
  EXPECT_NEAR(resized.back(), 42.4580078125, 1e-3);
}

}  // namespace
}  // namespace oncilla
