// Functions of a SavedModel that have no signature; their results are compared by the runs of
// testdata/tensorflow/runs/functions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/format.h"
#include "engine/import/model_source.h"

namespace oncilla {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class SavedFunctions : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = OpenModel(ONCILLA_SOURCE_DIR "/testdata/tensorflow/runs/functions/model", {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    source_ = *std::move(opened);
  }
  // "NAME TYPE, .. -> NAME TYPE, ..", or the failure.
  std::string Signature(const std::string& key) {
    const auto found = source_->FindSignature(key);
    if (!found.ok()) return StrCat(found.status());
    std::string text;
    for (const TensorInfo& info : (*found)->inputs) {
      text += StrCat(info.name, " ", Fact::Of(info.dtype, info.shape), ", ");
    }
    text += "->";
    for (const TensorInfo& info : (*found)->outputs) {
      text += StrCat(" ", info.name, " ", Fact::Of(info.dtype, info.shape));
    }
    return text;
  }
  std::unique_ptr<ModelSource> source_;
};

TEST_F(SavedFunctions, AreFoundAsPythonSpellsThem) {
  EXPECT_EQ(Signature("encode"), "x f32[?,3], by f32[], -> output_0 f32[?,4]");
  EXPECT_EQ(Signature("head.logits"), "h f32[?,4], -> max f32[?] sum f32[?]");
  EXPECT_EQ(Signature("calls"), "-> output_0 i64[]");
  EXPECT_EQ(Signature("__call__"), "x f32[?,3], -> max f32[?] sum f32[?]");
  // Again, and the same.
  EXPECT_EQ(source_->FindSignature("encode").value(), source_->FindSignature("encode").value());
}

TEST_F(SavedFunctions, WhatIsMissingOrAmbiguousIsTold) {
  EXPECT_THAT(Signature("encod"), AllOf(HasSubstr("'encod'"), HasSubstr("; functions: "),
                                        HasSubstr("did you mean 'encode'?"), HasSubstr("'encode'"),
                                        HasSubstr("'head.logits'")));
}

TEST_F(SavedFunctions, AreChosenByWhatIsFed) {
  const auto import = [&](std::vector<std::string> feeds, Facts fed) {
    ImportRequest asked;
    asked.signature = "twice";
    asked.feeds = std::move(feeds);
    asked.fed = std::move(fed);
    return source_->Import(asked, OpSet::Builtin());
  };
  const auto fact = [](DType dtype, std::vector<Dim> dims) {
    return Fact::Of(dtype, PartialShape(std::move(dims)));
  };
  // What all kinds have in common.
  EXPECT_THAT(Signature("twice"), AllOf(HasSubstr("x "), HasSubstr("[?]"), HasSubstr("output_1")));
  for (const DType dtype : {DType::kF32, DType::kI32}) {
    const auto module = import({"x"}, {fact(dtype, {Dim(2)})});
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_EQ(module->main.fact(module->main.outputs()[0].value).dtype, dtype);
  }
  // While more may become known, the failure is Unimplemented.
  const Status names = import({"x"}, {}).status();
  EXPECT_EQ(names.code(), Code::kUnimplemented);
  const std::string twice = StrCat(names);
  EXPECT_THAT(twice, AllOf(HasSubstr("2 kinds of arguments; name one of them: "),
                           HasSubstr("'__inference_twice_"), HasSubstr("(x f32[2])"),
                           HasSubstr("(x i32[?])")));
  for (const auto& [feed, fed] :
       std::vector<std::pair<std::string, Fact>>{{"x", fact(DType::kF32, {Dim(3)})},
                                                 {"x", fact(DType::kI64, {Dim(2)})},
                                                 {"x", fact(DType::kI32, {Dim(2), Dim(2)})},
                                                 {"y", fact(DType::kF32, {Dim(2)})}}) {
    const Status status = import({feed}, {fed}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << feed << fed << status;
    EXPECT_THAT(StrCat(status), HasSubstr("none of them accepts the feeds: '__inference_twice_"));
  }
  const size_t begin = twice.find("'__inference_twice_") + 1;
  const std::string first = twice.substr(begin, twice.find('\'', begin) - begin);
  EXPECT_THAT(Signature(first), HasSubstr("-> output_0 "));
}

}  // namespace
}  // namespace oncilla
