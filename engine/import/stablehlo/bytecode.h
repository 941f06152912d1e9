// Reads the portable form of a StableHLO module: MLIR's bytecode, with ops, attributes and types of
// the VHLO dialect, as JAX and TensorFlow write them into an XlaCallModule op.
//
// The file is sections: texts; names of dialects and ops; attributes and types, each by a code of
// its dialect; values of attributes per op; and the ops, with their regions inside them. Locations
// and what other dialects say are skipped. DataLoss for damage; Unimplemented for what this reader
// does not know, such as ops with several blocks.
#pragma once

#include <memory>
#include <string_view>

#include "engine/import/stablehlo/module.h"

namespace oncilla {

// Whether the bytes begin as such a file does.
bool IsMlirBytecode(std::string_view bytes);

// `owner` keeps the bytes alive.
Result<HloModule> ReadHloModule(std::string_view bytes, std::shared_ptr<const void> owner);

// Reads one attribute or type of the VHLO dialect by its code. `texts` are the file's; indices of
// other attributes and types are checked against the sizes of the module's tables, which are
// complete. False when the bytes are damaged; unknown codes give kOther.
class BytecodeCursor;
bool ReadVhloAttr(BytecodeCursor& cursor, const HloModule& module,
                  const std::vector<std::string_view>& texts, HloAttr& attr);
// `element` is the index of a tensor's element type, or -1.
bool ReadVhloType(BytecodeCursor& cursor, size_t attrs, size_t types, HloType& type, int& element);

}  // namespace oncilla
