// Building a tree from a text, and printing one.
#include "engine/base/text_tree.h"

namespace oncilla {
namespace {

class TreeSink : public TextSink {
 public:
  explicit TreeSink(TextTree* root) : open_{root} {}

  Status BeginMessage(std::string_view name, TextPosition at) override {
    open_.push_back(&Add(name, at));
    return {};
  }
  Status EndMessage() override {
    open_.pop_back();
    return {};
  }
  Status Scalar(std::string_view name, TextPosition at, TextScalar value) override {
    TextTree& tree = Add(name, at);
    tree.kind = TextTree::Kind::kScalar;
    tree.at = value.at;
    tree.scalar = std::move(value);
    return {};
  }
  Status Refuse(TextPosition at, std::string what) const override { return RefuseText(at, what); }

 private:
  // Only the most recently opened message gains members, so the members of the others do not move.
  TextTree& Add(std::string_view name, TextPosition at) {
    TextMember& member = open_.back()->members.emplace_back();
    member.name = name;
    member.at = member.value.at = at;
    return member.value;
  }

  std::vector<TextTree*> open_;
};

std::string ScalarText(const TextScalar& scalar, TextForm form) {
  const bool string = scalar.kind == TextScalar::Kind::kString;
  return string ? QuotedText(scalar.text, form == TextForm::kJson) : scalar.text;
}

void PrintText(std::string_view name, const TextTree& tree, const std::string& indent,
               std::string& out) {
  switch (tree.kind) {
    case TextTree::Kind::kScalar:
      out += StrCat(indent, name, ": ", ScalarText(tree.scalar, TextForm::kText), "\n");
      break;
    case TextTree::Kind::kMessage:
      out += StrCat(indent, name, " {\n");
      for (const TextMember& member : tree.members) {
        PrintText(member.name, member.value, indent + "  ", out);
      }
      out += StrCat(indent, "}\n");
      break;
    case TextTree::Kind::kList:
      for (const TextMember& item : tree.members) PrintText(name, item.value, indent, out);
      break;
    case TextTree::Kind::kMap:
      for (const TextMember& item : tree.members) {
        out += StrCat(indent, name, " {\n", indent, "  key: ", QuotedText(item.name, false), "\n");
        PrintText("value", item.value, indent + "  ", out);
        out += StrCat(indent, "}\n");
      }
      break;
  }
}

void PrintJson(const TextTree& tree, const std::string& indent, std::string& out) {
  if (tree.kind == TextTree::Kind::kScalar) {
    out += ScalarText(tree.scalar, TextForm::kJson);
    return;
  }
  const bool list = tree.kind == TextTree::Kind::kList;
  const std::string inner = indent + "  ";
  out += list ? "[" : "{";
  for (size_t i = 0; i < tree.members.size(); ++i) {
    out += StrCat(i == 0 ? "\n" : ",\n", inner);
    if (!list) out += QuotedText(tree.members[i].name, true) + ": ";
    PrintJson(tree.members[i].value, inner, out);
  }
  if (!tree.members.empty()) out += "\n" + indent;
  out += list ? "]" : "}";
}

}  // namespace

Result<TextTree> ReadTextTree(std::string_view text, TextForm form) {
  TextTree root;
  TreeSink sink(&root);
  ONCILLA_TRY(form == TextForm::kJson ? ReadJsonObject(text, sink) : ReadTextFormat(text, sink));
  return root;
}

std::string PrintTextTree(const TextTree& message, TextForm form) {
  std::string out;
  if (form == TextForm::kJson) {
    PrintJson(message, "", out);
    return out + "\n";
  }
  for (const TextMember& member : message.members) PrintText(member.name, member.value, "", out);
  return out;
}

Status RefuseText(TextPosition at, std::string_view what) {
  if (at.line == 0) return InvalidArgument(what);
  return InvalidArgument("line ", at.line, ", column ", at.column, ": ", what);
}

}  // namespace oncilla
