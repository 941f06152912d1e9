// Arguments of recipes against the kernels' own parameter lists: for every case on every kind of
// device, and that a wrong name, order, kind or number is noticed.
#include <gmock/gmock.h>

#include <filesystem>

#include "backends/opencl/recipes/dispatch_builder.h"
#include "engine/ops/op_set.h"
#include "tests/case_runner/case_recipes.h"
#include "tests/case_runner/kernel_signature.h"

namespace oncilla::opencl {
namespace {

using oncilla::testing::CheckSignature;
using oncilla::testing::Parameter;
using oncilla::testing::ParametersOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OpenClSignature, ConditionalsAndMacrosMakeParameters) {
  constexpr const char* kText = R"(
#define T f32
#define AXES 2
#define MEM_f32 float
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define MEM(type) CAT(MEM_, type)  // as in dtype.clh
#define EACH_1(M) M(0)
#define EACH_2(M) EACH_1(M) M(1)
#define EACH__(n, M) EACH_##n(M)
#define EACH(n, M) EACH__(n, M)
#define PARAMS(i) const long n##i,
#if defined(BIAS) || AXES > 2
#define END , const int never
#elif !(AXES == 1) && 2 * AXES >= 3 + 1
#define END , __global volatile int* \
    run_error
#else
#define END
#endif
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void k(__global const MEM(T)* restrict x,
#ifdef BIAS
       __global const MEM(T)* bias,
#endif
       __local float* tmp, EACH(AXES, PARAMS) const IDX m END) {})";
  const auto parameters = ParametersOf(kText, "k");
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  EXPECT_THAT(*parameters, ElementsAre(Parameter{"__global const float*", "x"},
                                       Parameter{"__local float*", "tmp"}, Parameter{"long", "n0"},
                                       Parameter{"long", "n1"}, Parameter{"IDX", "m"},
                                       Parameter{"__global int*", "run_error"}));
  EXPECT_THAT(Message(ParametersOf(kText, "other").status()), HasSubstr("no kernel other"));
  EXPECT_THAT(Message(ParametersOf("#if A B\n#endif\n", "k").status()), HasSubstr("condition"));
}

constexpr Source kSource{"norm/softmax.cl", R"(
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void softmax_columns(__global const T* restrict x, __global T* restrict y, const IDX lines,
                     const IDX n, const IDX inner) {})"};

DispatchBuilder Softmax() {
  DispatchBuilder b(kSource, "softmax_columns", IndexType(100));
  b.Define({{"IDX", "int"}, {"T", "float"}, {"GROUP", "64"}});
  return b;
}
std::string Refusal(DispatchBuilder& b) { return Message(CheckSignature(b.Build())); }

TEST(OpenClSignature, WrongNamesOrdersAndKindsAreNoticed) {
  DispatchBuilder right = Softmax();
  right.Arg("x", In{0}).Arg("y", Out{0}).Index({{"lines", 4}, {"n", 5}, {"inner", 6}});
  EXPECT_EQ(Refusal(right), "");
  DispatchBuilder order = Softmax();
  order.Arg("x", In{0}).Arg("y", Out{0}).Index({{"n", 5}, {"lines", 4}, {"inner", 6}});
  EXPECT_THAT(Refusal(order), HasSubstr("norm/softmax.cl:softmax_columns: argument 2 is 'int n', "
                                        "and the kernel's parameter is 'int lines'"));
  DispatchBuilder name = Softmax();
  name.Arg("x", In{0}).Arg("y", Out{0}).Index({{"lines", 4}, {"size", 5}, {"inner", 6}});
  EXPECT_THAT(Refusal(name), HasSubstr("argument 3 is 'int size'"));
  DispatchBuilder wide = Softmax();
  wide.Arg("x", In{0}).Arg("y", Out{0}).Arg("lines", int64_t{4}).Index({{"n", 5}, {"inner", 6}});
  EXPECT_THAT(Refusal(wide), HasSubstr("argument 2 is 'long lines'"));
  DispatchBuilder operands = Softmax();
  operands.Arg("x", Out{0}).Arg("y", In{0}).Index({{"lines", 4}, {"n", 5}, {"inner", 6}});
  EXPECT_THAT(Refusal(operands), HasSubstr("argument 0 is '__global * x', and the kernel's "
                                           "parameter is '__global const float* x'"));
  DispatchBuilder few = Softmax();
  few.Arg("x", In{0}).Arg("y", Out{0}).Index({{"lines", 4}, {"n", 5}});
  EXPECT_THAT(Refusal(few), HasSubstr("no argument for parameter 4, 'inner'"));
  DispatchBuilder many = Softmax();
  many.Arg("x", In{0}).Arg("y", Out{0}).Index({{"lines", 4}, {"n", 5}, {"inner", 6}}).Error();
  EXPECT_THAT(Refusal(many), HasSubstr("no parameter for argument 5, 'run_error'"));
}

// The properties that CheckSignature examines.
std::string KeyOf(const Dispatch& d) {
  std::string key = StrCat(d.source->path, ":", d.entry, "\n", d.generated);
  for (const auto& [name, value] : d.defines) key += StrCat("\n", name, " ", value);
  for (size_t i = 0; i < d.args.size(); ++i)
    key += StrCat("\n", d.names[i], " ", d.args[i].index());
  return key;
}

TEST(OpenClSignature, AllCasesNameWhatTheirKernelsTake) {
  const auto ops = OpSet::Builtin();
  const std::vector<Capabilities> devices = oncilla::testing::KindsOfDevices();
  std::set<std::string> checked, entries;
  for (const auto& file : std::filesystem::directory_iterator(ONCILLA_SOURCE_DIR "/tests/cases")) {
    if (file.path().extension() != ".case") continue;
    const auto cases = oncilla::testing::ReadCases(file.path().string(), *ops);
    ASSERT_TRUE(cases.ok()) << cases.status();
    for (const auto& c : *cases) {
      for (const Capabilities& caps : devices) {
        const auto recipe = oncilla::testing::RecipeOf(c, *ops, caps);
        ASSERT_TRUE(recipe.ok()) << c.Where() << recipe.status();
        if (!*recipe) continue;
        for (const Dispatch& d : (*recipe)->dispatches) {
          ASSERT_EQ(d.names.size(), d.args.size()) << c.Where();
          if (!checked.insert(KeyOf(d)).second) continue;
          entries.insert(StrCat(d.source->path, ":", d.entry));
          const Status status = CheckSignature(d);
          EXPECT_TRUE(status.ok()) << c.Where() << " " << status;
        }
      }
    }
  }
  EXPECT_GE(checked.size(), 1000u);
  // All kernels but those of the probes.
  EXPECT_EQ(entries.size(), 78u);
}

}  // namespace
}  // namespace oncilla::opencl
