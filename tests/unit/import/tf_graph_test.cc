// Serialized GraphDefs: inputs, attributes with their defaults, constants in every form, damage.
#include "engine/import/tf/graph/graph.h"

#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "engine/base/half.h"

namespace oncilla {
namespace {

using protozero::pbf_writer;

std::string ShapeProto(const std::vector<int64_t>& dims) {
  std::string out;
  pbf_writer shape(out);
  for (int64_t d : dims) {
    std::string dim;
    if (d != 0) pbf_writer(dim).add_int64(1, d);
    shape.add_message(2, dim);
  }
  return out;
}

std::string TensorProto(int tf_type, const std::vector<int64_t>& dims,
                        const std::function<void(pbf_writer&)>& values) {
  std::string out;
  pbf_writer tensor(out);
  tensor.add_enum(1, tf_type);
  tensor.add_message(2, ShapeProto(dims));
  values(tensor);
  return out;
}

Result<Tensor> Read(const std::string& proto, int64_t budget = 1 << 20) {
  TfUnfoldBudget unfold{budget};
  Result<Tensor> tensor = Tensor();
  Status status = ReadWire("the tensor", [&]() -> Status {
    tensor = TensorFromTf(proto, nullptr, unfold);
    return tensor.status();
  });
  if (!status.ok()) return status;
  return tensor;
}

std::string Node(
    const std::string& name, const std::string& op, const std::vector<std::string>& inputs = {},
    const std::function<void(pbf_writer&)>& more = [](pbf_writer&) {}) {
  std::string out;
  pbf_writer node(out);
  node.add_string(1, name);
  node.add_string(2, op);
  for (const std::string& input : inputs) node.add_string(3, input);
  more(node);
  return out;
}

void AddAttr(pbf_writer& node, const std::string& name,
             const std::function<void(pbf_writer&)>& value) {
  pbf_writer entry(node, 5);
  entry.add_string(1, name);
  pbf_writer attr(entry, 2);
  value(attr);
}

std::string GraphOf(const std::vector<std::string>& nodes) {
  std::string out;
  pbf_writer graph(out);
  for (const std::string& node : nodes) graph.add_message(1, node);
  return out;
}

TEST(TfInput, ParsesEverySpelling) {
  EXPECT_EQ(StrCat(*ParseTfInput("a/b")), "a/b:0");
  EXPECT_EQ(StrCat(*ParseTfInput("a:3")), "a:3");
  EXPECT_EQ(StrCat(*ParseTfInput("call:output:2")), "call:output:2");
  EXPECT_EQ(StrCat(*ParseTfInput("^a")), "^a");
  for (const char* bad : {"", "^", ":0", "a:", "a:x", "a:-1", "a:b:", "a:99999999999", "a:1:2:3"}) {
    EXPECT_EQ(ParseTfInput(bad).status().code(), Code::kDataLoss) << bad;
  }
}

TEST(TfTensor, PadsAListWithItsLastValueAndNothingWithZeros) {
  auto padded = Read(TensorProto(1, {2, 2}, [](pbf_writer& w) {
    w.add_float(5, 1.5f);
    w.add_float(5, -2.0f);
  }));
  ASSERT_TRUE(padded.ok()) << padded.status();
  EXPECT_EQ(*ToDoubles(*padded), (std::vector<double>{1.5, -2, -2, -2}));
  auto zeros = Read(TensorProto(9, {3}, [](pbf_writer&) {}));
  ASSERT_TRUE(zeros.ok());
  EXPECT_EQ(*ToInt64s(*zeros), (std::vector<int64_t>{0, 0, 0}));
  auto empty = Read(TensorProto(3, {0, 5}, [](pbf_writer&) {}));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->shape(), Shape({0, 5}));
}

TEST(TfTensor, ReadsEveryListType) {
  const auto one = [](int type, auto add) {
    auto t = Read(TensorProto(type, {}, add));
    EXPECT_TRUE(t.ok()) << t.status();
    return t.ok() ? ToDoubles(*t)->at(0) : -99;
  };
  EXPECT_EQ(one(2, [](pbf_writer& w) { w.add_double(6, 2.5); }), 2.5);
  for (int type : {3, 5, 6}) {
    EXPECT_EQ(one(type, [](pbf_writer& w) { w.add_int32(7, -7); }), -7) << type;
  }
  for (int type : {4, 17}) {
    EXPECT_EQ(one(type, [](pbf_writer& w) { w.add_int32(7, 200); }), 200) << type;
  }
  EXPECT_EQ(one(9, [](pbf_writer& w) { w.add_int64(10, -(int64_t{1} << 40)); }), -0x1p40);
  EXPECT_EQ(one(10, [](pbf_writer& w) { w.add_bool(11, true); }), 1);
  EXPECT_EQ(one(19, [](pbf_writer& w) { w.add_int32(13, Half::FromFloat(0.5f)); }), 0.5);
  EXPECT_EQ(one(14, [](pbf_writer& w) { w.add_int32(13, BFloat16::FromFloat(-3.0f)); }), -3);
  EXPECT_EQ(one(22, [](pbf_writer& w) { w.add_uint32(16, 4000000000u); }), 4e9);
  EXPECT_EQ(one(23, [](pbf_writer& w) { w.add_uint64(17, uint64_t{1} << 63); }), 0x1p63);
  auto packed = Read(TensorProto(9, {2}, [](pbf_writer& w) {
    const int64_t values[] = {4, -5};
    w.add_packed_int64(10, values, values + 2);
  }));
  EXPECT_EQ(*ToInt64s(*packed), (std::vector<int64_t>{4, -5}));
  auto strings = Read(TensorProto(7, {3}, [](pbf_writer& w) {
    w.add_bytes(8, "a");
    w.add_bytes(8, std::string("b\0c", 3));
  }));
  ASSERT_TRUE(strings.ok());
  EXPECT_EQ(strings->strings(), (std::vector<std::string>{"a", {"b\0c", 3}, {"b\0c", 3}}));
}

TEST(TfTensor, ContentIsAViewAndMustFit) {
  const std::string proto = TensorProto(
      1, {2}, [](pbf_writer& w) { w.add_bytes(4, std::string("\0\0\x80\x3f\0\0\0\x40", 8)); });
  auto t = Read(proto);
  ASSERT_TRUE(t.ok());
  EXPECT_TRUE(t->mapped());
  EXPECT_GE(reinterpret_cast<const char*>(t->bytes().data()), proto.data());
  EXPECT_LT(reinterpret_cast<const char*>(t->bytes().data()), proto.data() + proto.size());
  EXPECT_EQ(*ToDoubles(*t), (std::vector<double>{1, 2}));
  auto short_one = Read(TensorProto(1, {3}, [](pbf_writer& w) { w.add_bytes(4, "12345678"); }));
  EXPECT_EQ(short_one.status().code(), Code::kDataLoss);
}

TEST(TfTensor, RefusesWhatCannotBe) {
  const auto none = [](pbf_writer&) {};
  EXPECT_EQ(Read(TensorProto(1, {-1}, none)).status().code(), Code::kDataLoss);
  EXPECT_EQ(Read(TensorProto(1, {-5}, none)).status().code(), Code::kDataLoss);
  EXPECT_EQ(Read(TensorProto(1, {int64_t{1} << 62, 8}, none)).status().code(), Code::kDataLoss);
  EXPECT_EQ(Read(TensorProto(1, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, none)).status().code(),
            Code::kUnimplemented);
  EXPECT_EQ(Read(TensorProto(24, {}, none)).status().code(), Code::kUnimplemented);
  EXPECT_EQ(Read(TensorProto(77, {}, none)).status().code(), Code::kUnimplemented);
  // A petabyte from one repeated value, and a terabyte of strings.
  EXPECT_EQ(Read(TensorProto(1, {int64_t{1} << 48}, none)).status().code(),
            Code::kResourceExhausted);
  EXPECT_EQ(Read(TensorProto(7, {int64_t{1} << 36}, none)).status().code(),
            Code::kResourceExhausted);
  // More values than elements.
  auto many = Read(TensorProto(3, {1}, [](pbf_writer& w) {
    w.add_int32(7, 1);
    w.add_int32(7, 2);
  }));
  EXPECT_EQ(many.status().code(), Code::kDataLoss);
  // The list of another type's field is not read as this type.
  auto other = Read(TensorProto(3, {1}, [](pbf_writer& w) { w.add_float(7, 1); }));
  EXPECT_EQ(other.status().code(), Code::kDataLoss);
}

TEST(TfGraph, AttributesFallBackToDefaults) {
  const std::string graph = GraphOf({Node("c", "Conv2D", {"x", "w"}, [](pbf_writer& node) {
    AddAttr(node, "padding", [](pbf_writer& attr) { attr.add_bytes(2, "SAME"); });
    AddAttr(node, "strides", [](pbf_writer& attr) {
      const int64_t values[] = {1, 2, 2, 1};
      pbf_writer list(attr, 1);
      list.add_packed_int64(3, values, values + 4);
    });
  })});
  auto parsed = TfGraph::Parse(graph, {}, "test.pb", nullptr);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const TfAttrs attrs = (*parsed)->Attrs((*parsed)->main().nodes[0]);
  EXPECT_EQ(*attrs.String("padding"), "SAME");
  EXPECT_EQ(*attrs.Ints("strides"), (std::vector<int64_t>{1, 2, 2, 1}));
  EXPECT_EQ(*attrs.Ints("dilations"), (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_TRUE(attrs.Ints("explicit_paddings")->empty());
  EXPECT_EQ(*attrs.String("data_format"), "NHWC");
  const Status wrong = attrs.Int("padding").status();
  EXPECT_EQ(Message(wrong),
            "node 'c' (Conv2D): attribute 'padding': holds a string, not an integer");
  EXPECT_EQ(Details(wrong).node, "c");
  EXPECT_EQ(Message(attrs.Int("nonsense").status()),
            "node 'c' (Conv2D): attribute 'nonsense': is missing");
}

TEST(TfGraph, TheFilesOpListWinsOverOurTable) {
  std::string op_list;
  {
    pbf_writer list(op_list);
    pbf_writer op(list, 1);
    op.add_string(1, "LeakyRelu");
    pbf_writer attr(op, 4);
    attr.add_string(1, "alpha");
    pbf_writer value(attr, 3);
    value.add_float(4, 0.75f);
  }
  const std::string graph = GraphOf({Node("l", "LeakyRelu", {"x"})});
  auto parsed = TfGraph::Parse(graph, op_list, "test.pb", nullptr);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*(*parsed)->Attrs((*parsed)->main().nodes[0]).Float("alpha"), 0.75f);
  parsed = TfGraph::Parse(graph, {}, "test.pb", nullptr);
  EXPECT_EQ(*(*parsed)->Attrs((*parsed)->main().nodes[0]).Float("alpha"), 0.2f);
}

TEST(TfGraph, NamedOutputsBecomeFlatNumbers) {
  const std::string graph =
      GraphOf({Node("t", "TopKV2", {"x", "k"}), Node("s", "Split", {"d", "x"})});
  auto parsed = TfGraph::Parse(graph, {}, "test.pb", nullptr);
  ASSERT_TRUE(parsed.ok());
  const TfGraph& g = **parsed;
  EXPECT_EQ(*g.OutputIndex(g.main().nodes[0], *ParseTfInput("t:indices:0")), 1);
  EXPECT_EQ(*g.OutputIndex(g.main().nodes[1], *ParseTfInput("s:output:2")), 2);
  EXPECT_FALSE(g.OutputIndex(g.main().nodes[0], *ParseTfInput("t:indices:1")).ok());
  EXPECT_FALSE(g.OutputIndex(g.main().nodes[0], *ParseTfInput("t:nothing:0")).ok());
}

TEST(TfGraph, RefusesTwoNodesOfOneName) {
  const std::string graph = GraphOf({Node("a", "NoOp"), Node("a", "NoOp")});
  auto parsed = TfGraph::Parse(graph, {}, "test.pb", nullptr);
  EXPECT_EQ(Message(parsed.status()), "test.pb: the name 'a' belongs to two nodes");
}

TEST(TfGraph, NoPrefixOfAGraphCrashes) {
  const std::string graph = GraphOf({Node("c", "Const", {}, [](pbf_writer& node) {
    AddAttr(node, "value", [](pbf_writer& attr) {
      attr.add_message(8, TensorProto(7, {2}, [](pbf_writer& w) { w.add_bytes(8, "hello"); }));
    });
  })});
  for (size_t n = 0; n <= graph.size(); ++n) {
    // A copy of exactly n bytes, so that a read beyond them is seen by AddressSanitizer.
    const std::vector<char> prefix(graph.begin(), graph.begin() + static_cast<long>(n));
    auto parsed = TfGraph::Parse({prefix.data(), n}, {}, "test.pb", nullptr);
    if (n != 0 && n != graph.size()) {
      EXPECT_EQ(parsed.status().code(), Code::kDataLoss) << n;
    } else {
      ASSERT_TRUE(parsed.ok()) << parsed.status();
    }
  }
  for (size_t at = 0; at < graph.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = graph;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      auto parsed = TfGraph::Parse(flipped, {}, "test.pb", nullptr);
      if (!parsed.ok()) continue;
      for (const TfNode& node : (*parsed)->main().nodes) {
        (void)(*parsed)->TensorAttr(node, "value");
      }
    }
  }
}

}  // namespace
}  // namespace oncilla
