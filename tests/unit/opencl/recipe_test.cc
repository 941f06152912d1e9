// Recipes without a device: their text, and what is refused before it reaches a driver.
#include "backends/opencl/recipes/recipe.h"

#include <gmock/gmock.h>

#include "engine/ops/op_set.h"

namespace oncilla::opencl {
namespace {

using ::testing::HasSubstr;

constexpr Source kSource{"norm/softmax.cl", ""};

Capabilities SomeDevice() {
  Capabilities caps;
  caps.local_groups = true;
  caps.max_work_group = 256;
  caps.local_memory = 32 << 10;
  caps.max_allocation = 1 << 20;
  return caps;
}

TEST(OpenClRecipe, PrintsInAStableForm) {
  Recipe recipe;
  const Scratch tmp = recipe.AddScratch(100, SomeDevice());
  recipe.dispatches.push_back(
      {.source = &kSource,
       .entry = "softmax_rows",
       .defines = {{"T", "f32"}, {"GROUP", "64"}},
       .args = {In{0}, Offset{false, 0, 4}, Out{0}, tmp, int32_t{-1}, uint32_t{2}, int64_t{3},
                uint64_t{4}, 0.1f, Local{256}, ErrorWord{}},
       .global = {640, 1, 1},
       .local = {64, 1, 1},
       .longest_loop = 16});
  recipe.dispatches.push_back({.source = &kSource,
                               .entry = "second",
                               .global = {4, 1, 2},
                               .generated = "float f(float x) {\n  return x;\n}"});
  EXPECT_EQ(ToString(recipe),
            "norm/softmax.cl:softmax_rows T=f32 GROUP=64 (in0 offset:in0 out0 scratch[0+100] "
            "i32:-1 u32:2 i64:3 u64:4 f32:0.1 local:256 error) global=640 local=64 loop=16\n"
            "norm/softmax.cl:second () global=4,1,2 local=1\n"
            "  | float f(float x) {\n"
            "  |   return x;\n"
            "  | }\n"
            "scratch=128\n");
}

std::string Refusal(Dispatch d, const Capabilities& caps, int64_t scratch = 0) {
  Recipe recipe;
  d.source = &kSource;
  d.entry = "k";
  recipe.dispatches.push_back(std::move(d));
  recipe.scratch_bytes = scratch;
  return Message(CheckRecipe(recipe, caps, 1, 1));
}

TEST(OpenClRecipe, HasAShortName) {
  constexpr Source kPanels{"matmul/panels.cl", ""};
  Recipe recipe;
  EXPECT_EQ(DescriptionOf(recipe), "nothing");
  recipe.dispatches.push_back(
      {.source = &kPanels,
       .entry = "panels",
       .defines = {{"V", "16"}, {"IDX", "int"}, {"BIAS", "1"}, {"AXES", "0"}}});
  EXPECT_EQ(NameOf(recipe), "matmul/panels V=16");
  recipe.dispatches.push_back({.source = &kSource, .entry = "softmax_rows"});
  EXPECT_EQ(NameOf(recipe), "matmul/panels V=16 + norm/softmax:softmax_rows");
  EXPECT_EQ(DescriptionOf(recipe) + "\n", NameOf(recipe) + "\n" + ToString(recipe));
}

TEST(OpenClRecipe, ATensorBeyondOneBufferIsAMatterOfMemory) {
  const auto ops = OpSet::Builtin();
  const auto runnable = [&](int64_t elements) {
    const Facts facts = {Fact::Of(DType::kF32, PartialShape(Shape{elements}))};
    const AttrMap attrs;
    const NodeView node{ops->Find("Softmax"), &attrs, facts, facts, "y"};
    return FindRunnable(node, SomeDevice()).status();
  };
  EXPECT_TRUE(runnable(1 << 18).ok()) << runnable(1 << 18);
  const Status refused = runnable((1 << 18) + 1);
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(Message(refused), HasSubstr("1048580 bytes, and one buffer holds at most 1048576"));
}

TEST(OpenClRecipe, IsCheckedAgainstItselfAndTheDevice) {
  const Capabilities caps = SomeDevice();
  EXPECT_EQ(Refusal({.args = {In{0}, Out{0}}, .global = {0, 1, 1}}, caps), "");
  EXPECT_THAT(Refusal({.args = {Out{1}}}, caps), HasSubstr("there is no output 1"));
  EXPECT_THAT(Refusal({.args = {Offset{false, 2, 4}}}, caps), HasSubstr("there is no input 2"));
  EXPECT_THAT(Refusal({.global = {10, 1, 1}, .local = {4, 1, 1}}, caps), HasSubstr("multiple"));
  EXPECT_THAT(Refusal({.global = {32, 32, 1}, .local = {32, 32, 1}}, caps),
              HasSubstr("groups of 1024, the device has 256"));
  EXPECT_THAT(Refusal({.args = {Local{20 << 10}, Local{20 << 10}}}, caps),
              HasSubstr("40960 bytes of local memory"));
  EXPECT_THAT(Refusal({.args = {Scratch{64, 64}}}, caps, 128), HasSubstr("scratch"));
  EXPECT_THAT(Refusal({.args = {Scratch{128, 64}}}, caps, 128), HasSubstr("scratch"));
  EXPECT_THAT(Refusal({}, caps, 2 << 20), HasSubstr("bytes of scratch"));
}

TEST(OpenClRecipe, LongLoopsAreRefusedWhereDriversCapThem) {
  Capabilities caps = SomeDevice();
  EXPECT_EQ(Refusal({.longest_loop = 1 << 20}, caps), "");
  caps.max_loop_trips = 65536;
  EXPECT_EQ(Refusal({.longest_loop = 65535}, caps), "");
  EXPECT_THAT(Refusal({.longest_loop = 65536}, caps), HasSubstr("stops loops at 65536"));
}

}  // namespace
}  // namespace oncilla::opencl
