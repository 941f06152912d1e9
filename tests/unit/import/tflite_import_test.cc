// TFLite files: what is read, what is refused with which message, and damage: a file that is
// truncated anywhere, or has wrong bytes, gives a clear error or a valid graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/file.h"
#include "engine/graph/verify.h"
#include "engine/import/model_source.h"
#include "engine/import/tflite/sparse.h"
#include "engine/import/tflite/tensor.h"
#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/unit/support/sanitized.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;

const std::string kFolder = std::string(ONCILLA_SOURCE_DIR) + "/testdata/tflite/";

std::string Contents(const std::string& name) { return *ReadFile(kFolder + name, 1u << 30); }

Result<std::unique_ptr<ModelSource>> OpenText(const std::string& bytes) {
  auto owner = std::make_shared<const std::string>(bytes);
  return OpenModelBytes(
      MappedFile::OfBytes(std::as_bytes(std::span(*owner)), owner, "model.tflite"), {});
}

// Imports all signatures: "" or what is wrong with the result.
std::string Problem(const std::string& bytes, int* graphs, int* errors) {
  static const auto ops = OpSet::Builtin();
  auto model = OpenText(bytes);
  if (!model.ok()) {
    ++*errors;
    return "";
  }
  for (const Signature& signature : (*model)->signatures()) {
    const auto module = (*model)->Import({signature.key, {}, {}}, ops);
    ++*(module.ok() ? graphs : errors);
    if (!module.ok()) continue;
    if (const Status status = Verify(module->main); !status.ok()) return StrCat(status);
  }
  return "";
}

TEST(TfliteImport, IsFoundByItsContent) {
  auto model = OpenModel(kFolder + "conv.tflite", {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->format(), "TFLite");
  auto signature = (*model)->FindSignature("conv_same");
  ASSERT_TRUE(signature.ok()) << signature.status();
  ASSERT_EQ((*signature)->inputs.size(), 1u);
  EXPECT_EQ((*signature)->inputs[0].name, "in0");
  EXPECT_EQ(StrCat((*signature)->inputs[0].shape), "[2,7,9,4]");
  // Sizes that the file leaves open have names.
  signature = (*model)->FindSignature("conv_1x1_open");
  ASSERT_TRUE(signature.ok()) << signature.status();
  EXPECT_EQ(StrCat((*signature)->inputs[0].shape), "[in0.0,in0.1,in0.2,4]");
}

TEST(TfliteImport, NamesThatAreNotThere) {
  auto model = OpenModel(kFolder + "conv.tflite", {});
  ASSERT_TRUE(model.ok()) << model.status();
  auto module = (*model)->Import({"conv_same", {}, {"out1"}}, OpSet::Builtin());
  EXPECT_EQ(module.status().code(), Code::kNotFound);
  EXPECT_THAT(Message(module.status()), HasSubstr("there is no output 'out1'"));
  module = (*model)->Import({"conv_sam", {}, {}}, OpSet::Builtin());
  EXPECT_THAT(Message(module.status()), HasSubstr("conv_same"));
}

// Each by itself, with the op, the node and the reason.
TEST(TfliteImport, WhatIsNotComputedIsRefusedByName) {
  auto model = OpenModel(kFolder + "refused.tflite", {});
  ASSERT_TRUE(model.ok()) << model.status();
  const struct {
    const char *signature, *op, *reason;
    Code code;
  } kRefused[] = {
      {"quantised", "POW", "arithmetic on quantised tensors (INT8)", Code::kUnimplemented},
      {"weights_alone", "FULLY_CONNECTED", "weights with the zero point 5", Code::kUnimplemented},
      {"rescaled", "RESHAPE", "quantised tensors whose scales differ", Code::kUnimplemented},
      {"custom", "custom op Unheard", "not supported", Code::kUnimplemented},
      {"flex", "custom op FlexUnheard", "not supported", Code::kUnimplemented},
      {"flex_damaged", "custom op FlexErf", "its options are damaged", Code::kDataLoss},
      {"wrong_options", "SOFTMAX", "options of kind 10", Code::kDataLoss},
      {"wrong_type", "EXP", "gives f32, and the file says INT32", Code::kDataLoss},
  };
  for (const auto& refused : kRefused) {
    const auto module = (*model)->Import({refused.signature, {}, {}}, OpSet::Builtin());
    EXPECT_EQ(module.status().code(), refused.code) << refused.signature;
    EXPECT_THAT(Message(module.status()), HasSubstr(refused.op));
    EXPECT_THAT(Message(module.status()), HasSubstr(refused.reason));
    EXPECT_THAT(Message(module.status()), HasSubstr(StrCat(refused.signature, "/out0")));
  }
}

// Tensors of a file may share a name; the values of a graph must not.
TEST(TfliteImport, TensorsOfOneName) {
  std::string bytes = Contents("recurrent.tflite");
  const size_t at = bytes.find("rnn_tanh/constant2");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 18, "rnn_tanh/constant1");
  int graphs = 0, errors = 0;
  EXPECT_EQ(Problem(bytes, &graphs, &errors), "");
  EXPECT_GT(graphs, 5);
  EXPECT_EQ(errors, 0);
}

TEST(TfliteImport, CutAnywhere) {
  const std::string whole = Contents("conv.tflite");
  int graphs = 0, errors = 0;
  for (size_t size = 0; size < whole.size(); size += 1024) {
    EXPECT_EQ(Problem(whole.substr(0, size), &graphs, &errors), "") << size;
  }
  EXPECT_GT(errors, 10);
}

TEST(TfliteImport, WrongBytes) {
  constexpr int kFlips = kSanitized ? 200 : 2000;
  uint32_t random = 20260704;
  const auto next = [&] { return random = random * 1664525u + 1013904223u, random >> 8; };
  int graphs = 0, errors = 0;
  for (const char* name :
       {"model_convnet.tflite", "model_loop.tflite", "model_lstm.tflite", "recurrent.tflite",
        "quantize.tflite", "custom.tflite", "model_select.tflite", "model_int8.tflite"}) {
    const std::string whole = Contents(name);
    for (int i = 0; i < kFlips; ++i) {
      std::string bytes = whole;
      const size_t at = next() % bytes.size();
      bytes[at] = static_cast<char>(bytes[at] ^ (1 + next() % 255));
      EXPECT_EQ(Problem(bytes, &graphs, &errors), "") << name << " at " << at;
    }
  }
  EXPECT_GT(graphs, kFlips / 2);
  EXPECT_GT(errors, kFlips / 2);
}

// Damaged files that still give a graph run, or fail with a status.
TEST(TfliteImport, WrongBytesInRuns) {
  auto session = Session::Create(Runtime::Create({}), {.device = "cpu", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.status();
  const std::string whole = Contents("model_convnet.tflite");
  const testing::TemporaryFolder folder;
  uint32_t random = 7;
  const auto next = [&] { return random = random * 1664525u + 1013904223u, random >> 8; };
  int runs = 0;
  for (int i = 0; i < (kSanitized ? 20 : 200); ++i) {
    std::string bytes = whole;
    const size_t at = next() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 + next() % 255));
    const auto model = (*session)->Load(folder.Write("model.tflite", bytes), {});
    if (!model.ok()) continue;
    const auto signature = (*model)->source().FindSignature("");
    if (!signature.ok()) continue;
    RunRequest request;
    request.timeout = std::chrono::seconds(2);
    bool usable = true;
    for (const TensorInfo& input : (*signature)->inputs) {
      Shape shape;
      for (const Dim& dim : input.shape.dims()) shape.push_back(dim.known() ? dim.size : 2);
      usable &= input.dtype == DType::kF32 && shape.elements() < 1 << 20;
      if (!usable) break;
      auto zeros = Tensor::Allocate({input.dtype, shape});
      ASSERT_TRUE(zeros.ok()) << zeros.status();
      request.feeds.emplace_back(input.name, *std::move(zeros));
    }
    if (usable) runs += (*model)->Run(request).ok() ? 1 : 0;
    (*model)->Unload();
  }
  EXPECT_GT(runs, kSanitized ? 2 : 20);
}

TEST(TfliteImport, PackedIntegers) {
  TfliteTensor tensor;
  tensor.type = 17;  // INT4
  tensor.shape = {5};
  tensor.data = std::string_view("\x21\xf8\x07", 3);
  auto value = TensorFromTflite(tensor, nullptr);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*ToInt64s(*value), (std::vector<int64_t>{1, 2, -8, -1, 7}));
  tensor.data = std::string_view("\x21\xf8", 2);
  EXPECT_EQ(TensorFromTflite(tensor, nullptr).status().code(), Code::kDataLoss);
}

TEST(TfliteImport, StringsOutsideOfTheirTensor) {
  TfliteTensor tensor;
  tensor.type = 5;  // STRING
  tensor.shape = {1};
  const int32_t good[] = {1, 12, 14, 0x6161};
  tensor.data = {reinterpret_cast<const char*>(good), 14};
  auto value = TensorFromTflite(tensor, nullptr);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->strings()[0], "aa");
  const int32_t bad[] = {1, 12, 99, 0x6161};
  tensor.data = {reinterpret_cast<const char*>(bad), 14};
  EXPECT_EQ(TensorFromTflite(tensor, nullptr).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace oncilla
