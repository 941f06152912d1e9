// Op definitions from the file, and a built-in table with one row for each op that has default
// values or several named outputs. An op that is not listed has one output argument and no
// defaults.
#include "engine/import/tf/op_defs.h"

#include <charconv>
#include <cstdlib>
#include <deque>
#include <protozero/pbf_writer.hpp>

#include "engine/import/tf/tensor.h"

namespace oncilla {
namespace {

// `outputs` lists argument names; "name*N" stands for as many tensors as attribute N states,
// "name@T" for one tensor per type in attribute T. `defaults` lists attr=kind:value; the kinds are
// b(ool), i(nt), f(loat), s(tring), t(ype), l(ist of ints, or an empty list of any type) and
// u(nknown shape).
struct Row {
  const char* op;
  const char* outputs;
  const char* defaults;
};

constexpr Row kRows[] = {
#include "engine/import/tf/op_defs.inc"
};

// Splits `text` at the separators.
std::vector<Bytes> SplitText(Bytes text, char separator) {
  std::vector<Bytes> out;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    out.push_back(text.substr(0, end));
    text.remove_prefix(end == Bytes::npos ? text.size() : end + 1);
  }
  return out;
}

int64_t TypeNumber(Bytes name) {
  for (int64_t number = 1; number < tf_type::kReference; ++number) {
    if (TfTypeName(number) == name) return number;
  }
  return 0;
}

float FloatOf(Bytes text) {
  float value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string EncodeAttr(Bytes text) {
  const char kind = text[0];
  const std::string value(text.substr(2));
  std::string out;
  protozero::pbf_writer writer(out);
  // The field numbers are those of AttrValue (attr_value.proto).
  switch (kind) {
    case 'b':
      writer.add_bool(5, value == "1");
      break;
    case 'i':
      writer.add_int64(3, std::strtoll(value.c_str(), nullptr, 10));
      break;
    case 'f':
      writer.add_float(4, FloatOf(value));
      break;
    case 's':
      writer.add_bytes(2, value);
      break;
    case 't':
      writer.add_enum(6, static_cast<int32_t>(TypeNumber(value)));
      break;
    case 'u': {
      protozero::pbf_writer shape(writer, 7);
      shape.add_bool(3, true);
      break;
    }
    case 'l': {
      // A nested writer would omit an empty list, which is a value here.
      std::string items;
      protozero::pbf_writer list(items);
      for (Bytes item : SplitText(value, ',')) {
        list.add_int64(3, std::strtoll(std::string(item).c_str(), nullptr, 10));
      }
      writer.add_message(1, items);
      break;
    }
  }
  return out;
}

struct BuiltIn {
  std::unordered_map<std::string_view, TfOpDef> ops;
  std::deque<std::string> values;  // own the bytes that defaults view
};

BuiltIn MakeBuiltIn() {
  BuiltIn table;
  for (const Row& row : kRows) {
    TfOpDef def;
    for (Bytes output : SplitText(row.outputs, ' ')) {
      const size_t mark = output.find_first_of("*@");
      TfOpDef::Output parsed;
      parsed.name = output.substr(0, mark);
      if (mark != Bytes::npos) {
        (output[mark] == '*' ? parsed.number_attr : parsed.type_list_attr) =
            output.substr(mark + 1);
      }
      def.outputs.push_back(parsed);
    }
    for (Bytes item : SplitText(row.defaults, ' ')) {
      const size_t equals = item.find('=');
      table.values.push_back(EncodeAttr(item.substr(equals + 1)));
      def.defaults.push_back({item.substr(0, equals), table.values.back()});
    }
    table.ops.emplace(row.op, std::move(def));
  }
  return table;
}

const TfOpDef* FindBuiltIn(std::string_view op) {
  static const BuiltIn table = MakeBuiltIn();
  const auto it = table.ops.find(op);
  return it == table.ops.end() ? nullptr : &it->second;
}

TfOpDef::Output ParseOutput(Bytes arg_def) {
  TfOpDef::Output output;
  WireMessage message(arg_def);
  while (message.Next()) {
    if (message.field() == 1) output.name = message.View();
    if (message.field() == 3) output.tf_type = message.Int();
    if (message.field() == 4) output.type_attr = message.View();
    if (message.field() == 5) output.number_attr = message.View();
    if (message.field() == 6) output.type_list_attr = message.View();
  }
  return output;
}

}  // namespace

Bytes TfOpDef::FindDefault(std::string_view attr) const {
  for (const Default& d : defaults) {
    if (d.attr == attr) return d.value;
  }
  return {};
}

TfOpDef TfOpDefs::ParseOpDef(Bytes op_def, Bytes* name) {
  TfOpDef def;
  WireMessage message(op_def);
  while (message.Next()) {
    if (message.field() == 1) *name = message.View();
    if (message.field() == 3) def.outputs.push_back(ParseOutput(message.View()));
    if (message.field() != 4 || !message.is_view()) continue;
    TfOpDef::Default item;
    WireMessage attr(message.View());
    while (attr.Next()) {
      if (attr.field() == 1) item.attr = attr.View();
      if (attr.field() == 3) item.value = attr.View();
    }
    if (!item.value.empty()) def.defaults.push_back(item);
  }
  return def;
}

void TfOpDefs::AddOpList(Bytes op_list) {
  WireMessage message(op_list);
  while (message.Next()) {
    if (message.field() != 1) continue;
    Bytes name;
    TfOpDef def = ParseOpDef(message.View(), &name);
    from_file_.insert_or_assign(name, std::move(def));
  }
}

const TfOpDef* TfOpDefs::Find(std::string_view op) const {
  const auto it = from_file_.find(op);
  return it != from_file_.end() ? &it->second : FindBuiltIn(op);
}

Bytes TfOpDefs::FindDefault(std::string_view op, std::string_view attr) const {
  if (const auto it = from_file_.find(op); it != from_file_.end()) {
    if (const Bytes value = it->second.FindDefault(attr); !value.empty()) return value;
  }
  const TfOpDef* built_in = FindBuiltIn(op);
  return built_in == nullptr ? Bytes() : built_in->FindDefault(attr);
}

}  // namespace oncilla
