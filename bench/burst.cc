// One model, kept loaded, run in bursts when told to: Oncilla's side of bench/peers, through the
// public C++ face, as an application would.
//
//   burst MODEL DEVICE THREADS [--config TEXT] NAME=DIMxDIM..=FILE..     (FILE: raw float32)
//
// Answers each line of standard input with one line of JSON:
//   burst SECONDS   times of the runs that fit, in ms
//   output FILE     writes the first output's bytes
//   close           the resident megabytes before loading, loaded, and after closing
//   cycles COUNT    the same after each of so many sessions that load, run and close
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "engine/api/oncilla.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Memory of this process that is its own: pages of mapped files do not count.
double ResidentMegabytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0, shared = 0;
  file >> size >> resident >> shared;
  return (resident - shared) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

bool ReadInput(const std::string& text, oncilla::Model::Inputs& inputs) {
  const size_t first = text.find('='), second = text.find('=', first + 1);
  if (first == std::string::npos || second == std::string::npos) return false;
  std::vector<int64_t> dims;
  std::istringstream sizes(text.substr(first + 1, second - first - 1));
  for (std::string d; std::getline(sizes, d, 'x');) dims.push_back(std::atoll(d.c_str()));
  std::ifstream file(text.substr(second + 1), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  auto tensor = oncilla::Tensor::Copy(ONCILLA_FLOAT32, dims, bytes.data(), bytes.size());
  if (!tensor.ok()) return false;
  inputs.emplace_back(text.substr(0, first), *tensor);
  return true;
}

oncilla::Status Cycle(const char* path, const oncilla::SessionOptions& options,
                      const oncilla::Model::Inputs& inputs) {
  auto session = oncilla::Session::Create(options);
  if (!session.ok()) return session.status();
  auto model = session->Load(path);
  if (!model.ok()) return model.status();
  if (auto result = model->Run(inputs); !result.ok()) return result.status();
  return session->Close().status();
}

int Fail(const oncilla::Status& status) {
  std::fprintf(stderr, "burst: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: burst MODEL DEVICE THREADS [--config TEXT] NAME=DIMxDIM..=FILE..\n");
    return 2;
  }
  oncilla::Model::Inputs inputs;
  oncilla::SessionOptions options;
  for (int i = 4; i < argc; ++i) {
    if (std::string(argv[i]) == "--config" && i + 1 < argc) {
      options.config = argv[++i];
      continue;
    }
    if (!ReadInput(argv[i], inputs)) {
      std::fprintf(stderr, "burst: '%s' is no NAME=DIMxDIM=FILE of as many floats\n", argv[i]);
      return 2;
    }
  }
  const double before = ResidentMegabytes();
  const auto start = Clock::now();
  options.device = argv[2];
  options.threads = std::atoi(argv[3]);
  options.opencl_cpu_devices = true;
  auto session = oncilla::Session::Create(options);
  if (!session.ok()) return Fail(session.status());
  auto model = session->Load(argv[1]);
  if (!model.ok()) return Fail(model.status());
  const double load_ms = Since(start);
  auto result = model->Run(inputs);
  if (!result.ok()) return Fail(result.status());
  const double first_ms = Since(start), loaded = ResidentMegabytes();
  std::printf("{\"load_ms\": %.3f, \"ready_ms\": %.3f}\n", load_ms, first_ms);
  std::fflush(stdout);

  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "burst") {
      double seconds = 0;
      words >> seconds;
      const auto begin = Clock::now();
      std::string times;
      do {
        const auto run = Clock::now();
        auto again = model->Run(inputs);
        if (!again.ok()) return Fail(again.status());
        times += (times.empty() ? "" : ", ") + std::to_string(Since(run));
      } while (Since(begin) < seconds * 1000);
      std::printf("[%s]\n", times.c_str());
    } else if (command == "output") {
      std::string path;
      words >> path;
      const auto tensor = (*result)[0];
      std::ofstream(path, std::ios::binary)
          .write(static_cast<const char*>(tensor.raw()),
                 static_cast<std::streamsize>(tensor.bytes()));
      std::printf("true\n");
    } else if (command == "close") {
      result = oncilla::Status();
      if (auto closed = session->Close(); !closed.ok()) return Fail(closed.status());
      std::printf("[%.1f, %.1f, %.1f]\n", before, loaded, ResidentMegabytes());
    }
    if (command == "cycles") {
      int count = 0;
      words >> count;
      std::string megabytes;
      for (int i = 0; i < count; ++i) {
        if (const auto status = Cycle(argv[1], options, inputs); !status.ok()) return Fail(status);
        megabytes += (i == 0 ? "" : ", ") + std::to_string(ResidentMegabytes());
      }
      std::printf("[%s]\n", megabytes.c_str());
    }
    std::fflush(stdout);
  }
  return 0;
}
