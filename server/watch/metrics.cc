// Writes counts in the text format of Prometheus.
#include "server/watch/metrics.h"

#include "server/core/text.h"

namespace oncilla::server {
namespace {

// Writes metrics one after the other, with the lines of each together, as the format requires.
class Text {
 public:
  void Family(const char* name, const char* type, const char* help) {
    name_ = name;
    StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  template <class Value>
  void Line(const std::string& labels, Value value, const char* suffix = "") {
    StrAppend(&text_, name_, suffix, "{", labels, "} ", value, "\n");
  }
  void Buckets(const std::string& labels, const Histogram& histogram) {
    uint64_t below = 0;
    for (size_t i = 0; i < Histogram::kBounds.size(); ++i) {
      below += histogram.counts[i];
      Line(StrCat(labels, ",le=\"", Histogram::kBounds[i], "\""), below, "_bucket");
    }
    Line(StrCat(labels, ",le=\"+Inf\""), histogram.count, "_bucket");
    Line(labels, histogram.sum, "_sum");
    Line(labels, histogram.count, "_count");
  }
  std::string Take() { return std::move(text_); }

 private:
  const char* name_ = "";
  std::string text_;
};

// Names of models contain no characters that need to be escaped.
std::string LabelsOf(const ModelStatistics& model) {
  return StrCat("model=\"", model.name, "\",version=\"", model.version, "\"");
}

void WriteModels(const std::vector<ModelStatistics>& all, Text& text) {
  text.Family("oncilla_requests_total", "counter", "Inference requests by outcome");
  for (const auto& m : all) {
    for (const auto& [code, count] : m.counted.requests) {
      text.Line(StrCat(LabelsOf(m), ",code=\"", NameOf(static_cast<absl::StatusCode>(code)), "\""),
                count);
    }
  }
  text.Family("oncilla_request_seconds", "histogram", "Time from a request's arrival to its end");
  for (const auto& m : all) text.Buckets(LabelsOf(m), m.counted.latency);
  text.Family("oncilla_queue_seconds", "histogram",
              "Time that requests waited for their execution");
  for (const auto& m : all) text.Buckets(LabelsOf(m), m.counted.waiting);
  text.Family("oncilla_queue_depth", "gauge", "Requests that wait");
  for (const auto& m : all) text.Line(LabelsOf(m), m.waiting);
  text.Family("oncilla_requests_running", "gauge", "Requests in executions");
  for (const auto& m : all) text.Line(LabelsOf(m), m.running);
  text.Family("oncilla_inferences_total", "counter", "Rows computed");
  for (const auto& m : all) text.Line(LabelsOf(m), m.counted.inferences);
  text.Family("oncilla_executions_total", "counter", "Executions by rows in the batch");
  for (const auto& m : all) {
    for (const auto& [rows, batch] : m.counted.batches) {
      text.Line(StrCat(LabelsOf(m), ",rows=\"", rows, "\""), batch.infer.count);
    }
  }
  text.Family("oncilla_model_memory_bytes", "gauge", "Memory that a version holds of a device");
  for (const auto& m : all) {
    for (const DeviceUse& use : m.memory) {
      text.Line(StrCat(LabelsOf(m), ",device=\"", use.device, "\""), use.pool_bytes);
    }
  }
  text.Family("oncilla_sequences", "gauge", "Live sequences of a model that keeps state");
  for (const auto& m : all) {
    if (m.stateful) text.Line(LabelsOf(m), m.sequences.live);
  }
  text.Family("oncilla_sequence_state_bytes", "gauge", "Memory that the states of sequences take");
  for (const auto& m : all) {
    if (m.stateful) text.Line(LabelsOf(m), m.sequences.bytes);
  }
  text.Family("oncilla_sequences_started_total", "counter", "Sequences that requests began");
  for (const auto& m : all) {
    if (m.stateful) text.Line(LabelsOf(m), m.sequences.started);
  }
  text.Family("oncilla_sequences_expired_total", "counter", "Sequences that ended by being idle");
  for (const auto& m : all) {
    if (m.stateful) text.Line(LabelsOf(m), m.sequences.expired);
  }
  text.Family("oncilla_model_nodes", "gauge", "Nodes of the model's graph that run on a device");
  for (const auto& m : all) {
    for (const auto& [device, nodes] : m.placement)
      text.Line(StrCat(LabelsOf(m), ",device=\"", device, "\""), nodes);
  }
}

void WriteFronts(Service& service, Text& text) {
  struct Front {
    const char* labels;
    FrontCounts* counts;
  };
  const Front fronts[] = {{"protocol=\"http\"", &service.http_counts()},
                          {"protocol=\"grpc\"", &service.grpc_counts()}};
  text.Family("oncilla_calls_total", "counter",
              "Calls of the protocol by outcome, those that reach no model included");
  for (const Front& front : fronts) {
    for (size_t code = 0; code < front.counts->codes.size(); ++code) {
      const uint64_t count = front.counts->codes[code];
      if (count == 0) continue;
      text.Line(StrCat(front.labels, ",code=\"", NameOf(static_cast<absl::StatusCode>(code)), "\""),
                count);
    }
  }
  text.Family("oncilla_received_bytes_total", "counter", "Bytes of requests' bodies");
  for (const Front& front : fronts) text.Line(front.labels, front.counts->bytes_in.load());
  text.Family("oncilla_sent_bytes_total", "counter", "Bytes of responses' bodies");
  for (const Front& front : fronts) text.Line(front.labels, front.counts->bytes_out.load());
  text.Family("oncilla_connections", "gauge", "Open HTTP connections");
  text.Line(fronts[0].labels, fronts[0].counts->connections.load());
  text.Family("oncilla_requests_held_bytes", "gauge",
              "Bytes of requests that are not answered yet");
  text.Line("", service.requests_held().held());
  text.Family("oncilla_connections_refused_total", "counter", "HTTP connections above the limit");
  text.Line(fronts[0].labels, fronts[0].counts->refused.load());
}

}  // namespace

std::string MetricsText(Service& service) {
  Text text;
  const auto all = service.StatisticsOf("", "");
  WriteModels(all.ok() ? *all : std::vector<ModelStatistics>(), text);
  WriteFronts(service, text);
  text.Family("oncilla_device_memory_bytes", "gauge", "Memory that all models hold of a device");
  for (const DeviceUse& use : service.MemoryNow()) {
    text.Line(StrCat("device=\"", use.device, "\""), use.pool_bytes);
  }
  text.Family("oncilla_model_ready", "gauge",
              "1 for each version that is ready, 0 for each that is not");
  for (const IndexEntry& entry : service.Index(false)) {
    if (entry.version.empty()) continue;
    text.Line(StrCat("model=\"", entry.name, "\",version=\"", entry.version, "\""),
              entry.state == "READY");
  }
  text.Family("oncilla_ready", "gauge", "1 while the server is ready");
  text.Line("", service.ready());
  text.Family("process_resident_memory_bytes", "gauge", "Bytes of the process in memory");
  text.Line("", ResidentBytes());
  return text.Take();
}

}  // namespace oncilla::server
