// Devices stored on a model's nodes: ignored, followed if possible, or required. Placement is
// tested on the CPU under the names of two devices, reading them from the file on GraphDefs made
// here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "engine/placement/placer.h"
#include "engine/session/model.h"
#include "engine/session/session.h"
#include "tests/unit/support/session_parts.h"
#include "tests/unit/support/temporary.h"

namespace oncilla {
namespace {

using ::testing::HasSubstr;

const std::string kCpu = "/job:localhost/replica:0/task:0/device:CPU:0";
const std::string kGpu = "/job:localhost/replica:0/task:0/device:GPU:0";

class Placing : public ::testing::Test {
 protected:
  Placing() : graph_(OpSet::Builtin()) {
    ValueId x = graph_.AddInput("x", Fact::Of(DType::kF32, PartialShape(Shape{2, 3})));
    for (const char* name : {"a", "b", "c"}) x = graph_.Add(name, "Relu", {}, {x}).value();
    graph_.AddOutput("y", x);
  }
  Result<PlacementReport> PlaceWith(const std::map<std::string, std::string>& stored, bool hard,
                                    int preferred) {
    auto sources = std::make_shared<SourceNodes>();
    for (const auto& [name, device] : stored) (*sources)[name] = {"", device};
    PlacementOptions options;
    options.preferred = preferred;
    options.wishes.sources = std::move(sources);
    options.wishes.follow_stored = true;
    options.stored_hard = hard;
    const std::vector<Device*> devices = {parts_.cpu.get(), parts_.cpu.get()};
    const std::vector<std::string> names = {kCpu, kGpu};
    return Place(graph_, devices, names, options);
  }

  SessionParts parts_;
  Graph graph_;
};

TEST_F(Placing, FollowsPartialAndFullNames) {
  const auto report = PlaceWith({{"a", "/cpu:0"}, {"c", kCpu}}, true, 1);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->CountOn(0), 2);
  EXPECT_EQ(report->nodes[0].reason, PlacementReason::kStored);
  EXPECT_EQ(report->nodes[1].reason, PlacementReason::kPreferred);
  EXPECT_EQ(graph_.node(NodeId{0}).device, 0);
  EXPECT_EQ(graph_.node(NodeId{1}).device, 1);
  EXPECT_THAT(Print(*report), HasSubstr("a (Relu): " + kCpu + "  stored: /cpu:0"));
}

TEST_F(Placing, ANameThatFitsSeveralMeansThePreferredOne) {
  for (const int preferred : {0, 1}) {
    const auto report = PlaceWith({{"b", "/job:localhost"}}, true, preferred);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->nodes[1].device, preferred);
  }
}

TEST_F(Placing, SoftRelaxesWithTheReason) {
  const auto report =
      PlaceWith({{"a", "/gpu:1"}, {"b", "/job:worker/cpu:0"}, {"c", "/gpu:x"}}, false, 1);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->CountOn(1), 3);
  ASSERT_EQ(report->Relaxed().size(), 3u);
  EXPECT_EQ(report->nodes[0].reason, PlacementReason::kRelaxed);
  EXPECT_EQ(report->nodes[0].detail, "'/gpu:1': there is no such device");
  EXPECT_THAT(report->nodes[2].detail, HasSubstr("expected a number"));
}

TEST_F(Placing, RespectRefusesAndListsTheDevices) {
  Status status = PlaceWith({{"b", "/device:GPU:1"}}, true, 1).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(Details(status).stage, Stage::kDevice);
  EXPECT_EQ(Details(status).node, "b");
  EXPECT_EQ(Message(status),
            "Cannot assign a device for operation b: {{node b}} was explicitly assigned to "
            "/device:GPU:1 but available devices are [ " +
                kCpu + ", " + kGpu +
                " ]. Make sure the device specification refers to a valid device.");
  status = PlaceWith({{"b", "/device:GPU:-1"}}, true, 1).status();
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr("Malformed device specification '/device:GPU:-1' in node: {{node b}}"));
}

TEST_F(Placing, StringsStayOnTheHost) {
  graph_ = Graph(OpSet::Builtin());
  const ValueId s = graph_.AddInput("s", Fact::Of(DType::kString, PartialShape(Shape{2})));
  const auto length = graph_.Add("low", "StringLength", {}, {s});
  ASSERT_TRUE(length.ok()) << length.status();
  graph_.AddOutput("y", *length);
  const auto soft = PlaceWith({{"low", "/gpu:0"}}, false, 1);
  ASSERT_TRUE(soft.ok()) << soft.status();
  EXPECT_EQ(soft->nodes[0].device, 0);
  EXPECT_THAT(soft->nodes[0].detail, HasSubstr("host only"));
  const Status hard = PlaceWith({{"low", "/gpu:0"}}, true, 1).status();
  EXPECT_EQ(hard.code(), Code::kUnimplemented);
  EXPECT_TRUE(PlaceWith({{"low", "/cpu:0"}}, true, 1).ok());
}

// x -> Relu on the CPU -> call of a function with Neg and Exp, stored for a GPU by the call; Neg
// says the CPU itself.
std::string GraphWithDevices() {
  using protozero::pbf_writer;
  std::string out;
  pbf_writer graph(out);
  const auto type = [](pbf_writer& node, const char* name) {
    pbf_writer entry(node, 5);
    entry.add_string(1, name);
    pbf_writer value(entry, 2);
    value.add_enum(6, 1);
  };
  const auto node = [&](pbf_writer& parent, int field, const char* name, const char* op,
                        const char* input, const char* device, const char* function = nullptr) {
    pbf_writer writer(parent, static_cast<protozero::pbf_tag_type>(field));
    writer.add_string(1, name);
    writer.add_string(2, op);
    if (*input != 0) writer.add_string(3, input);
    if (*device != 0) writer.add_string(4, device);
    if (function == nullptr) return type(writer, *input != 0 ? "T" : "dtype");
    pbf_writer entry(writer, 5);
    entry.add_string(1, "f");
    pbf_writer value(entry, 2);
    pbf_writer list(value, 10);
    list.add_string(1, function);
  };
  node(graph, 1, "x", "Placeholder", "", "");
  node(graph, 1, "relu", "Relu", "x", "/device:CPU:0");
  node(graph, 1, "call", "PartitionedCall", "relu", "/device:GPU:0", "f");
  pbf_writer library(graph, 2);
  pbf_writer function(library, 1);
  {
    pbf_writer signature(function, 1);
    signature.add_string(1, "f");
    for (const auto& [field, name] : {std::pair(2, "v"), std::pair(3, "w")}) {
      pbf_writer arg(signature, static_cast<protozero::pbf_tag_type>(field));
      arg.add_string(1, name);
      arg.add_enum(3, 1);
    }
  }
  node(function, 3, "neg", "Neg", "v", "/device:CPU:0");
  node(function, 3, "exp", "Exp", "neg:y:0", "");
  pbf_writer returned(function, 4);
  returned.add_string(1, "w");
  returned.add_string(2, "exp:y:0");
  return out;
}

TEST(StoredDevices, AreFoundInsideCallsAndFollowedAsAsked) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.Write("graph.pb", GraphWithDevices());
  auto session = Session::Create(Runtime::Create({}), {.device = "cpu"});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto run = [&](StoredDevices mode) {
    OpenModelOptions options;
    options.stored_devices = mode;
    auto model = (*session)->Load(path, options);
    EXPECT_TRUE(model.ok()) << model.status();
    RunRequest request;
    request.feeds = {{"x:0", Tensor::Scalar(2)}};
    auto result = (*model)->Run(request);
    const SourceNodes nodes = (*model)->source().source_nodes();
    EXPECT_EQ(nodes.at("relu").device, "/device:CPU:0");
    EXPECT_EQ(nodes.at("call/neg").device, "/device:CPU:0");
    EXPECT_EQ(nodes.at("call/exp").device, "/device:GPU:0");
    EXPECT_EQ(nodes.at("call/exp").op, "Exp");
    return result;
  };
  const auto ignored = run(StoredDevices::kIgnore);
  ASSERT_TRUE(ignored.ok()) << ignored.status();
  EXPECT_TRUE(ignored->report.relaxed.empty());
  const auto soft = run(StoredDevices::kSoft);
  ASSERT_TRUE(soft.ok()) << soft.status();
  ASSERT_EQ(soft->report.relaxed.size(), 1u);
  EXPECT_THAT(soft->report.Line(), HasSubstr("1 not on '/device:GPU:0': there is no such device"));
  const Status hard = run(StoredDevices::kRespect).status();
  EXPECT_THAT(std::string(Message(hard)),
              HasSubstr("operation call/exp: {{node call/exp}} was explicitly assigned to "
                        "/device:GPU:0 but available devices are [ " +
                        kCpu + " ]"));
}

}  // namespace
}  // namespace oncilla
