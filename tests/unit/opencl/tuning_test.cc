// Tables of measured choices: untrusted files, which rows a device uses, how an entry affects a
// recipe, and measuring on a device.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "backends/opencl/simulated/device.h"
#include "backends/opencl/tuning/tuner.h"
#include "backends/opencl/tuning/tuning_file.h"
#include "engine/base/file.h"
#include "engine/ops/op_set.h"
#include "tests/unit/support/opencl_device.h"
#include "tests/unit/support/temporary.h"

namespace oncilla::opencl {
namespace {

using oncilla::testing::TemporaryFolder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const DeviceClass kCard = {"NVIDIA CUDA", "NVIDIA H200", "gpu", 132};

TuningFile Sample() {
  TuningFile file;
  file.devices.push_back({kCard, "550.54", {{"product 1x2x3", {"PARTS=1", 12.5, 20}}}});
  file.devices.push_back({{"other \"quoted\"", "chip", "cpu", 2}, "1", {}});
  return file;
}

TEST(TuningFile, PrintsWhatItReads) {
  std::vector<std::string> notes;
  const std::string text = PrintTuning(Sample());
  const auto read = ParseTuning(text, notes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->devices, Sample().devices);
  EXPECT_EQ(PrintTuning(*read), text);
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_EQ(ParseTuning(PrintTuning({}), notes)->devices.size(), 0U);
}

TEST(TuningFile, TheShippedOneIsWhole) {
  std::string text;
  std::vector<std::string> notes;
  const auto read = ParseTuning(
#include "backends/opencl/tuning/shipped.inc"
      , notes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_EQ(ShippedTuning().devices, read->devices);
}

TEST(TuningFile, RefusesOthersFiles) {
  const auto refusal = [](std::string_view text) {
    std::vector<std::string> notes;
    const auto read = ParseTuning(text, notes);
    return read.ok() ? std::string("ok") : std::string(Message(read.status()));
  };
  EXPECT_THAT(refusal(""), Not(HasSubstr("ok")));
  EXPECT_THAT(refusal("[1, 2]"), HasSubstr("line 1"));
  EXPECT_THAT(refusal("{}"), HasSubstr("not a table of tuned choices"));
  EXPECT_THAT(refusal(R"({"oncilla_tuning": 2})"), HasSubstr("version 2"));
  EXPECT_THAT(refusal(R"({"oncilla_tuning": "1"})"), HasSubstr("whole number"));
  EXPECT_THAT(refusal(R"({"oncilla_tuning": {}})"), HasSubstr("whole number"));
  EXPECT_THAT(refusal(R"({"oncilla_tuning": 1, "devices": 5})"), HasSubstr("not an object"));
  EXPECT_THAT(refusal(R"({"oncilla_tuning": 1, "devices": [{"platform": 1}]})"),
              HasSubstr("'platform' must be"));
  EXPECT_THAT(refusal(R"({"oncilla_tuning": 1, "devices": [{"platform": "a\u0007b"}]})"),
              HasSubstr("'platform' must be"));
  const std::string device =
      R"("platform": "p", "device": "d", "shape": "gpu", "driver": "1", "compute_units": )";
  EXPECT_THAT(refusal(StrCat(R"({"oncilla_tuning": 1, "devices": [{)", device, "-1}]}")),
              HasSubstr("whole number"));
  EXPECT_THAT(refusal(StrCat(R"({"oncilla_tuning": 1, "devices": [{)", device,
                             R"(99999999999999999999, "layers": {}}]})")),
              HasSubstr("whole number"));
  EXPECT_THAT(
      refusal(StrCat(R"({"oncilla_tuning": 1, "devices": [{)", device, R"(1, "layers": [1]}]})")),
      HasSubstr("'layers'"));
  std::string deep = R"({"oncilla_tuning": 1, "devices": )";
  for (int i = 0; i < 100'000; ++i) deep += R"({"a":)";
  EXPECT_THAT(refusal(deep), Not(HasSubstr("ok")));
}

// Any part of a file, and a file with any byte changed, is read or refused.
TEST(TuningFile, SurvivesDamage) {
  const std::string text = PrintTuning(Sample());
  std::vector<std::string> notes;
  for (size_t i = 0; i < text.size(); ++i) {
    // A line break may be missing at the end.
    EXPECT_EQ(ParseTuning(text.substr(0, i), notes).ok(), i + 1 == text.size()) << i;
    for (const char c : {'"', '{', ']', '\0', '\xff', '9'}) {
      std::string changed = text;
      changed[i] = c;
      (void)ParseTuning(changed, notes).ok();
    }
  }
}

TEST(TuningFile, LeavesOutWrongEntries) {
  std::vector<std::string> notes;
  const auto read = ParseTuning(
      R"({"oncilla_tuning": 1, "devices": [{"platform": "p", "device": "d", "shape": "gpu",
          "compute_units": 1, "driver": "1", "layers": {
            "good": {"choice": "c", "us": 1}, "number": 5, "list": ["c"],
            "no choice": {"us": 1}, "wrong choice": {"choice": 7}, "time": {"choice": "c", "us": "x"},
            "below": {"choice": "c", "us": -1}, "endless": {"choice": "c", "us": inf}, "": {"choice": "c"}
          }}], "more": {"of": "a later version"}})",
      notes);
  // 'inf' is not valid JSON, so the whole text is refused.
  EXPECT_FALSE(read.ok());
  const auto again = ParseTuning(
      R"({"oncilla_tuning": 1, "devices": [{"platform": "p", "device": "d", "shape": "gpu",
          "compute_units": 1, "driver": "1", "layers": {
            "good": {"choice": "c", "us": 1}, "number": 5,
            "no choice": {"us": 1}, "wrong choice": {"choice": 7}, "time": {"choice": "c", "us": "x"},
            "below": {"choice": "c", "us": -1}, "": {"choice": "c"}
          }}], "more": {"of": "a later version"}})",
      notes);
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_THAT(again->devices, SizeIs(1));
  EXPECT_THAT(again->devices[0].layers, SizeIs(1));
  EXPECT_THAT(notes, Contains(HasSubstr("layer \"number\" is ignored")));
  EXPECT_THAT(notes, Contains(HasSubstr("line 4, column")));
  EXPECT_THAT(notes, SizeIs(6));
}

TEST(TuningFile, MergesByClassDriverAndLayer) {
  TuningFile into = Sample();
  TuningFile from;
  from.devices.push_back(
      {kCard,
       "550.54",
       {{"product 1x2x3", {"PARTS=2", 10, 20}}, {"product 9x9x9", {"PARTS=1", 1, 1}}}});
  from.devices.push_back({kCard, "560.10", {{"product 1x2x3", {"PARTS=4", 9, 20}}}});
  Merge(from, into);
  ASSERT_THAT(into.devices, SizeIs(3));
  EXPECT_EQ(into.devices[0].layers.at("product 1x2x3").choice, "PARTS=2");
  EXPECT_THAT(into.devices[0].layers, SizeIs(2));

  // The device's own driver first; another one's where that has nothing, and marked.
  const auto own = TableFor(into, kCard, "560.10");
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->Find("product 1x2x3")->choice, "PARTS=4");
  EXPECT_EQ(own->Find("product 1x2x3")->driver, "");
  EXPECT_EQ(own->Find("product 9x9x9")->driver, "550.54");
  EXPECT_EQ(TableFor(into, kCard, "1.0")->Find("product 1x2x3")->driver, "560.10");
  DeviceClass other = kCard;
  other.compute_units = 108;
  EXPECT_EQ(TableFor(into, other, "550.54"), nullptr);
  other = kCard;
  other.shape = "cpu";
  EXPECT_EQ(TableFor(into, other, "550.54"), nullptr);
}

TEST(TuningFile, IsFoundBesideThePrograms) {
  const TemporaryFolder folder;
  std::vector<std::string> told;
  const auto warn = [&](const std::string& text) { told.push_back(text); };
  EXPECT_EQ(FindTuning({"", folder.path(), warn})->devices, ShippedTuning().devices);
  const std::string path = folder.path() + "/tuning.json";
  ASSERT_TRUE(WriteTuningFile(path, Sample()).ok());
  EXPECT_THAT(FindTuning({"auto", folder.path(), warn})->devices, Contains(Sample().devices[0]));
  EXPECT_THAT(FindTuning({"off", folder.path(), warn})->devices, IsEmpty());
  EXPECT_THAT(told, IsEmpty());
  // A bad file in the default place is ignored with a warning; one that the option names is
  // refused.
  folder.Write("tuning.json", "{\"oncilla_tuning\": 7}");
  EXPECT_EQ(FindTuning({"", folder.path(), warn})->devices, ShippedTuning().devices);
  EXPECT_THAT(told, ElementsAre(HasSubstr("version 7")));
  EXPECT_THAT(Message(FindTuning({path, "", warn}).status()), HasSubstr("tuning.json"));
  EXPECT_EQ(FindTuning({folder.path() + "/none", "", warn}).status().code(), Code::kNotFound);
  std::filesystem::resize_file(path, uint64_t{17} << 20);
  EXPECT_EQ(FindTuning({path, "", warn}).status().code(), Code::kResourceExhausted);
}

// Nodes of every family that has choices.
std::vector<LayerNode> Nodes(DType dtype = DType::kF32) {
  const auto ops = OpSet::Builtin();
  const auto data = [&](const Shape& shape) { return Fact::Of(TensorDesc{dtype, shape}); };
  const auto weights = [&](const Shape& shape) {
    Fact fact = data(shape);
    fact.constant = true;
    return fact;
  };
  const auto conv = [&](int64_t size, int64_t in, int64_t out, int64_t kernel, int64_t groups) {
    LayerNode node;
    node.op = ops->Find("Conv");
    node.attrs = {{"groups", groups},
                  {"pads", std::vector<int64_t>(4, kernel / 2)},
                  {"activation", std::string("relu")}};
    node.inputs = {data({1, size, size, in}), weights({kernel, kernel, in / groups, out}),
                   weights({out})};
    return node;
  };
  const auto product = [&](int64_t rows, int64_t columns, int64_t depth) {
    LayerNode node;
    node.op = ops->Find("MatMul");
    node.attrs = {{"activation", std::string("none")}};
    node.inputs = {data({rows, depth}), weights({depth, columns})};
    return node;
  };
  std::vector<LayerNode> nodes = {conv(14, 64, 64, 3, 1),  conv(14, 256, 64, 1, 1),
                                  conv(17, 48, 48, 3, 48), product(64, 96, 512),
                                  product(1, 512, 512),    product(2, 512, 512),
                                  product(4, 512, 512),    product(8, 512, 512)};
  for (LayerNode& node : nodes) node.outputs = node.op->infer(node.attrs, node.inputs).value();
  return nodes;
}

Recipe RecipeOf(const LayerNode& node, const Capabilities& caps) {
  return (*FindRunnable(node.view(), caps))->make(node.view(), caps).value();
}
Capabilities Listing(Capabilities caps) {
  auto table = std::make_shared<TunedTable>();
  table->lists = true;
  caps.tuned = table;
  return caps;
}
Capabilities Choosing(Capabilities caps, const std::string& layer, TunedChoice choice) {
  auto table = std::make_shared<TunedTable>();
  table->Set(layer, std::move(choice));
  caps.tuned = table;
  return caps;
}

std::vector<Capabilities> AllKinds() {
  std::vector<Capabilities> all;
  for (const SimulatedRecord& record : SimulatedRecords()) all.push_back(CapabilitiesOf(record));
  for (const int64_t width : {4, 8, 16}) {
    Capabilities cpu;
    cpu.shape = KernelShape::kCpu;
    cpu.vector_width = width;
    cpu.compute_units = 4;
    cpu.max_allocation = int64_t{1} << 30;
    all.push_back(cpu);
  }
  return all;
}

// Whole numbers above one: they determine the amount of code and the number of registers
// (tools/kernels/variants.py).
std::string Sizes(const std::map<std::string, std::string>& defines) {
  static const std::set<std::string> kNone = {"GX", "GY", "GROUP", "AXES", "WIDTH", "STEP"};
  std::string out;
  for (const auto& [name, value] : defines) {
    const bool number = value.find_first_not_of("0123456789") == value.npos;
    if (number && value != "0" && value != "1" && !kNone.contains(name)) {
      out += StrCat(name, "=", value, " ");
    }
  }
  return out;
}
const std::set<std::string>& NamedSizes(std::string_view path) {
  static std::map<std::string, std::set<std::string>, std::less<>> read;
  const auto [at_path, fresh] = read.try_emplace(std::string(path));
  std::set<std::string>& named = at_path->second;
  if (!fresh) return named;
  std::ifstream file(StrCat(ONCILLA_SOURCE_DIR, "/cl_kernels/", path));
  const std::regex define("-D(\\w+)(?:=(\\S+))?");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("// VARIANT:", 0) != 0) continue;
    std::map<std::string, std::string> defines;
    for (std::sregex_iterator at(line.begin(), line.end(), define), end; at != end; ++at) {
      defines[(*at)[1]] = (*at)[2].matched ? (*at)[2].str() : "1";
    }
    named.insert(Sizes(defines));
  }
  return named;
}

TEST(TunedRecipe, ChoicesAreTakenAndNamedByVariants) {
  std::set<std::string> families;
  for (const Capabilities& caps : AllKinds()) {
    for (const LayerNode& node : Nodes()) {
      const Recipe plain = RecipeOf(node, caps), listed = RecipeOf(node, Listing(caps));
      EXPECT_TRUE(plain.decision.layer.empty());
      EXPECT_EQ(ToString(plain), ToString(listed)) << "an empty table must not change a recipe";
      const Decision& decision = listed.decision;
      ASSERT_FALSE(decision.layer.empty()) << ToString(plain);
      families.insert(decision.layer.substr(0, decision.layer.find_first_of("0123456789")));
      EXPECT_THAT(decision.choices, Contains(decision.choice)) << decision.layer;
      EXPECT_EQ(std::set(decision.choices.begin(), decision.choices.end()).size(),
                decision.choices.size())
          << decision.layer;
      for (const std::string& choice : decision.choices) {
        const Recipe tuned = RecipeOf(node, Choosing(caps, decision.layer, {choice}));
        EXPECT_TRUE(tuned.decision.tuned);
        EXPECT_TRUE(CheckRecipe(tuned, caps, static_cast<int>(node.inputs.size()), 1).ok())
            << decision.layer << " " << choice;
        EXPECT_THAT(ToString(tuned), HasSubstr(StrCat("tuned: ", decision.layer, " -> ", choice)));
        for (const Dispatch& d : tuned.dispatches) {
          const std::map<std::string, std::string> defines(d.defines.begin(), d.defines.end());
          EXPECT_THAT(NamedSizes(d.source->path), Contains(Sizes(defines)))
              << d.source->path << ": " << choice;
        }
      }
    }
  }
  EXPECT_THAT(families, SizeIs(7)) << "every family with choices must be measured";
}

TEST(TunedRecipe, WhatIsNoChoiceIsIgnored) {
  const Capabilities caps = CapabilitiesOf(**FindSimulated("h200"));
  const LayerNode node = Nodes()[3];
  const Recipe generic = RecipeOf(node, Listing(caps));
  const std::string& layer = generic.decision.layer;
  for (const char* wrong : {"TM=64 TN=64 WARPS_M=8 WARPS_N=8 LANES_M=8 TILE_K=8 PARTS=1",
                            "PARTS=", "", "LANES=8 SLICES=32 PARTS=1"}) {
    const Recipe recipe = RecipeOf(node, Choosing(caps, layer, {wrong}));
    EXPECT_EQ(ToString(recipe), ToString(generic));
    EXPECT_FALSE(recipe.decision.tuned);
    EXPECT_EQ(recipe.decision.ignored, wrong);
  }
  // A device that takes smaller groups has fewer choices.
  Capabilities small = caps;
  small.max_work_group = 64;
  const std::string large = "TM=8 TN=8 WARPS_M=2 WARPS_N=4 LANES_M=8 TILE_K=8 PARTS=1";
  EXPECT_TRUE(RecipeOf(node, Choosing(caps, layer, {large})).decision.tuned);
  EXPECT_EQ(RecipeOf(node, Choosing(small, layer, {large})).decision.ignored, large);
  // Other layers are left alone, and another driver's choice says so.
  EXPECT_FALSE(RecipeOf(Nodes()[0], Choosing(caps, layer, {large})).decision.tuned);
  EXPECT_THAT(ToString(RecipeOf(node, Choosing(caps, layer, {large, "1.2.3"}))),
              HasSubstr("(measured with another driver, 1.2.3)"));
}

// It ends when all is measured.
const Deadline kMuchTime = std::chrono::steady_clock::now() + std::chrono::minutes(30);

class OpenClTuning : public ::testing::Test {
 protected:
  void SetUp() override { ONCILLA_NEEDS_OPENCL(); }
  std::unique_ptr<ClDevice> Open(KernelShape shape) {
    const FoundDevice& found = *TheTestDevice().found;
    DeviceInfo info;
    info.name = found.facts.name;
    info.alignment_bytes = std::max<int64_t>(found.facts.base_alignment, 128);
    return ClDevice::Open(found, info, {folder_.path(), shape}).value();
  }
  const TemporaryFolder folder_;
};

TEST_F(OpenClTuning, MeasuresWhatAgrees) {
  for (const KernelShape shape : {KernelShape::kCpu, KernelShape::kGpu}) {
    const auto device = Open(shape);
    Tuner tuner(*device);
    // A product, whose choices are programs of their own, only where there are few of these.
    const bool cpu = shape == KernelShape::kCpu;
    for (const size_t i : {cpu ? 3 : 2, 1, cpu ? 3 : 2}) {
      ASSERT_TRUE(tuner.Add(Nodes()[i]).value().has_value());
    }
    LayerNode relu;
    relu.op = OpSet::Builtin()->Find("Relu");
    relu.inputs = relu.outputs = {Fact::Of(TensorDesc{DType::kF32, {4}})};
    EXPECT_FALSE(tuner.Add(relu).value().has_value());
    ASSERT_THAT(tuner.layers(), SizeIs(2));
    EXPECT_EQ(tuner.layers()[0].nodes, 2);
    const auto measured = tuner.Measure(0, kMuchTime);
    ASSERT_TRUE(measured.ok()) << measured.status();
    EXPECT_THAT(measured->faults, IsEmpty());
    EXPECT_EQ(measured->tried, measured->choices);
    EXPECT_EQ(measured->choices, tuner.layers()[0].choices);
    EXPECT_GT(measured->best_us, 0);
    EXPECT_LE(measured->best_us, measured->generic_us);
    // If nothing completes in time, the failure must say so.
    EXPECT_EQ(tuner.Measure(1, std::chrono::steady_clock::now()).status().code(),
              Code::kDeadlineExceeded);
  }
}

TEST_F(OpenClTuning, RefusesWhatComputesSomethingElse) {
  const auto device = Open(KernelShape::kCpu);
  Tuner tuner(*device, {.most_error_scale = -1});  // no result is near enough
  ASSERT_TRUE(tuner.Add(Nodes()[2]).ok());
  const auto measured = tuner.Measure(0, kMuchTime);
  ASSERT_TRUE(measured.ok()) << measured.status();
  ASSERT_THAT(measured->faults, Not(IsEmpty()));
  EXPECT_THAT(measured->faults[0].what, HasSubstr("of the largest value"));
  EXPECT_EQ(measured->best, measured->generic);
}

TEST_F(OpenClTuning, ADeviceTakesItsTable) {
  auto device = Open(KernelShape::kCpu);
  const LayerNode node = Nodes()[3];
  const Decision decision = RecipeOf(node, Listing(device->capabilities())).decision;
  ASSERT_GE(decision.choices.size(), 2U);
  const std::string other = decision.choices[decision.choices[0] == decision.choice ? 1 : 0];
  TunedDevice row = Tuner(*device).Row();
  row.layers[decision.layer] = {other, 1, 2};
  const std::string path = folder_.path() + "/tuning.json";
  std::vector<std::string> told;
  const auto warn = [&](const std::string& text) { told.push_back(text); };
  const auto text = [&](const std::string& option) {
    EXPECT_TRUE(device->UseTuning(option, warn).ok());
    return (*device->Prepare(node.view()))->description();
  };
  const std::string generic = text("");
  EXPECT_THAT(generic, Not(HasSubstr("tuned")));
  ASSERT_TRUE(WriteTuningFile(path, {{row}}).ok());
  EXPECT_THAT(text("auto"), HasSubstr(StrCat("tuned: ", decision.layer, " -> ", other)));
  EXPECT_THAT(text("auto"), Not(HasSubstr("another driver")));
  EXPECT_EQ(text("off"), generic);
  row.driver = "0.1";
  ASSERT_TRUE(WriteTuningFile(path, {{row}}).ok());
  EXPECT_THAT(text(path), HasSubstr("(measured with another driver, 0.1)"));
  EXPECT_THAT(told, IsEmpty());
  row.layers[decision.layer].choice = "ROWS=1000 TILES=0";
  ASSERT_TRUE(WriteTuningFile(path, {{row}}).ok());
  EXPECT_EQ(text("auto"), generic);
  EXPECT_EQ((*device->Prepare(node.view()))->description(), generic);
  EXPECT_THAT(told, ElementsAre(HasSubstr("'ROWS=1000 TILES=0' is not a choice for")));
  EXPECT_FALSE(device->UseTuning(path + "x", warn).ok());
}

}  // namespace
}  // namespace oncilla::opencl
