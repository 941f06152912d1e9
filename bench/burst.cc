// One model, kept loaded, run in bursts when told to: Oncilla's side of bench/peers, through the
// public C++ face, as an application would.
//
//   burst MODEL DEVICE THREADS [--config TEXT] NAME=DIMxDIM..[:int32|:int64]=FILE..
//
// FILE holds raw float32, or integers. Answers each line of standard input with one line of JSON:
//   burst SECONDS   times of the runs that fit, in ms
//   outputs FILE    writes the outputs' bytes one after the other, and answers with their shapes
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

oncilla_dtype TypeOf(const std::string& name) {
  if (name == "int32") return ONCILLA_INT32;
  return name == "int64" ? ONCILLA_INT64 : ONCILLA_FLOAT32;
}

const char* NameOf(oncilla_dtype type) {
  switch (type) {
    case ONCILLA_FLOAT32:
      return "float32";
    case ONCILLA_FLOAT64:
      return "float64";
    case ONCILLA_INT32:
      return "int32";
    case ONCILLA_INT64:
      return "int64";
    case ONCILLA_INT8:
      return "int8";
    case ONCILLA_UINT8:
      return "uint8";
    default:
      return "other";
  }
}

bool ReadInput(const std::string& text, oncilla::Model::Inputs& inputs) {
  const size_t first = text.find('='), second = text.find('=', first + 1);
  if (first == std::string::npos || second == std::string::npos) return false;
  std::vector<int64_t> dims;
  std::string shape = text.substr(first + 1, second - first - 1), type = "float32";
  if (const size_t colon = shape.find(':'); colon != std::string::npos) {
    type = shape.substr(colon + 1);
    shape.resize(colon);
  }
  std::istringstream sizes(shape);
  for (std::string d; std::getline(sizes, d, 'x');) dims.push_back(std::atoll(d.c_str()));
  std::ifstream file(text.substr(second + 1), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  auto tensor = oncilla::Tensor::Copy(TypeOf(type), dims, bytes.data(), bytes.size());
  if (!tensor.ok()) return false;
  inputs.emplace_back(text.substr(0, first), *tensor);
  return true;
}

// The bytes of all outputs, and as JSON what they are: [["float32", [1, 1000]], ..].
std::string WriteOutputs(const oncilla::RunResult& result, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  std::string text = "[";
  for (size_t i = 0; i < result.size(); ++i) {
    const auto tensor = result[i];
    file.write(static_cast<const char*>(tensor.raw()),
               static_cast<std::streamsize>(tensor.bytes()));
    std::string dims;
    for (const int64_t dim : tensor.dims()) {
      dims += (dims.empty() ? "" : ", ") + std::to_string(dim);
    }
    text +=
        std::string(i == 0 ? "" : ", ") + "[\"" + NameOf(tensor.dtype()) + "\", [" + dims + "]]";
  }
  return text + "]";
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
                 "usage: burst MODEL DEVICE THREADS [--config TEXT] "
                 "NAME=DIMxDIM..[:int32|:int64]=FILE..\n");
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
      std::fprintf(stderr, "burst: '%s' is no NAME=DIMxDIM=FILE of as many numbers\n", argv[i]);
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
    } else if (command == "outputs") {
      std::string path;
      words >> path;
      std::printf("%s\n", WriteOutputs(*result, path).c_str());
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
