// The parts of TensorFlow's op definitions that a graph omits: the default values of attributes,
// and which outputs a named output argument refers to.
//
// A SavedModel contains the definitions of the ops it uses (stripped_op_list); a GraphDef contains
// none, so the ops that the importer lowers are also in a table of our own. The file has
// precedence.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/import/wire/wire.h"

namespace oncilla {

struct TfOpDef {
  struct Output {
    Bytes name;
    Bytes number_attr;     // an attribute with the number of outputs, or empty
    Bytes type_list_attr;  // an attribute with a type per output, or empty
    Bytes type_attr;       // an attribute with the type, or empty
    int64_t tf_type = 0;   // the type, or 0
  };
  struct Default {
    Bytes attr, value;  // value: an encoded AttrValue
  };
  std::vector<Output> outputs;  // empty: one output argument, whose name is unused
  std::vector<Default> defaults;

  // An encoded AttrValue, or empty bytes when the attribute has no default.
  Bytes FindDefault(std::string_view attr) const;
};

class TfOpDefs {
 public:
  // Adds an OpList message, whose bytes must outlive this object. Throws WireError.
  void AddOpList(Bytes op_list);
  // Parses an OpDef message's name and outputs, as functions have them. Throws WireError.
  static TfOpDef ParseOpDef(Bytes op_def, Bytes* name);

  // From the file, else from our own table; null when neither lists the op.
  const TfOpDef* Find(std::string_view op) const;
  // An encoded AttrValue from the file's definition or else from ours; empty when there is none.
  Bytes FindDefault(std::string_view op, std::string_view attr) const;

 private:
  std::unordered_map<std::string_view, TfOpDef> from_file_;
};

}  // namespace oncilla
