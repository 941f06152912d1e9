// DeviceName: a complete or partial device name of TensorFlow:
// /job:J/replica:N/task:N/device:TYPE:ID.
//
// A name is a pattern: any component may be missing, which stands for "any". Components come in any
// order, the last of a kind wins, `*` is the same as missing. Short forms are /cpu:0 and /GPU:1;
// without the leading slash a name is local: GPU:0, gpu:0, device:GPU:0. Types are case-sensitive
// except that cpu and gpu in short and local forms mean CPU and GPU. Pure values; no device is
// looked up here.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace oncilla {

struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;
  std::optional<int> id;

  // "" and "/" are valid and empty. InvalidArgument says what was expected where.
  static Result<DeviceName> Parse(std::string_view text);
  // The name of a device in a local session: /job:localhost/replica:0/task:0/device:GPU:0.
  static DeviceName Local(std::string type, int id);

  bool empty() const { return *this == DeviceName(); }
  bool complete() const { return job && replica && task && type && id; }
  // Always the long form; a type without an id prints as /device:GPU:*. Empty for the empty name.
  std::string text() const;
  // "GPU:0", "GPU:*" or "*:*".
  std::string short_text() const;

  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};
std::ostream& operator<<(std::ostream& out, const DeviceName& name);

// The short form of a long name, "GPU:0", for messages; a name without a type stays as it is.
std::string ShortDeviceName(std::string_view name);

// Whether `specific` has the same value for every component that `general` sets.
bool IsSpecification(const DeviceName& general, const DeviceName& specific);
// `device` is complete and `pattern` matches it.
bool IsCompleteSpecification(const DeviceName& pattern, const DeviceName& device);
// Whether no component is set to different values in both.
bool Compatible(const DeviceName& a, const DeviceName& b);

// What to do when type or id differ. Job, replica and task must be equal in any mode.
enum class MergeMode {
  kStrict,    // an error
  kSoft,      // types differ: both type and id are cleared; ids differ: the id is cleared
  kOverride,  // the other's value wins
};
// Adds the components of `other` to `target`; on an error `target` may have taken some of them.
// InvalidArgument: "Cannot merge devices with incompatible jobs: 'x' and 'y'".
Status Merge(DeviceName& target, const DeviceName& other, MergeMode mode = MergeMode::kStrict);

// A scope inside another: each component of `inner` replaces that of `outer`.
DeviceName Nest(const DeviceName& outer, const DeviceName& inner);

}  // namespace oncilla
