// Files of a model that are shortened, overwritten or removed while it is in use.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/base/file.h"
#include "engine/import/graph_builder.h"
#include "engine/session/model.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using testing::TemporaryFolder;

constexpr size_t kLarge = size_t{24} << 20;  // above what is read whole

void WriteBytes(const std::string& path, size_t size, char fill) {
  std::ofstream(path, std::ios::binary) << std::string(size, fill);
}

TEST(ChangedFiles, SmallOnesAreReadWhole) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/small";
  WriteBytes(path, 5000, 'a');
  const auto file = *MappedFile::Open(path);
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(file->text(), std::string(5000, 'a'));
  EXPECT_TRUE(file->CheckUnchanged().ok());
  EXPECT_FALSE(file->mapped());
}

TEST(ChangedFiles, LargeOnesThatAreShortenedReadAsZerosAndAreTold) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/large";
  WriteBytes(path, kLarge, 'a');
  const auto file = *MappedFile::Open(path);
  ASSERT_TRUE(file->mapped());
  EXPECT_TRUE(file->CheckUnchanged().ok());
  std::filesystem::resize_file(path, 100);
  file->DropPages();
  size_t zeros = 0;
  for (size_t i = 0; i < kLarge; i += 4096) zeros += file->text()[i] == 0;
  EXPECT_EQ(zeros, kLarge / 4096 - 1);
  const Status told = file->CheckUnchanged();
  EXPECT_EQ(told.code(), Code::kDataLoss) << told;
  EXPECT_NE(Message(told).find("cut short"), std::string::npos) << told;
}

TEST(ChangedFiles, OverwrittenOnesAreTold) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/large";
  WriteBytes(path, kLarge, 'a');
  const auto file = *MappedFile::Open(path);
  std::ofstream(path, std::ios::binary | std::ios::in | std::ios::out) << "other";
  EXPECT_EQ(file->CheckUnchanged().code(), Code::kDataLoss);
}

TEST(ChangedFiles, OnesThatAreReplacedOrRemovedStayAsTheyWere) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/large";
  WriteBytes(path, kLarge, 'a');
  const auto file = *MappedFile::Open(path);
  std::filesystem::remove(path);
  WriteBytes(path, kLarge, 'b');
  EXPECT_EQ(file->text()[kLarge - 1], 'a');
  EXPECT_TRUE(file->CheckUnchanged().ok());
}

// y = x w with w of 24 MiB, as a frozen graph in a file.
std::string FrozenProduct(const TemporaryFolder& folder) {
  GraphBuilder g;
  const auto x = g.Placeholder(DType::kF32, PartialShape(std::vector<Dim>{Dim(), Dim(6)}), "x");
  Tensor w = *Tensor::Allocate({DType::kF32, Shape{6, int64_t{1} << 20}});
  float* values = w.MutableAs<float>().data();
  for (int64_t i = 0; i < 6 << 20; ++i) values[i] = static_cast<float>(i % 7);
  g.Op("MatMul", {x, g.Constant(w, "w")}, {}, "y");
  const std::string path = folder.path() + "/product.pb";
  EXPECT_TRUE(WriteFile(path, g.GraphDef().value()).ok());
  return path;
}

Result<RunResult> RunRows(Model& model, int64_t rows) {
  RunRequest request;
  Tensor x = *Tensor::Allocate({DType::kF32, Shape{rows, 6}});
  for (float& v : x.MutableAs<float>()) v = 1;
  request.feeds = {{"x:0", x}};
  request.fetches = {"y:0"};
  return model.Run(request);
}

std::shared_ptr<Model> LoadOnCpu(const std::string& path) {
  SessionOptions options;
  options.device = "cpu";
  return Session::Create(Runtime::Create({}), options).value()->Load(path, {}).value();
}

TEST(ChangedFiles, AModelWhoseFileIsCutBeforeItsFirstRunFailsCleanly) {
  TemporaryFolder folder;
  const std::string path = FrozenProduct(folder);
  const auto model = LoadOnCpu(path);
  std::filesystem::resize_file(path, 4096);
  const auto result = RunRows(*model, 1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kDataLoss) << result.status();
}

TEST(ChangedFiles, AModelThatRanGoesOnWithItsWeightsAndRefusesToReadNewOnes) {
  TemporaryFolder folder;
  const std::string path = FrozenProduct(folder);
  const auto model = LoadOnCpu(path);
  const auto before = RunRows(*model, 1);
  ASSERT_TRUE(before.ok()) << before.status();
  std::filesystem::resize_file(path, 4096);
  const auto again = RunRows(*model, 1);
  ASSERT_TRUE(again.ok()) << again.status();
  const auto a = before->outputs[0].second.bytes(), b = again->outputs[0].second.bytes();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  const auto anew = RunRows(*model, 2);  // another plan may read constants
  ASSERT_FALSE(anew.ok());
  EXPECT_EQ(anew.status().code(), Code::kDataLoss) << anew.status();
}

// Another model's variables under the same file names, written between loading and the first run.
TEST(ChangedFiles, ASavedModelKeepsTheVariablesThatItWasLoadedWith) {
  const std::string original = std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/models/mlp";
  TemporaryFolder folder;
  const std::filesystem::path copy = folder.path() + "/model";
  std::filesystem::copy(original, copy, std::filesystem::copy_options::recursive);
  const auto run = [](Model& model) {
    RunRequest request;
    for (const TensorInfo& input : model.source().FindSignature("").value()->inputs) {
      std::vector<Dim> dims(input.shape.dims().begin(), input.shape.dims().end());
      Shape shape;
      for (const Dim& dim : dims) shape.push_back(dim.known() ? dim.size : 2);
      Tensor x = *Tensor::Allocate({input.dtype, shape});
      for (float& v : x.MutableAs<float>()) v = 0.5f;
      request.feeds.emplace_back(input.name, x);
    }
    return model.Run(request);
  };
  const auto untouched = LoadOnCpu(original), model = LoadOnCpu(copy.string());
  std::filesystem::remove_all(copy / "variables");
  std::filesystem::copy(
      std::string(ONCILLA_SOURCE_DIR) + "/testdata/tensorflow/models/convnet/variables",
      copy / "variables", std::filesystem::copy_options::recursive);
  const auto right = run(*untouched), got = run(*model);
  ASSERT_TRUE(right.ok()) << right.status();
  ASSERT_TRUE(got.ok()) << got.status();
  for (size_t i = 0; i < right->outputs.size(); ++i) {
    const auto a = right->outputs[i].second.bytes(), b = got->outputs[i].second.bytes();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
}

}  // namespace
}  // namespace oncilla
