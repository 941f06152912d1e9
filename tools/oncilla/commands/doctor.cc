// oncilla doctor: whether the devices of this machine compute correctly. A small graph for each
// family of kernels runs on the device and in plain code on the CPU, and the results are compared.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "engine/base/file.h"
#include "engine/base/format.h"
#include "engine/tensor/numbers.h"
#include "tools/oncilla/commands/commands.h"
#include "tools/oncilla/commands/device_report.h"
#include "tools/oncilla/commands/self_tests.h"
#include "tools/oncilla/exit_code.h"
#include "tools/oncilla/files/random_tensor.h"
#include "tools/oncilla/flags.h"
#include "tools/oncilla/report.h"
#include "tools/oncilla/terminal.h"
#include "tools/oncilla/version.h"

namespace oncilla::tool {
namespace {

// The largest error as a share of the largest value of an output: enough for sums of a thousand
// terms in fp32, in any order.
constexpr double kMostError = 1e-4;

struct DoctorFlags {
  RuntimeFlags runtime;
  std::string device;
  int64_t timeout_ms = 60'000;
  std::string report;
  bool json = false, row = false, unseen = false;
};

struct Finding {
  std::string_view family;
  std::string_view outcome = "ok";  // ok, wrong, failed, elsewhere
  std::string detail;
  double first_s = 0, again_s = 0, error = 0;
};

struct Patient {
  const ListedDevice* listed = nullptr;
  std::string problem;  // why it cannot be used
  DeviceReport report;
  bool known = false;  // its driver has passed before, and was not tested again
  std::vector<Finding> findings;

  int64_t ill() const {
    return std::count_if(findings.begin(), findings.end(), [](const Finding& f) {
      return f.outcome == "wrong" || f.outcome == "failed";
    });
  }
};

// The largest difference, as a share of the largest value; infinite where only one side has a
// number.
Result<double> ErrorOf(const Tensor& got, const Tensor& right) {
  ONCILLA_ASSIGN(const std::vector<double> a, ToDoubles(got));
  ONCILLA_ASSIGN(const std::vector<double> b, ToDoubles(right));
  double most = 0, largest = 1e-30;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(b[i]));
    const double off = std::fabs(a[i] - b[i]);
    if (!(off <= most)) most = std::isnan(off) ? INFINITY : off;
  }
  return most / largest;
}

Result<std::vector<Tensor>> Compute(Session& session, const SelfTest& test, int64_t timeout_ms,
                                    Finding* times = nullptr) {
  GraphBuilder b;
  const Shape shape(test.shape.begin(), test.shape.end());
  const auto outputs = test.build(b, b.Placeholder(DType::kF32, PartialShape(shape), "x"));
  ONCILLA_ASSIGN(std::string graph, b.GraphDef());
  ONCILLA_ASSIGN(const auto model,
                 session.LoadGraph(std::move(graph), std::string(test.family), {}));
  ONCILLA_ASSIGN(Tensor x, RandomTensor(0, "x", {DType::kF32, shape}));
  RunRequest request;
  request.feeds = {{"x:0", x}};
  for (const GraphBuilder::Output& output : outputs) request.fetches.push_back(output.tensor);
  request.timeout = std::chrono::milliseconds(timeout_ms);
  ONCILLA_ASSIGN(RunResult result, model->Run(request));
  if (times != nullptr) {
    times->first_s = 1e-9 * static_cast<double>(result.report.wall_ns);
    ONCILLA_ASSIGN(result, model->Run(request));
    times->again_s = 1e-9 * static_cast<double>(result.report.wall_ns);
  }
  std::vector<Tensor> tensors;
  for (NamedTensor& output : result.outputs) tensors.push_back(std::move(output.second));
  return tensors;
}

Finding Examine(Session& device, Session& plain, const SelfTest& test, int64_t timeout_ms) {
  Finding finding;
  finding.family = test.family;
  const auto fail = [&](std::string_view outcome, std::string detail) {
    finding.outcome = outcome;
    finding.detail = std::move(detail);
    return finding;
  };
  const auto right = Compute(plain, test, timeout_ms);
  if (!right.ok()) return fail("failed", StrCat("on the CPU: ", Message(right.status())));
  const auto got = Compute(device, test, timeout_ms, &finding);
  if (!got.ok()) {
    // A strict session fails, and says which kernel the device lacks.
    const bool lacks = got.status().code() == Code::kUnimplemented;
    return fail(lacks ? "elsewhere" : "failed", Message(got.status()));
  }
  for (size_t i = 0; i < right->size(); ++i) {
    const auto error = ErrorOf((*got)[i], (*right)[i]);
    if (!error.ok()) return fail("failed", Message(error.status()));
    finding.error = std::max(finding.error, *error);
  }
  if (!(finding.error <= kMostError)) {
    return fail("wrong",
                StrCat("differs from exact code by ", finding.error, " of the largest value"));
  }
  return finding;
}

Result<std::shared_ptr<Session>> OpenOn(const std::shared_ptr<Runtime>& runtime,
                                        const std::string& device, bool strict) {
  SessionOptions options;
  options.device = device;
  options.strict = strict;
  return Session::Create(runtime, options);
}

Result<Patient> Look(const std::shared_ptr<Runtime>& runtime, const ListedDevice& listed,
                     const DoctorFlags& flags) {
  Patient patient;
  patient.listed = &listed;
  patient.problem = listed.note;
  if (listed.name.empty()) return patient;
  ONCILLA_ASSIGN(const auto plain, OpenOn(runtime, "cpu:plain", false));
  auto session = OpenOn(runtime, listed.short_name(), listed.info.type != "CPU");
  if (!session.ok()) {
    patient.problem = Message(session.status());
    return patient;
  }
  auto report = ReportOf(*runtime, listed);
  if (!report.ok()) {
    patient.problem = Message(report.status());
    return patient;
  }
  patient.report = *std::move(report);
  if (flags.unseen && HasPassed(*runtime, patient.report)) {
    patient.known = true;
    return patient;
  }
  for (const SelfTest& test : SelfTests()) {
    const Progress progress(StrCat(listed.short_name(), ": ", test.family));
    patient.findings.push_back(Examine(**session, *plain, test, flags.timeout_ms));
  }
  if (patient.ill() == 0) RememberPassed(*runtime, patient.report);
  return patient;
}

std::string Line(const Finding& f) {
  std::string out = StrCat("    ", f.family);
  out.resize(std::max<size_t>(out.size() + 2, 30), ' ');
  if (f.outcome == "ok") {
    return out +
           StrCat("ok, ", HumanTime(f.first_s), " at first, then ", HumanTime(f.again_s), "\n");
  }
  if (f.outcome == "elsewhere") return out + StrCat("runs on the CPU: ", f.detail, "\n");
  return out + StrCat(f.outcome, ": ", f.detail, "\n");
}

std::string TextOf(const Patient& patient) {
  const ListedDevice& listed = *patient.listed;
  std::string out = StrCat(listed.name.empty() ? "-" : listed.short_name(), "  ", listed.info.name);
  if (!listed.info.driver.empty()) out += StrCat(", driver ", listed.info.driver);
  out += '\n';
  if (!patient.problem.empty()) return out + StrCat("    not used: ", patient.problem, "\n");
  if (!patient.report.tuning.empty()) out += StrCat("    ", patient.report.tuning, "\n");
  if (patient.known) return out + "    this driver has passed before\n";
  for (const Finding& finding : patient.findings) out += Line(finding);
  const int64_t ill = patient.ill();
  return out +
         (ill == 0
              ? StrCat("    all ", patient.findings.size(), " families compute what they should\n")
              : StrCat("    ", ill, " of ", patient.findings.size(), " families do not\n"));
}

// A row of the second table of docs/drivers.md.
std::string RowOf(const Patient& patient) {
  const DeviceInfo& info = patient.listed->info;
  const auto cell = [](std::string text) {
    for (char& c : text) {
      if (c == '|' || c == '\n') c = '/';
    }
    return text;
  };
  const auto all = static_cast<int64_t>(patient.findings.size());
  const auto elsewhere = std::count_if(patient.findings.begin(), patient.findings.end(),
                                       [](const Finding& f) { return f.outcome == "elsewhere"; });
  std::string said = StrCat(all - patient.ill() - elsewhere, " of ", all, " families");
  for (const Finding& f : patient.findings) {
    if (f.outcome != "ok") said += StrCat("; ", f.family, " ", f.outcome);
  }
  return StrCat("| ", cell(info.name), " | ", cell(info.platform), " ", cell(info.driver), " | ",
                patient.report.json["shape"].get<std::string>(), " | ", cell(patient.report.probes),
                " | ", said, " | ", kVersion, " |\n");
}

Json JsonOf(const Patient& patient) {
  const DeviceInfo& info = patient.listed->info;
  Json json = {{"name", patient.listed->name},
               {"device", JsonText(info.name)},
               {"vendor", JsonText(info.vendor)},
               {"driver", JsonText(info.driver)},
               {"platform", JsonText(info.platform)},
               {"problem", JsonText(WithoutPrivate(patient.problem))}};
  json["known"] = patient.known;
  json["opencl"] = patient.report.json;
  json["families"] = Json::array();
  for (const Finding& f : patient.findings) {
    json["families"].push_back({{"family", f.family},
                                {"outcome", f.outcome},
                                {"detail", JsonText(WithoutPrivate(f.detail))},
                                {"error", std::isfinite(f.error) ? Json(f.error) : Json()},
                                {"first_s", f.first_s},
                                {"again_s", f.again_s}});
  }
  return json;
}

Status Doctor(const DoctorFlags& flags) {
  const std::shared_ptr<Runtime> runtime = flags.runtime.Create();
  std::vector<const ListedDevice*> wanted;
  if (flags.device.empty()) {
    for (const ListedDevice& listed : runtime->devices()) wanted.push_back(&listed);
  } else {
    ONCILLA_ASSIGN(const size_t chosen, runtime->Resolve(flags.device));
    wanted.push_back(&runtime->devices()[chosen]);
  }
  Json json = DocumentJson("doctor");
  json["devices"] = Json::array();
  std::string text, rows, ill;
  for (const ListedDevice* listed : wanted) {
    ONCILLA_ASSIGN(const Patient patient, Look(runtime, *listed, flags));
    json["devices"].push_back(JsonOf(patient));
    text += TextOf(patient);
    if (patient.report.json.is_object() && !patient.known) rows += RowOf(patient);
    if (patient.ill() > 0 || (!flags.device.empty() && !patient.problem.empty())) {
      ill += StrCat(ill.empty() ? "" : ", ", listed->short_name());
    }
  }
  if (!flags.report.empty()) ONCILLA_TRY(WriteFile(flags.report, json.dump(1) + "\n"));
  if (flags.row) {
    ONCILLA_TRY(PrintResult(rows));
  } else {
    ONCILLA_TRY(flags.json ? PrintDocument(json) : PrintResult(text));
  }
  if (ill.empty()) return Status();
  return WithStage(
      Error(Code::kDataLoss, ill, " cannot be relied on: use another device (--device), ",
            "or another driver, and report it to the vendor"),
      Stage::kRun);
}

}  // namespace

Action AddDoctor(CLI::App& app) {
  auto flags = std::make_shared<DoctorFlags>();
  flags->runtime.AddTo(app);
  app.add_option("--device", flags->device, "The device to look at (else all of them)");
  app.add_option("--timeout", flags->timeout_ms, "The most milliseconds that a family may take")
      ->check(CLI::Range(int64_t{1}, int64_t{86'400'000}))
      ->capture_default_str();
  app.add_flag("--new", flags->unseen,
               "Only where the driver has not passed before, by the folder of compiled programs");
  app.add_option("--report", flags->report,
                 "Also writes what can be sent with a report: claims, probes, known faults and all "
                 "of --json, without paths and names of this machine")
      ->type_name("FILE");
  app.add_flag("--json", flags->json, "One JSON document");
  app.add_flag("--row", flags->row, "Rows for the table of docs/drivers.md instead")
      ->excludes("--json");
  app.footer(
      "Exit code 1: a device computes something wrong, or fails.\n"
      "Examples:\n"
      "  oncilla doctor\n"
      "  oncilla doctor --device gpu:0 --report report.json\n"
      "  oncilla doctor --new");
  return [flags] { return Doctor(*flags); };
}

}  // namespace oncilla::tool
