// Splits a record into fields, by the rules and with the messages of TensorFlow's DecodeCSV.
#include "engine/records/csv.h"

namespace oncilla {

Result<std::vector<std::string>> SplitCsv(std::string_view record, char separator, bool quotes) {
  std::vector<std::string> fields;
  size_t at = 0;
  const auto ends = [&](size_t i) { return i >= record.size() || record[i] == separator; };
  for (;;) {
    std::string field;
    if (quotes && at < record.size() && record[at] == '"') {
      for (++at;; ++at) {
        if (at >= record.size()) return InvalidArgument("Quoted field has to end with quote");
        if (record[at] != '"') {
          field += record[at];
        } else if (at + 1 < record.size() && record[at + 1] == '"') {
          field += '"';
          ++at;
        } else {
          break;
        }
      }
      ++at;
      if (!ends(at)) {
        return InvalidArgument("Quoted field has to be followed by field delimiter or end");
      }
    } else {
      while (!ends(at)) {
        if ((quotes && record[at] == '"') || record[at] == '\n' || record[at] == '\r') {
          return InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside");
        }
        field += record[at++];
      }
    }
    fields.push_back(std::move(field));
    if (at >= record.size()) return fields;
    ++at;
  }
}

}  // namespace oncilla
