// The sections of MLIR's bytecode, and the ops in it.
#include "engine/import/stablehlo/bytecode.h"

#include <algorithm>
#include <array>
#include <optional>

#include "engine/import/stablehlo/cursor.h"

namespace oncilla {
namespace {

constexpr std::string_view kMagic = "ML\xefR";
// Versions of the format. Older files lack what these brought.
constexpr uint64_t kNewest = 6;
constexpr uint64_t kDialectVersions = 1;
constexpr uint64_t kPartsPerOp = 2;
constexpr uint64_t kUseOrders = 3;
constexpr uint64_t kOptionalLocations = 4;
constexpr uint64_t kProperties = 5;
// Regions within regions that are followed; models have a handful.
constexpr int kMostDepth = 64;

enum Section : uint8_t {
  kTexts = 0,
  kDialects = 1,
  kAttrsAndTypes = 2,
  kOffsets = 3,
  kOps = 4,
  kPropertyValues = 8,
  kSections = 9,
};

enum OpMask : uint8_t {
  kHasAttrs = 1,
  kHasResults = 2,
  kHasOperands = 4,
  kHasSuccessors = 8,
  kHasRegions = 16,
  kHasUseOrders = 32,
  kHasProperties = 64,
};

struct PropertyNames {
  std::string_view op, names;
};
constexpr PropertyNames kPropertyNames[] = {
#define HLO_PROPERTIES(op, names) {op, names},
#include "engine/import/stablehlo/properties.inc"
#undef HLO_PROPERTIES
};

Status Damaged(std::string_view what) {
  return DataLoss("the StableHLO module is damaged: ", what);
}

// "dot_general" of "dot_general_v2".
std::string_view WithoutVersion(std::string_view name) {
  const size_t mark = name.rfind("_v");
  if (mark == std::string_view::npos || mark + 2 == name.size()) return name;
  const std::string_view digits = name.substr(mark + 2);
  const bool number = digits.find_first_not_of("0123456789") == std::string_view::npos;
  return number ? name.substr(0, mark) : name;
}

class Reader {
 public:
  Reader(std::string_view bytes, std::shared_ptr<const void> owner) : file_(bytes) {
    module_.owner = std::move(owner);
  }

  Result<HloModule> Read() {
    ONCILLA_TRY(ReadSections());
    ONCILLA_TRY(ReadTexts());
    ONCILLA_TRY(ReadDialects());
    ONCILLA_TRY(ReadTables());
    ONCILLA_TRY(ReadProperties());
    ONCILLA_TRY(ReadTop());
    return std::move(module_);
  }

 private:
  struct OpName {
    size_t dialect = 0;
    std::string_view name;
  };
  // The numbers of the values of a function, or of another op that is isolated.
  struct Scope {
    size_t values = 0;
  };

  Status ReadSections() {
    BytecodeCursor cursor(file_);
    if (cursor.Take(kMagic.size()) != kMagic)
      return Damaged("it does not begin as MLIR's bytecode");
    version_ = cursor.Number();
    if (!cursor.ok()) return Damaged("it ends in its head");
    if (version_ > kNewest) {
      return Unsupported("version ", version_, " of MLIR's bytecode; known are those up to ",
                         kNewest);
    }
    cursor.Text();  // who wrote it
    while (cursor.left() > 0) {
      const std::optional<std::string_view> part = ReadSection(cursor, std::nullopt);
      if (!part.has_value()) return Damaged("a section");
    }
    if (!cursor.ok()) return Damaged("it ends in a section");
    return {};
  }

  // A section, which is noted unless it is expected to be of one kind.
  std::optional<std::string_view> ReadSection(BytecodeCursor& cursor,
                                              std::optional<uint8_t> expected) {
    const uint8_t head = cursor.Byte();
    const uint8_t kind = head & 0x7F;
    const uint64_t size = cursor.Number();
    if ((head & 0x80) != 0) {
      const uint64_t alignment = cursor.Number();
      if (alignment == 0 || alignment > 4096) return std::nullopt;
      cursor.Align(alignment);
    }
    const std::string_view part = cursor.Take(size);
    if (!cursor.ok() || kind >= kSections) return std::nullopt;
    if (expected.has_value()) {
      if (kind != *expected) return std::nullopt;
    } else {
      if (sections_[kind].data() != nullptr) return std::nullopt;
      sections_[kind] = part;
    }
    return part;
  }

  // Their sizes come in the opposite order of the texts, each with the zero byte at its end.
  Status ReadTexts() {
    BytecodeCursor cursor(sections_[kTexts]);
    const size_t count = cursor.Count();
    std::vector<uint64_t> sizes;
    uint64_t total = 0;
    for (size_t i = 0; i < count && cursor.ok(); ++i) {
      sizes.push_back(cursor.Number());
      if (sizes.back() == 0 || sizes.back() > cursor.left()) return Damaged("its texts");
      total += sizes.back();
    }
    if (!cursor.ok() || total != cursor.left()) return Damaged("its texts");
    for (size_t i = count; i-- > 0;) {
      texts_.push_back(cursor.Take(sizes[i]).substr(0, static_cast<size_t>(sizes[i] - 1)));
    }
    return {};
  }

  Status ReadDialects() {
    BytecodeCursor cursor(sections_[kDialects]);
    const size_t count = cursor.Count();
    for (size_t i = 0; i < count && cursor.ok(); ++i) {
      bool versioned = false;
      const uint64_t text =
          version_ < kDialectVersions ? cursor.Number() : cursor.Flagged(versioned);
      if (versioned) {
        // What a dialect says of itself is a section of its own kind, which is skipped.
        cursor.Byte();
        cursor.Take(cursor.Number());
      }
      const int index = cursor.Indexed(text, texts_.size());
      if (cursor.ok()) dialects_.push_back(texts_[static_cast<size_t>(index)]);
    }
    if (version_ >= kOptionalLocations) cursor.Number();  // how many names follow
    while (cursor.left() > 0) {
      const int dialect = cursor.Index(dialects_.size());
      const size_t names = cursor.Count();
      for (size_t i = 0; i < names && cursor.ok(); ++i) {
        bool registered = true;
        const uint64_t text = version_ < kProperties ? cursor.Number() : cursor.Flagged(registered);
        const int index = cursor.Indexed(text, texts_.size());
        if (!cursor.ok()) break;
        op_names_.push_back({static_cast<size_t>(dialect), texts_[static_cast<size_t>(index)]});
      }
    }
    return cursor.ok() ? Status() : Damaged("the names of its ops");
  }

  struct Entry {
    size_t dialect = 0;
    std::string_view bytes;
    bool encoded = false;  // else it is text, which is not read
  };

  // The entries of a table: groups by dialect, with the size of each entry.
  bool ReadEntries(BytecodeCursor& offsets, BytecodeCursor& data, size_t count,
                   std::vector<Entry>& entries) const {
    while (entries.size() < count && offsets.ok() && data.ok()) {
      const int dialect = offsets.Index(dialects_.size());
      const size_t group = offsets.Count();
      if (group == 0 || group > count - entries.size()) return false;
      for (size_t i = 0; i < group && offsets.ok(); ++i) {
        Entry entry;
        entry.dialect = static_cast<size_t>(dialect);
        const uint64_t size = offsets.Flagged(entry.encoded);
        entry.bytes = data.Take(size);
        entries.push_back(entry);
      }
    }
    return offsets.ok() && data.ok();
  }

  bool IsVhlo(size_t dialect) const { return dialects_[dialect] == "vhlo"; }
  bool IsBuiltin(size_t dialect) const { return dialects_[dialect] == "builtin"; }

  Status ReadTables() {
    BytecodeCursor offsets(sections_[kOffsets]), data(sections_[kAttrsAndTypes]);
    const size_t attr_count = offsets.Count(), type_count = offsets.Count();
    std::vector<Entry> attrs, types;
    if (!ReadEntries(offsets, data, attr_count, attrs) ||
        !ReadEntries(offsets, data, type_count, types)) {
      return Damaged("its table of attributes and types");
    }
    module_.attrs.resize(attr_count);
    module_.types.resize(type_count);
    std::vector<int> elements(type_count, -1);
    for (size_t i = 0; i < type_count; ++i) {
      if (!types[i].encoded || !IsVhlo(types[i].dialect)) continue;
      BytecodeCursor cursor(types[i].bytes);
      if (!ReadVhloType(cursor, attr_count, type_count, module_.types[i], elements[i])) {
        return Damaged("a type");
      }
    }
    ResolveElements(elements);
    for (size_t i = 0; i < attr_count; ++i) {
      if (!attrs[i].encoded) continue;
      BytecodeCursor cursor(attrs[i].bytes);
      HloAttr& attr = module_.attrs[i];
      const bool read = IsVhlo(attrs[i].dialect)      ? ReadVhloAttr(cursor, module_, texts_, attr)
                        : IsBuiltin(attrs[i].dialect) ? ReadBuiltinAttr(cursor, attr)
                                                      : true;
      if (!read) return Damaged("an attribute");
    }
    return {};
  }

  // First complex numbers, whose parts are plain types, then tensors of any of them.
  void ResolveElements(const std::vector<int>& elements) {
    using Kind = HloType::Kind;
    for (const Kind kind : {Kind::kElement, Kind::kTensor}) {
      for (size_t i = 0; i < elements.size(); ++i) {
        HloType& type = module_.types[i];
        if (elements[i] < 0 || type.kind != kind) continue;
        const HloType& of = module_.types[static_cast<size_t>(elements[i])];
        if (of.kind != Kind::kElement) continue;
        if (kind == Kind::kTensor) {
          type.dtype = of.dtype;
        } else if (of.dtype == DType::kF32 || of.dtype == DType::kF64) {
          type.dtype = of.dtype == DType::kF32 ? DType::kC64 : DType::kC128;
        }
      }
    }
  }

  // Dictionaries and texts of the builtin dialect; the rest is of no use here.
  bool ReadBuiltinAttr(BytecodeCursor& cursor, HloAttr& attr) const {
    constexpr uint64_t kDictionary = 1, kString = 2;
    const uint64_t code = cursor.Number();
    if (code == kString) {
      const int text = cursor.Index(texts_.size());
      if (!cursor.ok()) return false;
      attr.kind = HloAttr::Kind::kText;
      attr.text = texts_[static_cast<size_t>(text)];
    } else if (code == kDictionary) {
      attr.kind = HloAttr::Kind::kPairs;
      const size_t count = cursor.Count();
      for (size_t i = 0; i < 2 * count && cursor.ok(); ++i) {
        attr.items.push_back(cursor.Index(module_.attrs.size()));
      }
    }
    return cursor.ok();
  }

  Status ReadProperties() {
    BytecodeCursor cursor(sections_[kPropertyValues]);
    if (cursor.left() == 0) return {};
    const size_t count = cursor.Count();
    for (size_t i = 0; i < count && cursor.ok(); ++i) {
      properties_.push_back(cursor.Take(cursor.Number()));
    }
    return cursor.ok() ? Status() : Damaged("the attributes of its ops");
  }

  // The ops of the file: one module, which holds functions.
  Status ReadTop() {
    BytecodeCursor cursor(sections_[kOps]);
    Scope scope;
    std::vector<HloOp> ops;
    ONCILLA_TRY(ReadBlock(cursor, scope, 0, nullptr, ops));
    if (ops.size() != 1 || ops[0].name != "module" || ops[0].regions.size() != 1) {
      return Damaged("it is not one module");
    }
    for (HloOp& op : ops[0].regions[0].ops) {
      if (op.name != "func") continue;
      ONCILLA_ASSIGN(const std::string_view name, module_.Text(op, "sym_name"));
      if (op.regions.size() != 1) return Damaged("a function without a body");
      if (!module_.functions.emplace(name, std::move(op.regions[0])).second) {
        return Damaged("two functions of one name");
      }
    }
    return {};
  }

  // What a user wrote about the order of uses, which has no meaning for a run.
  static void SkipUseOrders(BytecodeCursor& cursor, size_t values) {
    const size_t count = values > 1 ? cursor.Count() : 1;
    for (size_t i = 0; i < count && cursor.ok(); ++i) {
      if (values > 1) cursor.Number();
      bool pairs = false;
      const size_t numbers = cursor.Counted(cursor.Flagged(pairs));
      for (size_t k = 0; k < numbers && cursor.ok(); ++k) cursor.Number();
    }
  }

  Status ReadBlock(BytecodeCursor& cursor, Scope& scope, int depth, HloRegion* region,
                   std::vector<HloOp>& ops) {
    bool has_arguments = false;
    const size_t count = cursor.Counted(cursor.Flagged(has_arguments));
    size_t next = next_value_;
    if (has_arguments) {
      const size_t arguments = cursor.Count();
      for (size_t i = 0; i < arguments && cursor.ok(); ++i) {
        bool located = true;
        const uint64_t type =
            version_ >= kOptionalLocations ? cursor.Flagged(located) : cursor.Number();
        if (located) cursor.Index(module_.attrs.size());
        const int index = cursor.Indexed(type, module_.types.size());
        if (region == nullptr) return Damaged("arguments of a file");
        region->argument_types.push_back(index);
        region->arguments.push_back(static_cast<int>(next++));
      }
      if (version_ >= kUseOrders && cursor.Byte() != 0) {
        SkipUseOrders(cursor, region == nullptr ? 0 : region->arguments.size());
      }
    }
    if (!cursor.ok() || next > scope.values) return Damaged("the arguments of a block");
    for (size_t i = 0; i < count; ++i) {
      HloOp op;
      next_value_ = next;
      ONCILLA_TRY(ReadOp(cursor, scope, depth, op));
      next += op.results.size();
      ops.push_back(std::move(op));
    }
    next_value_ = next;
    return {};
  }

  Status ReadOp(BytecodeCursor& cursor, Scope& scope, int depth, HloOp& op) {
    const int name = cursor.Index(op_names_.size());
    const uint8_t mask = cursor.Byte();
    cursor.Index(module_.attrs.size());  // where it is in the user's program
    if (!cursor.ok()) return Damaged("an op");
    const OpName& full = op_names_[static_cast<size_t>(name)];
    op.name = WithoutVersion(full.name);
    if (!IsVhlo(full.dialect) && !IsBuiltin(full.dialect)) {
      return Unsupported("op '", dialects_[full.dialect], ".", full.name,
                         "' in a StableHLO module");
    }
    if ((mask & kHasAttrs) != 0) ReadDictionary(cursor, op);
    if ((mask & kHasProperties) != 0) {
      ONCILLA_TRY(ReadOpProperties(cursor, full, op));
    }
    if ((mask & kHasResults) != 0) {
      const size_t results = cursor.Count();
      for (size_t i = 0; i < results && cursor.ok(); ++i) {
        op.result_types.push_back(cursor.Index(module_.types.size()));
        op.results.push_back(static_cast<int>(next_value_ + i));
      }
      if (next_value_ + results > scope.values) return Damaged("more values than it announces");
    }
    if ((mask & kHasOperands) != 0) {
      const size_t operands = cursor.Count();
      for (size_t i = 0; i < operands && cursor.ok(); ++i) {
        op.operands.push_back(cursor.Index(scope.values));
      }
    }
    if ((mask & kHasSuccessors) != 0) return Unsupported("jumps between blocks");
    if (version_ >= kUseOrders && (mask & kHasUseOrders) != 0) {
      SkipUseOrders(cursor, op.results.size());
    }
    if (!cursor.ok()) return Damaged("an op");
    if ((mask & kHasRegions) != 0) {
      ONCILLA_TRY(ReadRegions(cursor, scope, depth, op));
    }
    return {};
  }

  Status ReadRegions(BytecodeCursor& cursor, Scope& scope, int depth, HloOp& op) {
    if (depth >= kMostDepth) return Unsupported("regions more than ", kMostDepth, " deep");
    bool isolated = false;
    const size_t count = cursor.Counted(cursor.Flagged(isolated));
    if (!cursor.ok()) return Damaged("the regions of an op");
    op.isolated = isolated;
    Scope own;
    Scope& inside = isolated ? own : scope;
    if (!isolated || version_ < kPartsPerOp)
      return ReadRegionList(cursor, inside, depth, count, op);
    const auto part = ReadSection(cursor, kOps);
    if (!part.has_value()) return Damaged("the regions of an op");
    BytecodeCursor inner(*part);
    return ReadRegionList(inner, inside, depth, count, op);
  }

  Status ReadRegionList(BytecodeCursor& cursor, Scope& scope, int depth, size_t count, HloOp& op) {
    for (size_t i = 0; i < count; ++i) {
      op.regions.emplace_back();
      ONCILLA_TRY(ReadRegion(cursor, scope, depth, op.regions.back()));
    }
    return {};
  }

  // A region numbers its values after all those of the regions around it.
  Status ReadRegion(BytecodeCursor& cursor, Scope& scope, int depth, HloRegion& region) {
    const uint64_t blocks = cursor.Number();
    if (!cursor.ok()) return Damaged("a region");
    if (blocks == 0) return {};
    if (blocks != 1) return Unsupported("a region of ", blocks, " blocks");
    const size_t values = cursor.Count();  // each is written down with its type
    const size_t outside = scope.values, before = next_value_;
    scope.values += values;
    next_value_ = outside;
    ONCILLA_TRY(ReadBlock(cursor, scope, depth + 1, &region, region.ops));
    next_value_ = before;
    scope.values = outside;
    return {};
  }

  void ReadDictionary(BytecodeCursor& cursor, HloOp& op) const {
    const int index = cursor.Index(module_.attrs.size());
    if (!cursor.ok()) return;
    const HloAttr& pairs = module_.attrs[static_cast<size_t>(index)];
    if (pairs.kind != HloAttr::Kind::kPairs) return;
    for (size_t i = 0; i + 1 < pairs.items.size(); i += 2) {
      const HloAttr& name = module_.attrs[static_cast<size_t>(pairs.items[i])];
      op.attrs.emplace_back(name.text, pairs.items[i + 1]);
    }
  }

  Status ReadOpProperties(BytecodeCursor& cursor, const OpName& full, HloOp& op) const {
    const int index = cursor.Index(properties_.size());
    if (!cursor.ok()) return Damaged("an op");
    if (!IsVhlo(full.dialect)) return {};
    const auto* known = std::find_if(std::begin(kPropertyNames), std::end(kPropertyNames),
                                     [&](const PropertyNames& row) { return row.op == full.name; });
    // An op that is not known is refused when it is lowered, if anything needs it.
    if (known == std::end(kPropertyNames)) return {};
    BytecodeCursor values(properties_[static_cast<size_t>(index)]);
    std::string_view names = known->names;
    while (!names.empty()) {
      const size_t end = std::min(names.find(' '), names.size());
      op.attrs.emplace_back(names.substr(0, end), values.Index(module_.attrs.size()));
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    return values.ok() ? Status() : Damaged("the attributes of an op");
  }

  const std::string_view file_;
  uint64_t version_ = 0;
  std::array<std::string_view, kSections> sections_;
  std::vector<std::string_view> texts_, dialects_, properties_;
  std::vector<OpName> op_names_;
  size_t next_value_ = 0;  // the number of the next value that is defined
  HloModule module_;
};

}  // namespace

bool IsMlirBytecode(std::string_view bytes) { return bytes.starts_with(kMagic); }

Result<HloModule> ReadHloModule(std::string_view bytes, std::shared_ptr<const void> owner) {
  return Reader(bytes, std::move(owner)).Read();
}

}  // namespace oncilla
