// TuningFile: measured choices (recipes/choices.h) of devices, as a JSON file that is read, merged,
// sent to others and shipped.
//
//   {"oncilla_tuning": 1,
//    "devices": [
//      {"platform": "NVIDIA CUDA", "device": "NVIDIA GeForce RTX 3060", "shape": "gpu",
//       "compute_units": 28, "driver": "550.54",
//       "layers": {"product 196x256x1024 n4n4 f32 bias relu":
//                  {"choice": "TM=8 TN=4 ..", "us": 21.5, "generic_us": 25.0}}}]}
//
// A file cannot make a result wrong: names that a recipe does not list are ignored.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/recipes/choices.h"

namespace oncilla::opencl {

struct TunedLayer {
  std::string choice;
  double us = 0, generic_us = 0;  // that it took, and what the generic choice took then
  friend bool operator==(const TunedLayer&, const TunedLayer&) = default;
};

// Devices that choose alike: the same chip under the same platform, with kernels of one shape.
struct DeviceClass {
  std::string platform, device, shape;
  int64_t compute_units = 0;
  friend bool operator==(const DeviceClass&, const DeviceClass&) = default;
};
DeviceClass ClassOf(const DeviceFacts& facts, const Capabilities& caps);

// Measurements on a class of devices with one version of its driver.
struct TunedDevice {
  DeviceClass of;
  std::string driver;
  std::map<std::string, TunedLayer> layers;
  friend bool operator==(const TunedDevice&, const TunedDevice&) = default;
};

struct TuningFile {
  std::vector<TunedDevice> devices;
};

// InvalidArgument, with line and column, if the text is not a table of this version. A single
// invalid entry is left out, and a note says which.
Result<TuningFile> ParseTuning(std::string_view json, std::vector<std::string>& notes);
std::string PrintTuning(const TuningFile& file);
// The same from a file. NotFound if there is none.
Result<TuningFile> ReadTuningFile(const std::string& path, std::vector<std::string>& notes);
// Written atomically.
Status WriteTuningFile(const std::string& path, const TuningFile& file);

// Entries of `from` replace those of `into` for the same layer, class and driver.
void Merge(const TuningFile& from, TuningFile& into);

// The table that a device of this class uses: for its driver's version, or if there is none, for
// another version, the last in the file. Null when there is neither.
std::shared_ptr<const TunedTable> TableFor(const TuningFile& file, const DeviceClass& of,
                                           const std::string& driver);

// The library's own table.
const TuningFile& ShippedTuning();

// "tuning.json" in the folder of compiled programs; empty if there is none.
std::string DefaultTuningPath(const std::string& cache_folder);

// The table that a session uses: "auto" (or empty) is the default file, which overrides the
// library's, "off" none, and anything else a file that must exist.
struct TuningSource {
  std::string option;
  std::string cache_folder;
  std::function<void(const std::string&)> warn = nullptr;
};
Result<TuningFile> FindTuning(const TuningSource& source);

}  // namespace oncilla::opencl
