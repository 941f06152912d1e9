// Converts text to bytes, message by message. Each message is written to its own string, which,
// once complete, is appended to its parent after its length.
#include "engine/import/wire/message_schema.h"

#include <algorithm>

#include "engine/base/near_names.h"
#include "engine/base/options.h"
#include "engine/import/wire/wire.h"

namespace oncilla {
namespace {

constexpr size_t kMostBytes = size_t{INT32_MAX};
constexpr TextPosition kNowhere{0, 0};

class WireSink : public TextSink {
 public:
  using Refusal = std::function<Status(TextPosition, std::string)>;
  WireSink(const MessageSchema& schema, const Refusal& refuse) : refuse_(refuse) {
    open_.push_back({&schema, nullptr, {}, {}});
  }

  std::string Take() { return std::move(open_[0].bytes); }

  Status Refuse(TextPosition at, std::string what) const override {
    return refuse_(at, std::move(what));
  }

  Status BeginMessage(std::string_view name, TextPosition at) override {
    if (skipping_ > 0) {
      ++skipping_;
      return {};
    }
    ONCILLA_ASSIGN(const FieldSchema* field, Find(name, at));
    if (field == nullptr) {
      skipping_ = 1;
      return {};
    }
    if (field->kind != FieldKind::kMessage) {
      return Refuse(at, StrCat("\"", name, "\" is a value, not a message"));
    }
    open_.push_back({field->message, field, {}, {}});
    return {};
  }

  Status EndMessage() override {
    if (skipping_ > 0) {
      --skipping_;
      return {};
    }
    const Open done = std::move(open_.back());
    open_.pop_back();
    std::string& to = open_.back().bytes;
    if (to.size() + done.bytes.size() > kMostBytes) {
      return WithStage(Unsupported("more than 2 GB in the binary form"), Stage::kFile);
    }
    protozero::pbf_writer(to).add_message(done.field->number, done.bytes);
    return {};
  }

  Status Scalar(std::string_view name, TextPosition at, TextScalar value) override {
    if (skipping_ > 0) return {};
    ONCILLA_ASSIGN(const FieldSchema* field, Find(name, at));
    if (field == nullptr) return {};
    return Write(*field, value);
  }

 private:
  struct Open {
    const MessageSchema* schema;
    const FieldSchema* field;  // the field of the parent that it belongs to
    std::string bytes;
    std::vector<const FieldSchema*> given;  // fields given so far that may be given once
  };

  // Returns null for a field that is skipped.
  Result<const FieldSchema*> Find(std::string_view name, TextPosition at) {
    Open& open = open_.back();
    const FieldSchema* field = open.schema->Find(name);
    if (field == nullptr) {
      const auto* skipped = open.schema->skipped;
      if (skipped == nullptr || std::ranges::find(*skipped, name) != skipped->end()) {
        return nullptr;
      }
      std::vector<std::string> names;
      for (const FieldSchema& known : open.schema->fields) names.emplace_back(known.name);
      return Refuse(at, StrCat("\"", open.schema->name, "\" has no field named \"", name, "\"",
                               DidYouMean(name, names)));
    }
    if (field->repeated) return field;
    for (const FieldSchema* other : open.given) {
      if (other == field) return Refuse(at, StrCat("\"", name, "\" is given twice"));
      if (field->oneof != 0 && other->oneof == field->oneof) {
        return Refuse(at, StrCat("\"", name, "\" and \"", other->name, "\" exclude each other"));
      }
    }
    open.given.push_back(field);
    return field;
  }

  Status Write(const FieldSchema& field, const TextScalar& value) {
    protozero::pbf_writer out(open_.back().bytes);
    const auto wrong = [&](std::string_view wanted) {
      const char quote = value.kind == TextScalar::Kind::kString ? '"' : '\'';
      return Refuse(value.at, StrCat("\"", field.name, "\" is ", wanted, ", not ", quote,
                                     value.text.substr(0, 64), quote));
    };
    const bool string = value.kind == TextScalar::Kind::kString;
    if (string != (field.kind == FieldKind::kBytes)) {
      return wrong(string ? "no string" : "a string");
    }
    switch (field.kind) {
      case FieldKind::kInt: {
        const auto number = TextToInt(value.text);
        if (!number.has_value()) return wrong("a whole number");
        out.add_int64(field.number, *number);
        return {};
      }
      case FieldKind::kUnsigned: {
        const auto number = TextToUnsigned(value.text);
        if (!number.has_value()) return wrong("a whole number that is not negative");
        out.add_uint64(field.number, *number);
        return {};
      }
      case FieldKind::kBool: {
        const std::string_view text = value.text;
        const bool yes = text == "true" || text == "True" || text == "t" || text == "1";
        const bool no = text == "false" || text == "False" || text == "f" || text == "0";
        if (!yes && !no) return wrong("true or false");
        out.add_bool(field.number, yes);
        return {};
      }
      case FieldKind::kFloat:
      case FieldKind::kDouble: {
        const auto number = TextToDouble(value.text);
        if (!number.has_value()) return wrong("a number");
        if (field.kind == FieldKind::kDouble) {
          out.add_double(field.number, *number);
        } else {
          out.add_float(field.number, static_cast<float>(*number));
        }
        return {};
      }
      case FieldKind::kEnum: {
        const auto named = std::ranges::find(field.names, value.text, &EnumName::name);
        auto number = TextToInt(value.text);
        if (named != field.names.end()) number = named->value;
        if (!number.has_value()) return wrong("one of an enum's names");
        out.add_int64(field.number, *number);
        return {};
      }
      case FieldKind::kBytes:
        out.add_bytes(field.number, value.text.data(), value.text.size());
        return {};
      case FieldKind::kMessage:
        break;
    }
    return Refuse(value.at, StrCat("\"", field.name, "\" is a message, not a value"));
  }

  const Refusal& refuse_;
  std::vector<Open> open_;
  int skipping_ = 0;  // nesting depth within a skipped message
};

// Appends the values of one field to its message; a packed list holds several.
void AppendValues(WireMessage& wire, const FieldSchema& field, TextTree& to) {
  const auto add = [&](TextTree value) {
    value.at = kNowhere;
    to.members.push_back({std::string(field.name), std::move(value), kNowhere});
  };
  using options_internal::PrintScalar;
  switch (field.kind) {
    case FieldKind::kInt:
    case FieldKind::kUnsigned:
      return wire.EachInt([&](int64_t value) { add(PrintScalar(value)); });
    case FieldKind::kBool:
      return wire.EachInt([&](int64_t value) { add(PrintScalar(value != 0)); });
    case FieldKind::kFloat:
      return wire.EachFloat([&](float value) { add(PrintScalar(double{value})); });
    case FieldKind::kDouble:
      return wire.EachDouble([&](double value) { add(PrintScalar(value)); });
    case FieldKind::kEnum:
      return wire.EachInt([&](int64_t value) {
        const auto named = std::ranges::find(field.names, value, &EnumName::value);
        add(PrintScalar(named == field.names.end() ? std::string_view(StrCat(value))
                                                   : named->name));
      });
    case FieldKind::kBytes:
      return add(PrintScalar(wire.View()));
    case FieldKind::kMessage:
      return add(WireToTree(wire.View(), *field.message));
  }
}

}  // namespace

const FieldSchema* MessageSchema::Find(std::string_view field) const {
  const auto found = std::ranges::find(fields, field, &FieldSchema::name);
  return found == fields.end() ? nullptr : &*found;
}

Result<std::string> TextToWire(std::string_view text, const MessageSchema& schema,
                               const std::function<Status(TextPosition, std::string)>& refuse) {
  WireSink sink(schema, refuse);
  ONCILLA_TRY(ReadTextFormat(text, sink));
  return sink.Take();
}

TextTree WireToTree(std::string_view bytes, const MessageSchema& schema) {
  TextTree tree;
  tree.at = kNowhere;
  std::vector<TextMember> others;
  for (WireMessage wire(bytes); wire.Next();) {
    const auto field = std::ranges::find(schema.fields, wire.field(), &FieldSchema::number);
    if (field != schema.fields.end()) {
      AppendValues(wire, *field, tree);
    } else {
      others.push_back({StrCat("field ", wire.field()), {.at = kNowhere, .members = {}}, kNowhere});
    }
  }
  for (TextMember& other : others) tree.members.push_back(std::move(other));
  return tree;
}

}  // namespace oncilla
