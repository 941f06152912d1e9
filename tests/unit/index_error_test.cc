// What the CPU says of an index out of range: which one, where, and of how many. Cases can only ask
// for the words that every device has.
#include "engine/api/backends.h"
#include "engine/device/device.h"
#include "engine/ops/op_set.h"
#include "gtest/gtest.h"

namespace oncilla {
namespace {

Tensor Ints(Shape shape, std::vector<int64_t> values) {
  return Tensor::Of<int64_t>(DType::kI64, std::move(shape), values);
}

// The failure of one node on the CPU.
std::string FailureOf(std::string_view op, AttrMap attrs, std::vector<Tensor> inputs) {
  std::vector<std::string> notes;
  for (const Backend* backend : LinkedBackends()) {
    if (backend->name != "cpu") continue;
    auto device = backend->open(backend->discover({}, notes)[0], {});
    EXPECT_TRUE(device.ok());
    const auto ops = OpSet::Builtin();
    const NodeView node{ops->Find(op), &attrs, {}, {}, "n"};
    auto out = (*device)->Evaluate(node, inputs);
    return out.ok() ? "no failure" : Message(out.status());
  }
  return "no CPU";
}

TEST(IndexErrorTest, NamesTheIndexTheAxisAndItsSize) {
  const Tensor x = Ints({3, 5}, std::vector<int64_t>(15));
  EXPECT_EQ(FailureOf("Gather", {{"axis", int64_t{1}}}, {x, Ints({2}, {0, 7})}),
            "index 7 is out of range for axis 1 of size 5");
  EXPECT_EQ(FailureOf("Gather", {}, {x, Ints({1}, {-4})}),
            "index -4 is out of range for axis 0 of size 3");
  EXPECT_EQ(FailureOf("Gather", {{"negative_indices", false}}, {x, Ints({1}, {-1})}),
            "index -1 is out of range for axis 0 of size 3");
  EXPECT_EQ(FailureOf("GatherElements", {}, {x, Ints({1, 1}, {3})}),
            "index 3 is out of range for axis 0 of size 3");
  EXPECT_EQ(FailureOf("GatherND", {}, {x, Ints({1, 2}, {0, 5})}),
            "index 5 is out of range for axis 1 of size 5");
  EXPECT_EQ(FailureOf("ScatterElements", {}, {x, Ints({1, 1}, {-4}), Ints({1, 1}, {0})}),
            "index -4 is out of range for axis 0 of size 3");
  EXPECT_EQ(FailureOf("ScatterND", {}, {x, Ints({1, 2}, {2, -6}), Ints({1}, {0})}),
            "index -6 is out of range for axis 1 of size 5");
  EXPECT_EQ(FailureOf("ReverseSequence", {}, {x, Ints({5}, {1, 2, 3, 4, 0})}),
            "length 4 is out of range for axis 0 of size 3");
}

TEST(IndexErrorTest, StringsToo) {
  const Tensor x = Tensor::Strings({2}, {"a", "b"});
  EXPECT_EQ(FailureOf("Gather", {}, {x, Ints({1}, {2})}),
            "index 2 is out of range for axis 0 of size 2");
}

}  // namespace
}  // namespace oncilla
