// case_tests: runs case files on one device.
//
//   case_tests --device cpu|cpu:plain|opencl[:N] [--offset] [--gaps FILE].. [--partial]
//              [--simd LEVEL] [--timeout SECONDS] [--only TEXT] [--small N]
//              [--mutate SEED [--each N]] FILE...
//
// One child process runs many cases and announces each; when it dies or hangs, the parent blames
// that case and runs the rest in a new child. A case that the device does not support is a failure
// unless a line of the gaps file is a prefix of its key: the op, " antialias" if that is requested,
// the dtype of its first input, and " string" for each further input of strings ("* f64": any op).
// --partial: the given files need not use all lines of the gaps file. --small N: only cases whose
// inputs have at most N elements together. A line "wrong TEXT" names cases (a part of FILE:LINE OP)
// whose failure is a known fault of the driver, "skip KEY" cases that must not even be tried.
// --simd limits the CPU to the instructions of LEVEL (backends/cpu/instruction_set.h). --mutate: N
// (8) mutants of every case instead of the cases, see mutate.h; the same ones for the same seed.
// --fault abort|exit|hang:TEXT misbehaves in the cases of TEXT, to test the runner itself.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <thread>

#include "backends/cpu/instruction_set.h"
#include "engine/base/thread_pool.h"
#include "engine/device/checked_device.h"
#include "engine/device/linked_backends.h"
#include "tests/case_runner/child.h"
#include "tests/case_runner/mutate.h"
#include "tests/case_runner/run_case.h"

namespace oncilla::testing {
namespace {

struct Options {
  std::string device = "cpu";
  bool offset = false;
  std::vector<std::string> gaps;
  std::vector<std::string> skipped;  // "skip" lines of the gaps files
  std::string only;
  bool partial = false;
  std::string simd, fault;
  int timeout_s = 60;  // of one case
  int64_t small = 0;   // 0: all sizes
  std::optional<uint64_t> mutate;
  int each = 8;
  int child_from = -1;
  std::vector<std::string> files;
};

Result<std::unique_ptr<Device>> OpenDevice(const std::string& spec, ThreadPool* threads) {
  const std::string backend = spec.substr(0, spec.find(':'));
  const std::string rest = spec.size() > backend.size() ? spec.substr(backend.size() + 1) : "";
  const int ordinal = backend == "cpu" || rest.empty() ? 0 : std::atoi(rest.c_str());
  std::vector<std::string> notes;
  for (const Backend* b : LinkedBackends()) {
    if (b->name != backend) continue;
    for (const DeviceInfo& info : b->discover({.opencl_cpu_devices = true}, notes)) {
      if (info.ordinal != ordinal) continue;
      ONCILLA_ASSIGN(
          auto device,
          b->open(info, {.threads = threads, .plain = rest == "plain", .cache_dir = ""}));
      return std::make_unique<CheckedDevice>(std::move(device));
    }
  }
  std::string why;
  for (const std::string& note : notes) why += "; " + note;
  return NotFound("there is no device ", spec, why);
}

std::string GapKey(const Case& c) {
  std::string key = c.op;
  if (ToString(c.attrs).find("antialias=true") != std::string::npos) key += " antialias";
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const DType dtype = c.inputs[i].value.dtype();
    if (i == 0 || dtype == DType::kString || IsSmallInteger(dtype) || IsSmallFloat(dtype))
      key += StrCat(" ", dtype);
  }
  return key;
}

// Whether a line of a gaps file covers this key.
bool IsListed(std::string_view key, std::string_view gap) {
  if (gap.substr(0, 2) != "* ") return key.substr(0, gap.size()) == gap;
  return key.substr(key.find(' ') + 1).substr(0, gap.size() - 2) == gap.substr(2);
}

Result<std::vector<Case>> ReadAll(const Options& options, const OpSet& ops) {
  std::vector<Case> all;
  for (const std::string& file : options.files) {
    ONCILLA_ASSIGN(auto cases, ReadCases(file, ops));
    for (Case& c : cases) {
      int64_t elements = 0;
      for (const CaseInput& in : c.inputs) elements += in.absent ? 0 : in.value.elements();
      if (options.small > 0 && elements > options.small) continue;
      const std::string key = GapKey(c);
      if (std::any_of(options.skipped.begin(), options.skipped.end(),
                      [&](const auto& skip) { return IsListed(key, skip); })) {
        continue;
      }
      if (c.Where().find(options.only) != std::string::npos) all.push_back(std::move(c));
    }
  }
  if (options.mutate) return MutantsOf(all, ops, *options.mutate, options.each);
  return all;
}

// Misbehaves as --fault requests if the case's location contains its text.
void Misbehave(const std::string& fault, const std::string& where) {
  const size_t colon = fault.find(':');
  if (colon == std::string::npos || where.find(fault.substr(colon + 1)) == std::string::npos) {
    return;
  }
  const std::string kind = fault.substr(0, colon);
  if (kind == "abort") std::abort();
  if (kind == "exit") _exit(7);
  while (kind == "hang") std::this_thread::sleep_for(std::chrono::seconds(1));
}

// The child: one line "begin I" before a case and "end I VERDICT message" after it.
int BeChild(const Options& options, const OpSet& ops, const std::vector<Case>& cases) {
  ThreadPool threads;
  auto device = OpenDevice(options.device, &threads);
  auto reference = OpenDevice("cpu:plain", &threads);
  if (!device.ok() || !reference.ok()) {
    std::cout << "broken " << Message(device.ok() ? reference.status() : device.status()) << "\n";
    return 1;
  }
  Misbehave(options.fault, "<start>");
  for (size_t i = static_cast<size_t>(options.child_from); i < cases.size(); ++i) {
    std::cout << "begin " << i << std::endl;
    Misbehave(options.fault, cases[i].Where());
    Outcome outcome = RunCase(cases[i], ops, **device, **reference, options.offset);
    std::replace(outcome.message.begin(), outcome.message.end(), '\n', '\x02');
    std::cout << "end " << i << ' ' << static_cast<int>(outcome.verdict) << ' ' << outcome.message
              << std::endl;
  }
  Misbehave(options.fault, "<end>");
  return 0;
}

struct Tally {
  int passed = 0, failed = 0;
  std::vector<std::string> gaps;   // unsupported and listed
  std::vector<std::string> wrong;  // failed and listed
};

class Parent {
 public:
  Parent(const Options& options, const std::vector<Case>& cases, char** argv)
      : options_(options), cases_(cases), argv_(argv) {
    for (const std::string& name : options.gaps) {
      std::ifstream file(name);
      for (std::string line; std::getline(file, line);) {
        if (line.rfind("wrong ", 0) == 0) {
          known_.push_back(line.substr(6));
        } else if (line.rfind("skip ", 0) == 0) {
          continue;
        } else if (!line.empty() && line[0] != '#') {
          allowed_.push_back(line);
        }
      }
    }
  }

  int Run() {
    size_t from = 0;
    while (from < cases_.size()) {
      const auto next = RunFrom(from);
      if (!next) return 2;
      from = *next;
    }
    const bool all = options_.only.empty() && !options_.partial && !options_.mutate;
    for (const std::string& gap : allowed_) {
      const bool used = std::any_of(tally_.gaps.begin(), tally_.gaps.end(),
                                    [&](const auto& key) { return IsListed(key, gap); });
      if (all && !used) Fail("gaps", StrCat("'", gap, "' is no gap any more; take the line out"));
    }
    for (const std::string& known : known_) {
      if (all && std::count(tally_.wrong.begin(), tally_.wrong.end(), known) == 0) {
        Fail("gaps", StrCat("'wrong ", known, "' works now; take the line out"));
      }
    }
    std::cout << options_.device << (options_.offset ? " with offsets" : "")
              << (options_.simd.empty() ? "" : " with " + options_.simd) << ": " << tally_.passed
              << " passed, " << tally_.failed << " failed, " << tally_.gaps.size()
              << " in listed gaps";
    if (!tally_.wrong.empty()) std::cout << ", " << tally_.wrong.size() << " listed as wrong";
    std::cout << std::endl;
    return tally_.failed == 0 ? 0 : 1;
  }

 private:
  void Fail(const std::string& where, const std::string& why) {
    std::cout << "FAIL " << where << ": " << why << std::endl;
    ++tally_.failed;
  }

  // Reports a failed case, unless the gaps file lists it as wrong.
  void FailCase(const Case& c, const std::string& why) {
    const std::string where = c.Where();
    for (const std::string& known : known_) {
      if (where.find(known) == std::string::npos) continue;
      tally_.wrong.push_back(known);
      return;
    }
    Fail(where, why);
  }

  // Runs a child from case `from`; returns the next case, nothing when no device can be opened.
  std::optional<size_t> RunFrom(size_t from) {
    const ChildEnd end =
        RunChild(argv_, from, options_.timeout_s,
                 [this](size_t index, const std::string& line) { Record(cases_[index], line); });
    if (!end.broken.empty()) {
      std::cout << end.broken << "\n";
      return std::nullopt;
    }
    if (end.how.empty()) return end.next;
    if (end.in_test) {
      const Case& c = cases_[end.next];
      FailCase(c, c.mutant ? StrCat(end.how, "\n", ToText(c)) : end.how);
      return end.next + 1;
    }
    if (end.next == from) {
      Fail("the test program", StrCat(end.how, " before its first case"));
      return cases_.size();
    }
    Fail(StrCat("the test program after ", cases_[end.next - 1].Where()), end.how);
    return end.next;
  }

  // line: VERDICT message
  void Record(const Case& c, const std::string& line) {
    int verdict = 0, used = 0;
    std::sscanf(line.c_str(), "%d%n", &verdict, &used);
    std::string message = line.substr(std::min(line.size(), static_cast<size_t>(used) + 1));
    std::replace(message.begin(), message.end(), '\x02', '\n');
    if (static_cast<Verdict>(verdict) == Verdict::kPass) {
      ++tally_.passed;
      return;
    }
    if (static_cast<Verdict>(verdict) == Verdict::kUnsupported) {
      const std::string key = GapKey(c);
      for (const std::string& gap : allowed_) {
        if (IsListed(key, gap)) {
          tally_.gaps.push_back(key);
          return;
        }
      }
    }
    FailCase(c, message);
  }

  const Options& options_;
  const std::vector<Case>& cases_;
  char** argv_;
  std::vector<std::string> allowed_;  // prefixes of keys that may be unsupported
  std::vector<std::string> known_;    // parts of Where() of cases that may fail
  Tally tally_;
};

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (arg == "--device") {
      options.device = value();
    } else if (arg == "--offset") {
      options.offset = true;
    } else if (arg == "--partial") {
      options.partial = true;
    } else if (arg == "--gaps") {
      options.gaps.push_back(value());
    } else if (arg == "--only") {
      options.only = value();
    } else if (arg == "--simd") {
      options.simd = value();
    } else if (arg == "--timeout") {
      options.timeout_s = std::max(1, std::atoi(value()));
    } else if (arg == "--small") {
      options.small = std::atoll(value());
    } else if (arg == "--mutate") {
      options.mutate = std::strtoull(value(), nullptr, 10);
    } else if (arg == "--each") {
      options.each = std::max(1, std::atoi(value()));
    } else if (arg == "--fault") {
      options.fault = value();
    } else if (arg == "--child") {
      options.child_from = std::atoi(value());
    } else if (arg[0] == '-') {
      std::cerr << "unknown flag " << arg << "\n";
      return 2;
    } else {
      options.files.push_back(arg);
    }
  }
  if (!options.simd.empty()) {
    if (Status status = cpu::LimitInstructions(options.simd); !status.ok()) {
      std::cerr << Message(status) << "\n";
      return 2;
    }
  }
  for (const std::string& name : options.gaps) {
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("skip ", 0) == 0) options.skipped.push_back(line.substr(5));
    }
  }
  const auto ops = OpSet::Builtin();
  auto cases = ReadAll(options, *ops);
  if (!cases.ok()) {
    std::cerr << Message(cases.status()) << "\n";
    return 2;
  }
  if (options.child_from >= 0) return BeChild(options, *ops, *cases);
  return Parent(options, *cases, argv).Run();
}

}  // namespace
}  // namespace oncilla::testing

int main(int argc, char** argv) { return oncilla::testing::Main(argc, argv); }
