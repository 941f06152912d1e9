// The tool's tensor files: read what NumPy, ml_dtypes and onnx wrote (testdata/files), write what
// they read, refuse damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/base/file.h"
#include "engine/base/half.h"
#include "engine/tensor/tensor_list.h"
#include "tests/unit/support/temporary.h"
#include "tools/oncilla/files/base64.h"
#include "tools/oncilla/files/json_tensor.h"
#include "tools/oncilla/files/npy.h"
#include "tools/oncilla/files/npz.h"
#include "tools/oncilla/files/tensor_file.h"

namespace oncilla::tool {
namespace {

using ::oncilla::testing::WriteQuickly;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Sample(const std::string& name) {
  return std::string(ONCILLA_SOURCE_DIR "/testdata/files/") + name;
}

Result<Tensor> Load(const std::string& file, InputWish wish = {"x", {}, {}}) {
  return ReadTensorFile(file, wish, {});
}

// Data that is read in place is at its position in the file, at any address.
Tensor Aligned(const Tensor& tensor) { return Tensor::Copy(tensor.desc(), tensor.bytes()); }

class Folder : public ::testing::Test {
 protected:
  Folder()
      : path_(::testing::TempDir() + "oncilla_files_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() override { std::filesystem::remove_all(path_); }
  std::string path_;
};

std::string Bytes(const std::string& path) { return *ReadFile(path, 1 << 24); }

Result<Tensor> Parse(const std::string& bytes) {
  return ReadNpy(std::as_bytes(std::span(bytes)), nullptr);
}

TEST(NpyTest, ReadsBothByteAndElementOrders) {
  const Tensor f32 = *Load(Sample("f32.npy"));
  EXPECT_EQ(f32.desc(), (TensorDesc{DType::kF32, {2, 3}}));
  EXPECT_THAT(f32.As<float>(), ElementsAre(0, 0.5, 1, 1.5, 2, 2.5));
  EXPECT_THAT(Load(Sample("f64_big_endian.npy"))->As<double>(),
              ElementsAre(0, 0.5, 1, 1.5, 2, 2.5));
  EXPECT_THAT(Load(Sample("i16_fortran.npy"))->As<int16_t>(), ElementsAre(0, 1, 2, 3, 4, 5));
  const Tensor scalar = *Load(Sample("scalar.npy"));
  EXPECT_EQ(scalar.shape().rank(), 0);
  EXPECT_THAT(scalar.As<int64_t>(), ElementsAre(-7));
}

TEST(NpyTest, ReadsTextAndBfloat16) {
  EXPECT_THAT(Load(Sample("unicode.npy"))->strings(),
              ElementsAre("caf\xc3\xa9", "", "\xf0\x9f\x90\xbe x"));
  EXPECT_THAT(Load(Sample("bytes.npy"))->strings(), ElementsAre("ab", "c"));
  const Tensor bf16 = *Load(Sample("bf16.npy"));
  ASSERT_EQ(bf16.dtype(), DType::kBF16);
  EXPECT_EQ(static_cast<float>(bf16.As<BFloat16>()[5]), 2.5f);
}

TEST(NpyTest, RefusesObjectsAndDamage) {
  EXPECT_THAT(Message(Load(Sample("objects.npy")).status()), HasSubstr("Python objects"));
  const std::string whole = Bytes(Sample("f32.npy"));
  for (size_t length = 0; length < whole.size(); ++length) {
    const Status status = Parse(whole.substr(0, length)).status();
    EXPECT_EQ(status.code(), Code::kDataLoss) << length;
    EXPECT_EQ(Details(status).stage, Stage::kFile);
  }
  EXPECT_FALSE(Parse(whole + "x").ok());
  std::string huge = whole;
  huge.replace(huge.find("(2, 3)"), 6, "(9999999999999999999, 3)").resize(whole.size());
  EXPECT_EQ(Parse(huge).status().code(), Code::kDataLoss);
  huge = whole;
  const size_t at = huge.find("(2, 3), }");
  huge.replace(at, 33, "(4294967296, 4294967296, 4), }   ");
  EXPECT_THAT(Message(Parse(huge).status()), HasSubstr("needs 9223372036854775807 bytes"));
}

TEST_F(Folder, NpyKeepsEveryTypeAndShape) {
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::kString) continue;
    if (IsPacked(dtype)) {
      EXPECT_EQ(NpyHeader({dtype, {2}}).status().code(), Code::kUnimplemented) << dtype;
      continue;
    }
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{1, 2, 3, 1, 2, 1, 1, 2}}) {
      Tensor tensor = *Tensor::Allocate({dtype, shape});
      uint8_t next = 0;
      for (std::byte& b : tensor.mutable_bytes()) b = std::byte(next++ % 2);
      const std::string path = *WriteTensorFile(path_, "a/b:0", tensor);
      EXPECT_THAT(path, ::testing::EndsWith("/a%2Fb%3A0.npy"));
      const Tensor back = *Load(path, {"x", dtype, {}});
      EXPECT_EQ(back.desc(), tensor.desc());
      EXPECT_TRUE(std::ranges::equal(back.bytes(), tensor.bytes())) << dtype << shape;
      EXPECT_EQ((Bytes(path).size() - tensor.bytes().size()) % 64, 0u);
    }
  }
}

// The byte order of each part of a complex number is reversed; the parts keep their order.
TEST_F(Folder, NpyReadsComplexNumbersOfTheOtherByteOrder) {
  std::string file = *NpyHeader({DType::kC64, {1}});
  file[file.find("<c8")] = '>';
  const unsigned char bytes[] = {0x3F, 0x80, 0, 0, 0xC0, 0, 0, 0};  // 1 - 2j
  file.append(reinterpret_cast<const char*>(bytes), sizeof(bytes));
  const auto read = ReadNpy(std::as_bytes(std::span(file)), nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->dtype(), DType::kC64);
  EXPECT_THAT(read->As<float>(), ElementsAre(1, -2));
}

TEST_F(Folder, PackedNumbersAreWrittenAsBytes) {
  const std::byte bytes[] = {std::byte{0xF1}, std::byte{0x07}};  // 1, -1, 7
  const Tensor packed = Tensor::Copy({DType::kI4, {3}}, bytes);
  const Tensor back = *Load(*WriteTensorFile(path_, "y", packed), {"y", DType::kI8, {}});
  EXPECT_THAT(Aligned(back).As<int8_t>(), ElementsAre(1, -1, 7));
}

TEST_F(Folder, PackedNumbersAreReadAsTheyAreWritten) {
  const std::byte bytes[] = {std::byte{0xE1}, std::byte{0x07}};  // 1, -2, 7
  const Tensor packed = Tensor::Copy({DType::kI4, {3}}, bytes);
  const std::string file = *WriteTensorFile(path_, "y", packed);
  const auto back = Load(file, {"y", DType::kI4, {}});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->desc(), packed.desc());
  EXPECT_TRUE(std::ranges::equal(back->bytes(), packed.bytes()));
  const auto narrow = Load(file, {"y", DType::kU2, {}});
  ASSERT_FALSE(narrow.ok());
  EXPECT_NE(Message(narrow.status()).find("-2 is not a number of type u2"), std::string::npos)
      << narrow.status();
}

TEST(NpyTest, WritesTheHeaderThatNumPyWrites) {
  const std::string whole = Bytes(Sample("f32.npy"));
  EXPECT_EQ(*NpyHeader({DType::kF32, {2, 3}}), whole.substr(0, whole.size() - 24));
  EXPECT_EQ(NpyHeader({DType::kString, {2}}).status().code(), Code::kUnimplemented);
}

TEST(NpzTest, ReadsStoredAndDeflatedMembers) {
  EXPECT_THAT(Aligned(*Load(Sample("stored.npz:a"))).As<int64_t>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(Load(Sample("stored.npz:b"))->dtype(), DType::kBool);
  const Tensor image = *Load(Sample("deflated.npz"));
  EXPECT_EQ(image.desc(), (TensorDesc{DType::kU8, {80, 150}}));
  EXPECT_EQ(image.As<uint8_t>()[151], 4);
}

TEST(NpzTest, ListsKeysWhenOneIsMissing) {
  EXPECT_THAT(Message(Load(Sample("stored.npz:c")).status()),
              AllOf(HasSubstr("no array 'c'"), HasSubstr("a, b")));
  EXPECT_THAT(Message(Load(Sample("stored.npz")).status()), HasSubstr("FILE.npz:KEY"));
}

TEST_F(Folder, NpzRefusesEveryTruncationAndEveryFlippedByteOrReadsTheSame) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string whole = Bytes(Sample(name));
    const std::string key = name[0] == 's' ? ":a" : ":image";
    const Tensor truth = *Load(Sample(name) + key);
    const std::string path = path_ + "/x.npz";
    const auto try_bytes = [&](const std::string& bytes) {
      ASSERT_TRUE(WriteQuickly(path, bytes));
      const Result<Tensor> tensor = Load(path + key);
      if (!tensor.ok()) {
        EXPECT_EQ(Details(tensor.status()).stage, Stage::kFile);
      } else {  // the flip hit a field without meaning here, such as a date
        EXPECT_EQ(tensor->desc(), truth.desc());
        EXPECT_TRUE(std::ranges::equal(tensor->bytes(), truth.bytes()));
      }
    };
    for (size_t i = 0; i < whole.size(); ++i) {
      try_bytes(whole.substr(0, i));
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
      try_bytes(flipped);
    }
  }
}

TEST(PbTest, ReadsRawDataListsAndStrings) {
  EXPECT_THAT(Aligned(*Load(Sample("i64.pb"))).As<int64_t>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Load(Sample("strings.pb"))->strings(), ElementsAre("a", "\xc3\xbc"));
  const Tensor listed = *Load(Sample("f16_list.pb"));
  ASSERT_EQ(listed.desc(), (TensorDesc{DType::kF16, {3}}));
  EXPECT_EQ(static_cast<float>(listed.As<Half>()[2]), 65504.f);
}

TEST_F(Folder, PbRefusesEveryTruncation) {
  for (const char* name : {"i64.pb", "strings.pb", "f16_list.pb"}) {
    const std::string whole = Bytes(Sample(name));
    const std::string path = path_ + "/x.pb";
    for (size_t i = 0; i < whole.size(); ++i) {
      ASSERT_TRUE(WriteQuickly(path, whole.substr(0, i)));
      const Result<Tensor> tensor = Load(path);
      // The name comes last, so that cutting it off may leave a whole tensor.
      if (tensor.ok()) {
        EXPECT_EQ(tensor->desc(), Load(Sample(name))->desc());
      }
    }
  }
}

TEST(JsonTest, KeepsStringsAndTurnsToBase64WhenTheyAreNoText) {
  const Tensor text = Tensor::Strings({2, 1}, {"a \"b\"", "\xc3\xbc"});
  EXPECT_EQ(JsonTensor(text),
            "{\"dtype\":\"string\",\"shape\":[2,1],\"encoding\":\"utf8\","
            "\"data\":[\"a \\\"b\\\"\",\"\xc3\xbc\"]}\n");
  EXPECT_EQ(ReadJsonTensor(JsonTensor(text))->strings(), text.strings());
  const Tensor raw = Tensor::Strings({1}, {std::string("\xff\x00z", 3)});
  EXPECT_THAT(JsonTensor(raw), HasSubstr("\"encoding\":\"base64\",\"data\":[\"/wB6\"]"));
  EXPECT_EQ(ReadJsonTensor(JsonTensor(raw))->strings(), raw.strings());
}

TEST(JsonTest, RefusesWithTheReason) {
  const std::pair<const char*, const char*> kBad[] = {
      {"", "not a JSON object"},
      {"[1]", "not a JSON object"},
      {R"({"dtype":"f32","shape":[0],"data":[]})", ".npy"},
      {R"({"dtype":"string","shape":[2],"data":["a"]})", "needs 2 strings"},
      {R"({"dtype":"string","shape":[-1],"data":["a"]})", "not a size"},
      {R"({"dtype":"string","shape":[1],"data":[1]})", "not a string"},
      {R"({"dtype":"string","data":["a"]})", "shape"},
      {R"({"dtype":"string","shape":[1],"encoding":"base64","data":["a"]})", "not base64"},
      {R"({"dtype":"string","shape":[1],"encoding":"latin1","data":["a"]})", "encoding"},
  };
  for (const auto& [text, reason] : kBad) {
    const Status status = ReadJsonTensor(text).status();
    EXPECT_THAT(Message(status), HasSubstr(reason)) << text;
    EXPECT_EQ(Details(status).stage, Stage::kFile);
  }
}

TEST(Base64Test, KnowsTheVectorsOfRfc4648) {
  const std::pair<const char*, const char*> kVectors[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : kVectors) {
    EXPECT_EQ(EncodeBase64(bytes), text);
    EXPECT_EQ(DecodeBase64(text), bytes);
  }
  for (const char* bad : {"Zg=", "Z===", "Zg==Zg==", "Zh==", "Zm9=", "Z g=", "===="}) {
    EXPECT_EQ(DecodeBase64(bad), std::nullopt) << bad;
  }
}

TEST(Utf8Test, AcceptsTextOnly) {
  for (const char* good : {"", "a", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x90\xbe"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST_F(Folder, RawBytesTakeTheirShapeFromTheModel) {
  const std::string path = path_ + "/x.bin";
  ASSERT_TRUE(WriteFile(path, std::string(24, '\1')).ok());
  const PartialShape open({Dim(), Dim(3)});
  EXPECT_EQ(Load(path, {"x", DType::kF32, open})->desc(), (TensorDesc{DType::kF32, {2, 3}}));
  EXPECT_EQ(Load(path, {"x", DType::kU8, Shape{24}})->desc(), (TensorDesc{DType::kU8, {24}}));
  const std::pair<InputWish, const char*> kBad[] = {
      {{"x", DType::kF64, PartialShape({Dim(), Dim(2)})}, "multiple"},
      {{"x", DType::kF32, PartialShape()}, "--shape"},
      {{"x", DType::kF32, PartialShape::OfRank(2)}, "--shape"},
      {{"x", DType::kF32, Shape{7}}, "needs 28"},
      {{"x", DType::kString, Shape{24}}, ".json"},
  };
  for (const auto& [wish, reason] : kBad) {
    const Status status = Load(path, wish).status();
    EXPECT_THAT(Message(status), AllOf(HasSubstr(reason), HasSubstr("x.bin"))) << reason;
    EXPECT_EQ(Details(status).stage, Stage::kOptions);
  }
}

TEST_F(Folder, InputFilesAreFoundByNameThenByNumber) {
  const InputWish wish{"in=a/b", {}, {}};
  EXPECT_THAT(Message(FindInputFile(path_, wish, 1).status()),
              AllOf(HasSubstr("in%3Da%2Fb.npy"), HasSubstr("input_1.pb")));
  ASSERT_TRUE(WriteFile(path_ + "/input_1.pb", "").ok());
  EXPECT_EQ(*FindInputFile(path_, wish, 1), path_ + "/input_1.pb");
  ASSERT_TRUE(WriteTensorFile(path_, wish.name, Tensor::Strings({}, {"a"})).ok());
  EXPECT_EQ(*FindInputFile(path_, wish, 1), path_ + "/in%3Da%2Fb.json");
  EXPECT_EQ(FindInputFile(path_ + "/none", wish, 0).status().code(), Code::kNotFound);
}

TEST_F(Folder, MissingFilesAreNamedOnce) {
  const Status status = Load(path_ + "/absent.npy").status();
  EXPECT_EQ(Details(status).stage, Stage::kFile);
  EXPECT_THAT(Message(status), HasSubstr("absent.npy"));
  EXPECT_EQ(Message(status).find("absent.npy"), Message(status).rfind("absent.npy"));
}

// Each element of a sequence is a file; a later, shorter sequence must leave no file of an earlier
// one.
TEST_F(Folder, SequencesAreFolders) {
  using Kind = TensorInfo::Kind;
  const auto list = [](int64_t count) {
    TensorList elements(DType::kF32);
    for (int64_t i = 0; i < count; ++i) {
      const std::vector<float> values(static_cast<size_t>(i + 1), static_cast<float>(i));
      elements.Push(Tensor::Of<float>(DType::kF32, {i + 1}, values));
    }
    return elements;
  };
  const auto sizes = [&](Kind kind) {
    const InputWish wish{"s", DType::kF32, PartialShape(std::vector<Dim>{Dim()}), kind};
    std::vector<int64_t> all;
    const auto path = FindInputFile(path_, wish, 0);
    if (!path.ok()) return std::vector<int64_t>{-1};
    const auto value = Load(*path, wish);
    if (!value.ok() || !value->is_list()) return std::vector<int64_t>{-2};
    for (int64_t i = 0; i < value->list().size(); ++i) {
      const Tensor& element = value->list().at(i);
      all.push_back(element.valid() ? element.elements() : 0);
    }
    return all;
  };
  const auto write = [&](const TensorList& value, Kind kind) {
    EXPECT_TRUE(WriteTensorFile(path_, "s", Tensor::OfList(value), kind).ok());
  };
  write(list(3), Kind::kSequence);
  EXPECT_THAT(sizes(Kind::kSequence), ElementsAre(1, 2, 3));
  write(list(2), Kind::kSequence);
  EXPECT_THAT(sizes(Kind::kSequence), ElementsAre(1, 2));
  EXPECT_THAT(sizes(Kind::kOptional), ElementsAre(-2));  // holds two
  EXPECT_THAT(sizes(Kind::kOptionalSequence), ElementsAre(1, 2, 0));
  write(TensorList(DType::kF32), Kind::kSequence);
  EXPECT_THAT(sizes(Kind::kSequence), ElementsAre());
  TensorList marked = list(2);
  marked.Resize(3);
  write(marked, Kind::kOptionalSequence);
  EXPECT_THAT(sizes(Kind::kOptionalSequence), ElementsAre(1, 2, 0));
  write(TensorList(DType::kF32), Kind::kOptionalSequence);  // nothing, not an empty sequence
  EXPECT_THAT(sizes(Kind::kOptionalSequence), ElementsAre());
  write(list(1), Kind::kOptional);
  EXPECT_THAT(sizes(Kind::kOptional), ElementsAre(1));
  write(TensorList(DType::kF32), Kind::kOptional);
  EXPECT_THAT(sizes(Kind::kOptional), ElementsAre());
  const InputWish scalars{"s", DType::kF32, PartialShape::OfRank(0), Kind::kSequence};
  write(list(1), Kind::kSequence);
  EXPECT_FALSE(Load(JoinPath(path_, "s"), scalars).ok());
}

}  // namespace
}  // namespace oncilla::tool
