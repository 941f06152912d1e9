// What the examples print with.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <oncilla/oncilla.hpp>
#include <string>

namespace show {

// "[5 7 9]"
inline std::string Numbers(const oncilla::Tensor& tensor) {
  std::string text = "[";
  const float* numbers = tensor.data<float>();
  for (size_t i = 0; numbers != nullptr && i < tensor.size(); ++i) {
    char number[32];
    std::snprintf(number, sizeof(number), "%s%g", i ? " " : "", static_cast<double>(numbers[i]));
    text += number;
  }
  return text + "]";
}

// The name behind the last slash: "GPU:0".
inline std::string Short(const std::string& device) {
  const size_t at = device.rfind("device:");
  return at == std::string::npos ? device : device.substr(at + 7);
}

// Ends the program when something that the example is about is not so.
inline void Expect(bool holds, const std::string& what) {
  std::printf("%s %s\n", holds ? "ok  " : "FAIL", what.c_str());
  std::fflush(stdout);
  if (!holds) std::exit(1);
}

// The usable GPUs of a machine.
inline std::vector<oncilla::DeviceInfo> Gpus(const oncilla::Runtime& runtime) {
  std::vector<oncilla::DeviceInfo> gpus;
  for (const oncilla::DeviceInfo& device : runtime.Devices()) {
    if (device.name.find("GPU") != std::string::npos) gpus.push_back(device);
  }
  return gpus;
}

}  // namespace show
