// The fields of a protobuf message as data: what a reader of text forms needs of a .proto file.
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
  int oneof = 0;  // of the fields with the same number > 0, at most one may be set
};

struct MessageSchema {
  std::string_view name;
  std::span<const FieldSchema> fields;
  // Fields that are not listed are refused, except these; null: all of them are skipped.
  const std::span<const std::string_view>* skipped = nullptr;

  const FieldSchema* Find(std::string_view field) const;
};

// Converts a text form to the binary form. `refuse` makes the failure for a position and a message.
// Unimplemented when the result would be larger than 2 GB, protobuf's limit.
Result<std::string> TextToWire(std::string_view text, const MessageSchema& schema,
                               const std::function<Status(TextPosition, std::string)>& refuse);

// Parses a small message to the tree of its text form, without positions. Members that are not in
// the schema are called "field 17", have no value, and come last. Throws protozero::exception.
TextTree WireToTree(std::string_view bytes, const MessageSchema& schema);

}  // namespace oncilla
