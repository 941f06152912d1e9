// Reads a table, validating everything in it; prints and merges tables, and selects the rows of a
// device.
#include "backends/opencl/tuning/tuning_file.h"

#include <algorithm>
#include <cmath>

#include "backends/opencl/runtime/discovery.h"
#include "backends/opencl/runtime/disk_cache.h"
#include "engine/base/file.h"
#include "engine/base/json_writer.h"
#include "engine/base/text_tree.h"

namespace oncilla::opencl {
namespace {

constexpr int64_t kVersion = 1;
constexpr uint64_t kMostBytes = uint64_t{16} << 20;
constexpr size_t kMostName = 512, kMostLayers = 100'000;

using Kind = TextScalar::Kind;

Status Refuse(const TextTree& at, std::string_view what) { return RefuseText(at.at, what); }

// A name that is shown to users must be text without control characters.
bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMostName && std::ranges::all_of(text, [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != 0x7f;
  });
}

const TextTree* Find(const TextTree& message, std::string_view name) {
  for (const TextMember& member : message.members) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

Result<std::string> NameIn(const TextTree& message, std::string_view name) {
  const TextTree* found = Find(message, name);
  if (found == nullptr) return Refuse(message, StrCat("'", name, "' is missing"));
  if (found->kind != TextTree::Kind::kScalar || found->scalar.kind != Kind::kString ||
      !IsName(found->scalar.text)) {
    return Refuse(*found, StrCat("'", name, "' must be a text of 1 to ", kMostName, " bytes"));
  }
  return found->scalar.text;
}

Result<int64_t> WholeIn(const TextTree& message, std::string_view name) {
  const TextTree* found = Find(message, name);
  if (found == nullptr) return Refuse(message, StrCat("'", name, "' is missing"));
  const auto number = found->kind == TextTree::Kind::kScalar && found->scalar.kind == Kind::kNumber
                          ? TextToInt(found->scalar.text)
                          : std::nullopt;
  if (!number.has_value() || *number < 0) {
    return Refuse(*found, StrCat("'", name, "' must be a whole number"));
  }
  return *number;
}

// A time in microseconds; 0 where it is missing.
Result<double> TimeIn(const TextTree& message, std::string_view name) {
  const TextTree* found = Find(message, name);
  if (found == nullptr) return 0.0;
  const auto number = found->kind == TextTree::Kind::kScalar && found->scalar.kind == Kind::kNumber
                          ? TextToDouble(found->scalar.text)
                          : std::nullopt;
  if (!number.has_value() || !std::isfinite(*number) || *number < 0) {
    return Refuse(*found, StrCat("'", name, "' must be a time"));
  }
  return *number;
}

Result<TunedLayer> ParseLayer(const TextTree& tree) {
  if (tree.kind != TextTree::Kind::kMessage) return Refuse(tree, "is not an object");
  TunedLayer layer;
  ONCILLA_ASSIGN(layer.choice, NameIn(tree, "choice"));
  ONCILLA_ASSIGN(layer.us, TimeIn(tree, "us"));
  ONCILLA_ASSIGN(layer.generic_us, TimeIn(tree, "generic_us"));
  return layer;
}

Result<TunedDevice> ParseDevice(const TextTree& tree, std::vector<std::string>& notes) {
  if (tree.kind != TextTree::Kind::kMessage) return Refuse(tree, "a device is not an object");
  TunedDevice device;
  ONCILLA_ASSIGN(device.of.platform, NameIn(tree, "platform"));
  ONCILLA_ASSIGN(device.of.device, NameIn(tree, "device"));
  ONCILLA_ASSIGN(device.of.shape, NameIn(tree, "shape"));
  ONCILLA_ASSIGN(device.of.compute_units, WholeIn(tree, "compute_units"));
  ONCILLA_ASSIGN(device.driver, NameIn(tree, "driver"));
  const TextTree* layers = Find(tree, "layers");
  if (layers == nullptr) return Refuse(tree, "'layers' is missing");
  if (layers->kind != TextTree::Kind::kMessage) return Refuse(*layers, "'layers' is not an object");
  for (const TextMember& member : layers->members) {
    if (device.layers.size() >= kMostLayers) {
      return Refuse(member.value, StrCat("a device has more than ", kMostLayers, " layers"));
    }
    const auto layer = IsName(member.name)
                           ? ParseLayer(member.value)
                           : Result<TunedLayer>(RefuseText(member.at, "a layer without a name"));
    if (layer.ok()) {
      device.layers.insert_or_assign(member.name, *layer);
    } else {
      notes.push_back(StrCat("layer ",
                             QuotedText(std::string_view(member.name).substr(0, 80), true),
                             " is ignored: ", Message(layer.status())));
    }
  }
  return device;
}

TunedDevice& RowOf(const DeviceClass& of, const std::string& driver, TuningFile& file) {
  for (TunedDevice& device : file.devices) {
    if (device.of == of && device.driver == driver) return device;
  }
  file.devices.push_back({of, driver, {}});
  return file.devices.back();
}

// Rounded to the resolution of a clock.
double Tenths(double us) { return std::round(us * 10) / 10; }

}  // namespace

DeviceClass ClassOf(const DeviceFacts& facts, const Capabilities& caps) {
  return {facts.platform, facts.name, std::string(Name(caps.shape)), caps.compute_units};
}

Result<TuningFile> ParseTuning(std::string_view json, std::vector<std::string>& notes) {
  ONCILLA_ASSIGN(const TextTree tree, ReadTextTree(json, TextForm::kJson));
  if (Find(tree, "oncilla_tuning") == nullptr) {
    return InvalidArgument("this is not a table of tuned choices: it has no 'oncilla_tuning'");
  }
  ONCILLA_ASSIGN(const int64_t version, WholeIn(tree, "oncilla_tuning"));
  if (version != kVersion) {
    return InvalidArgument("the table has version ", version, "; this library reads version ",
                           kVersion);
  }
  TuningFile file, one;
  for (const TextMember& member : tree.members) {
    if (member.name != "devices") continue;  // the parser gives a list as members of one name
    ONCILLA_ASSIGN(TunedDevice device, ParseDevice(member.value, notes));
    one.devices = {std::move(device)};
    Merge(one, file);
  }
  return file;
}

std::string PrintTuning(const TuningFile& file) {
  // Formatted by hand, one line per layer, so that two tables can be compared line by line.
  const auto text = [](std::string_view name) { return QuotedText(name, true); };
  std::string out = StrCat("{\n  \"oncilla_tuning\": ", kVersion, ",\n  \"devices\": [");
  for (size_t i = 0; i < file.devices.size(); ++i) {
    const TunedDevice& d = file.devices[i];
    out += StrCat(i == 0 ? "" : ",", "\n    {\"platform\": ", text(d.of.platform),
                  ", \"device\": ", text(d.of.device), ", \"shape\": ", text(d.of.shape),
                  ", \"compute_units\": ", d.of.compute_units, ", \"driver\": ", text(d.driver),
                  ",\n     \"layers\": {");
    bool first = true;
    for (const auto& [name, layer] : d.layers) {
      JsonWriter times;
      times.Open('{').Field("choice", layer.choice).Field("us", Tenths(layer.us));
      times.Field("generic_us", Tenths(layer.generic_us)).Close('}');
      out += StrCat(first ? "\n" : ",\n", "       ", text(name), ": ", times.Take());
      first = false;
    }
    out += first ? "}}" : "\n     }}";
  }
  return out + (file.devices.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

Result<TuningFile> ReadTuningFile(const std::string& path, std::vector<std::string>& notes) {
  ONCILLA_ASSIGN(const std::string text, ReadFile(path, kMostBytes));
  auto file = ParseTuning(text, notes);
  if (!file.ok()) return WithStage(oncilla::In(file.status(), path), Stage::kFile);
  return file;
}

Status WriteTuningFile(const std::string& path, const TuningFile& file) {
  ONCILLA_ASSIGN(const std::string target, WritableTarget(path));
  return WriteFile(target, PrintTuning(file));
}

void Merge(const TuningFile& from, TuningFile& into) {
  for (const TunedDevice& device : from.devices) {
    TunedDevice& row = RowOf(device.of, device.driver, into);
    for (const auto& [name, layer] : device.layers) row.layers.insert_or_assign(name, layer);
  }
}

std::shared_ptr<const TunedTable> TableFor(const TuningFile& file, const DeviceClass& of,
                                           const std::string& driver) {
  auto table = std::make_shared<TunedTable>();
  for (const bool same : {false, true}) {
    for (const TunedDevice& device : file.devices) {
      if (device.of != of || (device.driver == driver) != same) continue;
      for (const auto& [name, layer] : device.layers) {
        table->Set(name, {layer.choice, same ? std::string() : device.driver});
      }
    }
  }
  return table->choices().empty() ? nullptr : table;
}

const TuningFile& ShippedTuning() {
  static const TuningFile shipped = [] {
    std::vector<std::string> notes;
    return ParseTuning(
#include "backends/opencl/tuning/shipped.inc"
               , notes)
        .value_or(TuningFile());
  }();
  return shipped;
}

std::string DefaultTuningPath(const std::string& cache_folder) {
  return cache_folder.empty() ? std::string() : JoinPath(cache_folder, "tuning.json");
}

Result<TuningFile> FindTuning(const TuningSource& source) {
  const auto warn = [&](const std::string& text) {
    if (source.warn) source.warn(StrCat("tuning: ", text));
  };
  if (source.option == "off") return TuningFile();
  const bool chosen = !source.option.empty() && source.option != "auto";
  const std::string path = chosen ? source.option : DefaultTuningPath(source.cache_folder);
  std::vector<std::string> notes;
  auto read =
      path.empty() ? Result<TuningFile>(NotFound("no folder")) : ReadTuningFile(path, notes);
  for (const std::string& note : notes) warn(StrCat(path, ": ", note));
  if (chosen) return read;
  TuningFile file = ShippedTuning();
  if (read.ok()) {
    Merge(*read, file);
  } else if (read.status().code() != Code::kNotFound) {
    warn(StrCat(Message(read.status()), "; generic choices are used"));
  }
  return file;
}

}  // namespace oncilla::opencl
