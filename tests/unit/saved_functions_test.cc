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
  const std::string twice = Signature("twice");
  EXPECT_THAT(twice, AllOf(HasSubstr("2 kinds of arguments"), HasSubstr("'__inference_twice_")));
  const size_t begin = twice.find("'__inference_twice_") + 1;
  const std::string first = twice.substr(begin, twice.find('\'', begin) - begin);
  EXPECT_THAT(Signature(first), HasSubstr("-> output_0 "));
}

}  // namespace
}  // namespace oncilla
