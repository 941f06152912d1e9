// A parser that consumes one component after the other, and fails when no component fits.
#include "engine/placement/device_name.h"

#include <sstream>

namespace oncilla {
namespace {

// ASCII only, whatever the locale.
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Parser {
 public:
  explicit Parser(std::string_view text) : whole_(text), rest_(text) {}

  Result<DeviceName> Parse() {
    DeviceName name;
    if (rest_ == "/") return name;
    while (!rest_.empty()) {
      if (Take("/job:")) {
        ONCILLA_TRY(Word(name.job, "a job name"));
      } else if (Take("/replica:")) {
        ONCILLA_TRY(Number(name.replica));
      } else if (Take("/task:")) {
        ONCILLA_TRY(Number(name.task));
      } else if (Take("/device:")) {
        ONCILLA_TRY(Word(name.type, "a device type"));
        // TensorFlow's Python also accepts lower case here, as in "/device:gpu:0".
        if (name.type == "cpu") name.type = "CPU";
        if (name.type == "gpu") name.type = "GPU";
        ONCILLA_TRY(OptionalId(name));
      } else if (Take("/cpu") || Take("/CPU")) {
        name.type = "CPU";
        ONCILLA_TRY(OptionalId(name));
      } else if (Take("/gpu") || Take("/GPU")) {
        name.type = "GPU";
        ONCILLA_TRY(OptionalId(name));
      } else {
        return Expected("/job:, /replica:, /task:, /device:, /cpu or /gpu");
      }
      // A component must end where the next begins: "/task:1x" is not task 1.
      if (!rest_.empty() && rest_[0] != '/') return Expected("'/' or the end");
    }
    return name;
  }

  // A local name: TYPE:ID, with any type.
  Result<DeviceName> ParseLocal() {
    DeviceName name;
    ONCILLA_TRY(Word(name.type, "a device type"));
    if (rest_.empty() || rest_[0] != ':') return Expected("':' and a device number");
    ONCILLA_TRY(OptionalId(name));
    if (!rest_.empty()) return Expected("the end");
    return name;
  }

 private:
  bool Take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }

  Status Expected(std::string_view what) const {
    return InvalidArgument(
        "device name '", whole_, "': expected ", what,
        rest_.empty() ? std::string(" at the end") : StrCat(" at '", rest_, "'"));
  }

  Status Word(std::optional<std::string>& word, std::string_view what) {
    if (Take("*")) {
      word.reset();
      return Status();
    }
    size_t length = 0;
    while (length < rest_.size() &&
           (IsLetter(rest_[length]) || IsDigit(rest_[length]) || rest_[length] == '_')) {
      ++length;
    }
    if (length == 0 || !IsLetter(rest_[0])) return Expected(what);
    word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return Status();
  }

  Status Number(std::optional<int>& number) {
    if (Take("*")) {
      number.reset();
      return Status();
    }
    if (rest_.empty() || !IsDigit(rest_[0])) return Expected("a number or '*'");
    int64_t value = 0;
    size_t length = 0;
    for (; length < rest_.size() && IsDigit(rest_[length]); ++length) {
      value = value * 10 + (rest_[length] - '0');
      if (value > INT32_MAX) return Expected("a number below 2^31");
    }
    number = static_cast<int>(value);
    rest_.remove_prefix(length);
    return Status();
  }

  Status OptionalId(DeviceName& name) {
    name.id.reset();
    return Take(":") ? Number(name.id) : Status();
  }

  std::string_view whole_, rest_;
};

}  // namespace

Result<DeviceName> DeviceName::Parse(std::string_view text) {
  if (text.empty() || text[0] == '/') return Parser(text).Parse();
  // A full name without its leading slash is accepted too, as in TensorFlow's Python.
  const std::string slashed = StrCat("/", text);
  if (Result<DeviceName> full = Parser(slashed).Parse(); full.ok()) return full;
  return Parser(text).ParseLocal();
}

DeviceName DeviceName::Local(std::string type, int id) {
  return DeviceName{.job = "localhost", .replica = 0, .task = 0, .type = std::move(type), .id = id};
}

std::string DeviceName::text() const {
  std::ostringstream out;
  if (job) out << "/job:" << *job;
  if (replica) out << "/replica:" << *replica;
  if (task) out << "/task:" << *task;
  if (type || id) out << "/device:" << short_text();
  return std::move(out).str();
}

std::string DeviceName::short_text() const {
  return StrCat(type.value_or("*"), ":", id ? std::to_string(*id) : "*");
}

std::ostream& operator<<(std::ostream& out, const DeviceName& name) { return out << name.text(); }

std::string ShortDeviceName(std::string_view name) {
  constexpr std::string_view kMark = "device:";
  const size_t at = name.rfind(kMark);
  return std::string(at == name.npos ? name : name.substr(at + kMark.size()));
}

bool IsSpecification(const DeviceName& general, const DeviceName& specific) {
  auto within = [](const auto& g, const auto& s) { return !g || g == s; };
  return within(general.job, specific.job) && within(general.replica, specific.replica) &&
         within(general.task, specific.task) && within(general.type, specific.type) &&
         within(general.id, specific.id);
}

bool IsCompleteSpecification(const DeviceName& pattern, const DeviceName& device) {
  return device.complete() && IsSpecification(pattern, device);
}

bool Compatible(const DeviceName& a, const DeviceName& b) {
  auto agree = [](const auto& x, const auto& y) { return !x || !y || x == y; };
  return agree(a.job, b.job) && agree(a.replica, b.replica) && agree(a.task, b.task) &&
         agree(a.type, b.type) && agree(a.id, b.id);
}

Status Merge(DeviceName& target, const DeviceName& other, MergeMode mode) {
  auto clash = [](const auto& x, const auto& y) { return x && y && *x != *y; };
  auto refuse = [&](std::string_view what) {
    return InvalidArgument("Cannot merge devices with incompatible ", what, ": '", target,
                           "' and '", other, "'");
  };
  auto take = [](auto& to, const auto& from) {
    if (from) to = from;
  };
  if (clash(target.job, other.job)) return refuse("jobs");
  take(target.job, other.job);
  if (clash(target.replica, other.replica)) return refuse("replicas");
  take(target.replica, other.replica);
  if (clash(target.task, other.task)) return refuse("tasks");
  take(target.task, other.task);
  if (clash(target.type, other.type)) {
    if (mode == MergeMode::kStrict) return refuse("types");
    if (mode == MergeMode::kSoft) {
      target.type.reset();
      target.id.reset();
      return Status();
    }
  }
  take(target.type, other.type);
  if (clash(target.id, other.id)) {
    if (mode == MergeMode::kStrict) return refuse("ids");
    if (mode == MergeMode::kSoft) {
      target.id.reset();
      return Status();
    }
  }
  take(target.id, other.id);
  return Status();
}

DeviceName Nest(const DeviceName& outer, const DeviceName& inner) {
  DeviceName name = outer;
  if (inner.job) name.job = inner.job;
  if (inner.replica) name.replica = inner.replica;
  if (inner.task) name.task = inner.task;
  if (inner.type) name.type = inner.type;
  if (inner.id) name.id = inner.id;
  return name;
}

}  // namespace oncilla
