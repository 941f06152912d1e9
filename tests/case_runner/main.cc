// case_tests: runs case files on one device.
//
//   case_tests --device cpu|cpu:plain|opencl[:N] [--offset] [--gaps FILE] [--partial]
//              [--only TEXT] FILE...
//
// One child process runs many cases and says what it is about to do; when it dies or hangs, the
// parent blames that case and goes on with the rest in a new child. A case that the device does not
// support is a failure unless a line of the gaps file is a prefix of its key: the op, the dtype of
// its first input, and " string" for each further input of strings.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include "engine/api/backends.h"
#include "engine/base/thread_pool.h"
#include "tests/case_runner/run_case.h"

namespace oncilla::testing {
namespace {

constexpr int kCaseTimeoutMs = 60'000;

struct Options {
  std::string device = "cpu";
  bool offset = false;
  std::string gaps;
  std::string only;
  bool partial = false;
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
      return b->open(info, {.threads = threads, .plain = rest == "plain", .cache_dir = ""});
    }
  }
  std::string why;
  for (const std::string& note : notes) why += "; " + note;
  return NotFound("there is no device ", spec, why);
}

std::string GapKey(const Case& c) {
  std::string key = c.op;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const DType dtype = c.inputs[i].value.dtype();
    if (i == 0 || dtype == DType::kString) key += StrCat(" ", dtype);
  }
  return key;
}

Result<std::vector<Case>> ReadAll(const Options& options, const OpSet& ops) {
  std::vector<Case> all;
  for (const std::string& file : options.files) {
    ONCILLA_ASSIGN(auto cases, ReadCases(file, ops));
    for (Case& c : cases) {
      if (c.Where().find(options.only) != std::string::npos) all.push_back(std::move(c));
    }
  }
  return all;
}

// The child: one line "begin I" before a case and "end I VERDICT message" after it.
int RunChild(const Options& options, const OpSet& ops, const std::vector<Case>& cases) {
  ThreadPool threads;
  auto device = OpenDevice(options.device, &threads);
  auto reference = OpenDevice("cpu:plain", &threads);
  if (!device.ok() || !reference.ok()) {
    std::cout << "broken " << Message(device.ok() ? reference.status() : device.status()) << "\n";
    return 1;
  }
  for (size_t i = static_cast<size_t>(options.child_from); i < cases.size(); ++i) {
    std::cout << "begin " << i << std::endl;
    Outcome outcome = RunCase(cases[i], ops, **device, **reference, options.offset);
    std::replace(outcome.message.begin(), outcome.message.end(), '\n', '\x02');
    std::cout << "end " << i << ' ' << static_cast<int>(outcome.verdict) << ' ' << outcome.message
              << std::endl;
  }
  return 0;
}

struct Tally {
  int passed = 0, failed = 0;
  std::vector<std::string> gaps;  // unsupported and listed
};

class Parent {
 public:
  Parent(const Options& options, const std::vector<Case>& cases, char** argv)
      : options_(options), cases_(cases), argv_(argv) {
    std::ifstream file(options.gaps);
    for (std::string line; std::getline(file, line);) {
      if (!line.empty() && line[0] != '#') allowed_.push_back(line);
    }
  }

  int Run() {
    size_t from = 0;
    while (from < cases_.size()) {
      const auto next = RunFrom(from);
      if (!next) return 2;
      from = *next;
    }
    for (const std::string& gap : allowed_) {
      const bool used = std::any_of(tally_.gaps.begin(), tally_.gaps.end(),
                                    [&](const auto& key) { return key.rfind(gap, 0) == 0; });
      if (!used && options_.only.empty() && !options_.partial) {
        std::cout << "FAIL gaps: '" << gap << "' is no gap any more; take the line out\n";
        ++tally_.failed;
      }
    }
    std::cout << options_.device << (options_.offset ? " with offsets" : "") << ": "
              << tally_.passed << " passed, " << tally_.failed << " failed, " << tally_.gaps.size()
              << " in listed gaps\n";
    return tally_.failed == 0 ? 0 : 1;
  }

 private:
  // Runs a child from case `from`; returns where to go on, nothing when no device can be opened.
  std::optional<size_t> RunFrom(size_t from) {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) return std::nullopt;
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(pipe_ends[1], STDOUT_FILENO);
      close(pipe_ends[0]);
      std::vector<char*> args(argv_, argv_ + 1);
      std::string flag = "--child", index = std::to_string(from);
      args.push_back(flag.data());
      args.push_back(index.data());
      for (char** a = argv_ + 1; *a != nullptr; ++a) args.push_back(*a);
      args.push_back(nullptr);
      execv("/proc/self/exe", args.data());
      _exit(127);
    }
    close(pipe_ends[1]);
    size_t next = from;
    bool in_case = false, broken = false, timed_out = false;
    std::string buffer;
    for (;;) {
      pollfd fd{pipe_ends[0], POLLIN, 0};
      if (poll(&fd, 1, kCaseTimeoutMs) == 0) {
        kill(pid, SIGKILL);
        timed_out = true;
        break;
      }
      char chunk[4096];
      const ssize_t got = read(pipe_ends[0], chunk, sizeof(chunk));
      if (got <= 0) break;
      buffer.append(chunk, static_cast<size_t>(got));
      for (size_t end; (end = buffer.find('\n')) != std::string::npos; buffer.erase(0, end + 1)) {
        const std::string line = buffer.substr(0, end);
        if (line.rfind("begin ", 0) == 0) {
          next = std::stoul(line.substr(6));
          in_case = true;
        } else if (line.rfind("end ", 0) == 0) {
          Record(line);
          in_case = false;
          ++next;
        } else if (line.rfind("broken ", 0) == 0) {
          std::cout << line.substr(7) << "\n";
          broken = true;
        } else {
          std::cout << line << "\n";
        }
      }
    }
    close(pipe_ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    if (broken) return std::nullopt;
    if (!in_case) {
      if (next < cases_.size()) {
        std::cout << "FAIL the test program ended between two cases\n";
        ++tally_.failed;
        return cases_.size();
      }
      return next;
    }
    std::cout << "FAIL " << cases_[next].Where() << ": "
              << (timed_out             ? std::string("no answer within a minute")
                  : WIFSIGNALED(status) ? StrCat("died with signal ", strsignal(WTERMSIG(status)))
                                        : StrCat("ended with code ", WEXITSTATUS(status)))
              << "\n";
    ++tally_.failed;
    return next + 1;
  }

  // line: end I VERDICT message
  void Record(const std::string& line) {
    size_t index = 0;
    int verdict = 0, used = 0;
    std::sscanf(line.c_str(), "end %zu %d%n", &index, &verdict, &used);
    std::string message = line.substr(std::min(line.size(), static_cast<size_t>(used) + 1));
    std::replace(message.begin(), message.end(), '\x02', '\n');
    const Case& c = cases_[index];
    if (static_cast<Verdict>(verdict) == Verdict::kPass) {
      ++tally_.passed;
      return;
    }
    if (static_cast<Verdict>(verdict) == Verdict::kUnsupported) {
      const std::string key = GapKey(c);
      for (const std::string& gap : allowed_) {
        if (key.rfind(gap, 0) == 0) {
          tally_.gaps.push_back(key);
          return;
        }
      }
    }
    std::cout << "FAIL " << c.Where() << ": " << message << "\n";
    ++tally_.failed;
  }

  const Options& options_;
  const std::vector<Case>& cases_;
  char** argv_;
  std::vector<std::string> allowed_;
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
      options.gaps = value();
    } else if (arg == "--only") {
      options.only = value();
    } else if (arg == "--child") {
      options.child_from = std::atoi(value());
    } else if (arg[0] == '-') {
      std::cerr << "unknown flag " << arg << "\n";
      return 2;
    } else {
      options.files.push_back(arg);
    }
  }
  const auto ops = OpSet::Builtin();
  auto cases = ReadAll(options, *ops);
  if (!cases.ok()) {
    std::cerr << Message(cases.status()) << "\n";
    return 2;
  }
  if (options.child_from >= 0) return RunChild(options, *ops, *cases);
  return Parent(options, *cases, argv).Run();
}

}  // namespace
}  // namespace oncilla::testing

int main(int argc, char** argv) { return oncilla::testing::Main(argc, argv); }
