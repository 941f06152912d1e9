// onnx_tests: ONNX's own tests, as folders, on one device: score, what fails and why.
//
//   onnx_tests [--device SPEC|opencl] [--only TEXT] [--passes FILE] [--failures FILE] [--update]
//              [--at-least N] [--native] [--json FILE] [--list] [FOLDER...]
//
// One child process runs many tests; when it dies or hangs, the parent blames that test and runs
// the rest in a new child. --passes names a file of the tests that must pass; --update adds those
// that pass now. --failures names a file of all others, each with the reason; --update adds those
// that it lacks with what was observed. --native fails when a node ran on the CPU that should have
// run on the device (see FamilyShare); opencl is the first OpenCL device of any type. Without
// FOLDER: the node tests of Debian's libonnx-testdata.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "engine/base/file.h"
#include "tests/case_runner/child.h"
#include "tests/conformance/onnx_case.h"

namespace oncilla::testing {
namespace {

using nlohmann::json;

constexpr int kTestTimeoutSeconds =
    180;  // a cold cache of kernels on a busy machine takes its time
constexpr char kDebianTests[] = "/usr/share/libonnx-testdata/data/node";

struct Options {
  std::string device = "cpu";
  std::string only, passes, failures, json_file;
  bool update = false, native = false, list = false;
  int at_least = 0;
  int child_from = -1;
  std::vector<std::string> folders;
};

struct Test {
  std::string name, folder;
};

Result<std::vector<Test>> FindTests(const Options& options) {
  std::vector<Test> tests;
  for (const std::string& folder : options.folders) {
    ONCILLA_ASSIGN(const auto entries, ListFolder(folder));
    for (const FolderEntry& entry : entries) {
      if (!entry.is_folder || entry.name.find(options.only) == std::string::npos) continue;
      const std::string path = folder + "/" + entry.name;
      // Debian leaves out the models of the real ones.
      if (FileExists(path + "/model.onnx")) tests.push_back({entry.name, path});
    }
  }
  return tests;
}

json ToJson(const OnnxOutcome& outcome) {
  json families = json::object();
  for (const auto& [family, share] : outcome.families) {
    families[family] = {{"on_device", share.on_device},
                        {"refused", share.refused},
                        {"planned", share.planned},
                        {"shapes", share.shapes},
                        {"host", share.host}};
  }
  return {{"verdict", Name(outcome.verdict)},
          {"reason", outcome.reason},
          {"ops", outcome.ops},
          {"families", std::move(families)}};
}

// The child: one line "begin I" before a test and "end I {..}" after it.
int BeChild(const Options& options, const std::vector<Test>& tests) {
  RuntimeOptions runtime_options = RuntimeOptionsFromEnvironment();
  runtime_options.opencl_cpu_devices = options.device.rfind("gpu", 0) == 0;
  auto session =
      Session::Create(Runtime::Create(runtime_options), {.device = options.device, .verify = true});
  if (!session.ok()) {
    std::cout << "broken " << Message(session.status()) << std::endl;
    return 1;
  }
  for (size_t i = static_cast<size_t>(options.child_from); i < tests.size(); ++i) {
    std::cout << "begin " << i << std::endl;
    const OnnxOutcome outcome = RunOnnxCase(tests[i].folder, *session);
    const auto replace = json::error_handler_t::replace;
    std::cout << "end " << i << ' ' << ToJson(outcome).dump(-1, ' ', false, replace) << std::endl;
  }
  return 0;
}

class Parent {
 public:
  Parent(const Options& options, const std::vector<Test>& tests, char** argv)
      : options_(options), tests_(tests), argv_(argv), results_(tests.size()) {}

  int Run() {
    for (size_t from = 0; from < tests_.size();) {
      const auto next = RunFrom(from);
      if (!next) return 2;
      from = *next;
    }
    return Report();
  }

 private:
  // Runs a child from test `from`; returns the next test, nothing when it cannot start.
  std::optional<size_t> RunFrom(size_t from) {
    const ChildEnd end =
        RunChild(argv_, from, kTestTimeoutSeconds, [this](size_t index, const std::string& line) {
          results_[index] = json::parse(line, nullptr, false);
        });
    if (!end.broken.empty()) {
      std::cerr << end.broken << "\n";
      return std::nullopt;
    }
    if (!end.in_test && end.next >= tests_.size()) return end.next;
    results_[end.next] = {{"verdict", "crashed"},
                          {"reason", end.how.empty() ? "ended too early" : end.how},
                          {"ops", json::array()},
                          {"families", json::object()}};
    return end.next + 1;
  }

  // Without the node names, so that equal reasons count as one.
  static std::string ShortReason(const std::string& reason) {
    const size_t colon = reason.find("not supported: ");
    std::string text = colon == std::string::npos ? reason : reason.substr(colon + 15);
    const size_t named = text.find("': ");
    if (text.rfind("input '", 0) == 0 && named != std::string::npos) text.erase(5, named - 4);
    for (size_t at; (at = text.find(" in 1 node: ")) != std::string::npos;) {
      const size_t end = text.find("; ", at);
      text.erase(at, end == std::string::npos ? end : end - at);
    }
    return text.substr(0, 160);
  }

  int Report() {
    std::map<std::string, int> verdicts;
    std::map<std::string, std::vector<std::string>> reasons;
    struct Count {
      int passed = 0, all = 0;
    };
    std::map<std::string, Count> by_op;
    std::set<std::string> passed;
    json families = json::object();
    for (size_t i = 0; i < tests_.size(); ++i) {
      const json& r = results_[i];
      const std::string verdict = r["verdict"];
      ++verdicts[verdict];
      const bool pass = verdict == "pass";
      for (const std::string op : r["ops"]) {
        ++by_op[op].all;
        by_op[op].passed += pass;
      }
      for (const auto& [family, share] : r["families"].items()) {
        json& sum = families[family];
        if (sum.is_null()) sum = json::object();
        for (const char* count : {"on_device", "planned", "shapes"}) {
          sum[count] = sum.value(count, 0) + share[count].get<int>();
        }
        for (const char* list : {"refused", "host"}) {
          json& into = sum[list];
          if (into.is_null()) into = json::object();
          for (const auto& [why, count] : share[list].items()) {
            into[why] = into.value(why, 0) + count.get<int>();
          }
        }
      }
      if (pass) {
        passed.insert(tests_[i].name);
      } else {
        reasons[verdict + ": " + ShortReason(r["reason"])].push_back(tests_[i].name);
      }
      if (options_.list) {
        std::cout << verdict << ' ' << tests_[i].name;
        if (!pass) std::cout << ": " << r["reason"].get<std::string>();
        std::cout << '\n';
      }
    }
    std::vector<std::pair<std::string, std::vector<std::string>>> sorted(reasons.begin(),
                                                                         reasons.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.second.size() > b.second.size();
    });
    std::cout << "Why tests do not pass:\n";
    for (const auto& [reason, names] : sorted) {
      std::cout << "  " << names.size() << "  " << reason << "  (" << names[0]
                << (names.size() > 1 ? ", ..)" : ")") << "\n";
    }
    std::cout << "Ops of which not every test passes:\n ";
    for (const auto& [op, count] : by_op) {
      if (count.passed < count.all)
        std::cout << ' ' << op << ' ' << count.passed << '/' << count.all;
    }
    const int refused_nodes = ReportFamilies(families);
    bool ok = CheckPasses(passed);
    ok &= CheckFailures(passed);
    if (verdicts["crashed"] > 0) ok = false;
    if (static_cast<int>(passed.size()) < options_.at_least) {
      std::cout << "FAIL at least " << options_.at_least << " tests must pass\n";
      ok = false;
    }
    if (options_.native && refused_nodes > 0) {
      std::cout << "FAIL " << refused_nodes << " nodes did not run on the device\n";
      ok = false;
    }
    std::cout << options_.device << ": " << passed.size() << " of " << tests_.size() << " pass";
    for (const char* verdict : {"unsupported", "wrong", "failed", "crashed"}) {
      std::cout << ", " << verdicts[verdict] << ' ' << verdict;
    }
    std::cout << "\n";
    if (!options_.json_file.empty()) WriteJson(families);
    return ok ? 0 : 1;
  }

  // The share of each family that ran on the device; returns how many nodes did not.
  int ReportFamilies(const json& families) {
    std::cout << "\nNodes by family: share on " << options_.device
              << ", ran there, ran on the CPU instead; beside them computed while planning, "
                 "shape arithmetic on the CPU, on the host\n";
    auto sum = [](const json& list) {
      int total = 0;
      for (const auto& [what, count] : list.items()) total += count.get<int>();
      return total;
    };
    int all_refused = 0;
    for (const auto& [family, share] : families.items()) {
      const int ran = share["on_device"], refused = sum(share["refused"]);
      all_refused += refused;
      char percent[16] = "-";
      if (ran + refused > 0) {
        std::snprintf(percent, sizeof(percent), "%.1f %%", 100.0 * ran / (ran + refused));
      }
      std::cout << "  " << family << "  " << percent << ", " << ran << ", " << refused << "; "
                << share["planned"] << ", " << share["shapes"] << ", " << sum(share["host"]);
      const char* before = " (";
      for (const auto& [op, count] : share["host"].items()) {
        std::cout << before << op << ' ' << count;
        before = ", ";
      }
      std::cout << (share["host"].empty() ? "\n" : ")\n");
      for (const auto& [why, count] : share["refused"].items()) {
        std::cout << "    " << count << "  " << why << "\n";
      }
    }
    return all_refused;
  }

  // A test that passed once must keep passing.
  bool CheckPasses(const std::set<std::string>& passed) {
    if (options_.passes.empty()) return true;
    std::set<std::string> listed;
    std::ifstream in(options_.passes);
    for (std::string line; std::getline(in, line);) {
      if (!line.empty() && line[0] != '#') listed.insert(line);
    }
    bool ok = true;
    std::set<std::string> known;
    for (const Test& test : tests_) known.insert(test.name);
    for (const std::string& name : listed) {
      if (passed.count(name) != 0) continue;
      if (known.count(name) == 0 && !options_.only.empty()) continue;
      std::cout << "FAIL " << name << " does not pass any more\n";
      ok = false;
    }
    std::set<std::string> fresh;
    std::set_difference(passed.begin(), passed.end(), listed.begin(), listed.end(),
                        std::inserter(fresh, fresh.end()));
    if (options_.update && ok) {
      listed.insert(fresh.begin(), fresh.end());
      std::ofstream out(options_.passes);
      out << "# ONNX's tests that pass, on every device; written by onnx_tests --update.\n";
      for (const std::string& name : listed) out << name << "\n";
    } else if (!fresh.empty()) {
      std::cout << fresh.size() << " tests pass that are not in the list (" << *fresh.begin()
                << ", ..); add them with --update\n";
    }
    return ok;
  }

  // Every test that does not pass is listed with its reason, and no other. Random ones may pass.
  bool CheckFailures(const std::set<std::string>& passed) {
    if (options_.failures.empty()) return true;
    std::map<std::string, std::string> reasons;
    std::string comments, line;
    std::ifstream in(options_.failures);
    while (std::getline(in, line)) {
      const size_t colon = line.find(": ");
      if (line.rfind("#", 0) == 0) {
        comments += line + "\n";
      } else if (colon == std::string::npos) {
        std::cout << "FAIL " << options_.failures << " has a line without a reason: " << line
                  << "\n";
        return false;
      } else {
        reasons[line.substr(0, colon)] = line.substr(colon + 2);
      }
    }
    bool ok = true;
    std::map<std::string, std::string> now;
    for (size_t i = 0; i < tests_.size(); ++i) {
      const std::string& name = tests_[i].name;
      const auto listed = reasons.find(name);
      const bool is_listed = listed != reasons.end();
      const bool random = is_listed && listed->second.rfind("random", 0) == 0;
      const bool passes = passed.count(name) != 0;
      if (is_listed && (!passes || random)) now.insert(*listed);
      if (is_listed == !passes || random) continue;
      if (!passes) now[name] = results_[i]["reason"].get<std::string>();
      if (options_.update) continue;
      std::cout << "FAIL " << name << (passes ? " passes, and " : " does not pass, and ")
                << options_.failures << (is_listed ? " lists it\n" : " has no reason for it\n");
      ok = false;
    }
    if (!options_.only.empty()) return ok;
    if (options_.update) {
      std::ofstream out(options_.failures);
      out << comments;
      for (const auto& [name, reason] : now) out << name << ": " << reason << "\n";
    } else if (now.size() < reasons.size() && ok) {
      std::cout << "FAIL " << options_.failures << " lists tests that there are not\n";
      ok = false;
    }
    return ok;
  }

  void WriteJson(const json& families) {
    json tests = json::array();
    for (size_t i = 0; i < tests_.size(); ++i) {
      json one = results_[i];
      one["name"] = tests_[i].name;
      one.erase("families");
      tests.push_back(std::move(one));
    }
    std::ofstream(options_.json_file)
        << json{{"device", options_.device}, {"families", families}, {"tests", std::move(tests)}}
               .dump(1)
        << "\n";
  }

  const Options& options_;
  const std::vector<Test>& tests_;
  char** argv_;
  std::vector<json> results_;
};

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (arg == "--device") {
      options.device = value();
      if (options.device == "opencl") options.device = "gpu";
    } else if (arg == "--only") {
      options.only = value();
    } else if (arg == "--passes") {
      options.passes = value();
    } else if (arg == "--failures") {
      options.failures = value();
    } else if (arg == "--update") {
      options.update = true;
    } else if (arg == "--at-least") {
      options.at_least = std::atoi(value());
    } else if (arg == "--native") {
      options.native = true;
    } else if (arg == "--json") {
      options.json_file = value();
    } else if (arg == "--list") {
      options.list = true;
    } else if (arg == "--child") {
      options.child_from = std::atoi(value());
    } else if (arg[0] == '-') {
      std::cerr << "unknown flag " << arg << "\n";
      return 2;
    } else {
      options.folders.push_back(arg);
    }
  }
  if (options.folders.empty()) options.folders.push_back(kDebianTests);
  const auto tests = FindTests(options);
  if (!tests.ok()) {
    std::cerr << Message(tests.status()) << "\n";
    return 2;
  }
  if (options.child_from >= 0) return BeChild(options, *tests);
  return Parent(options, *tests, argv).Run();
}

}  // namespace
}  // namespace oncilla::testing

int main(int argc, char** argv) { return oncilla::testing::Main(argc, argv); }
