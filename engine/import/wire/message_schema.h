// Which fields a protobuf message has, as data: what reads text forms needs of a .proto file.
//
//   extern const MessageSchema kShape;
//   constexpr FieldSchema kShapeFields[] = {{"dim", 2, FieldKind::kMessage, kRepeated, &kDim},
//                                           {"unknown_rank", 3, FieldKind::kBool}};
//   const MessageSchema kShape{"TensorShapeProto", kShapeFields};
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/text_tree.h"

namespace oncilla {

enum class FieldKind : uint8_t {
  kInt,       // int32, int64
  kUnsigned,  // uint32, uint64
  kBool,
  kFloat,
  kDouble,
  kBytes,  // string, bytes
  kEnum,
  kMessage,
};

struct EnumName {
  std::string_view name;
  int64_t value;
};

struct MessageSchema;
inline constexpr bool kRepeated = true;

struct FieldSchema {
  std::string_view name;
  uint32_t number;
  FieldKind kind;
  bool repeated = false;
  const MessageSchema* message = nullptr;  // of kMessage
  std::span<const EnumName> names = {};    // of kEnum
  int oneof = 0;  // of the fields with one number > 0, at most one is given
};

struct MessageSchema {
  std::string_view name;
  std::span<const FieldSchema> fields;
  // Fields that have no entry are refused but for these; null: all of them are skipped.
  const std::span<const std::string_view>* skipped = nullptr;

  const FieldSchema* Find(std::string_view field) const;
};

// A text form in its binary form. `refuse` makes the failure for a position and what is wrong
// there. Unimplemented when the result would be larger than 2 GB, as no protobuf may be.
Result<std::string> TextToWire(std::string_view text, const MessageSchema& schema,
                               const std::function<Status(TextPosition, std::string)>& refuse);

// A small message as the tree that its text form would give, without places. Members that the
// schema lacks are called "field 17", have no value, and come last. Throws protozero::exception.
TextTree WireToTree(std::string_view bytes, const MessageSchema& schema);

}  // namespace oncilla
