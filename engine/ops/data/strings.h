// Attributes of ops on strings by TensorFlow's rules: joining, splitting, hashing, patterns,
// Unicode. Strings are bytes, unless an op is said to count characters or to decode.
#pragma once

#include <span>

#include "engine/ops/op_def.h"

namespace oncilla {

// x0, x1, .. -> string: the concatenation of the inputs. All have one shape or are scalars.
struct JoinStringsAttrs {
  std::string separator;
  void Fields(auto&& field) { field("separator", separator); }
};

// ReduceJoin(x, *axes): joins along the axes; the first one listed varies fastest. No axes: x
// itself.
struct ReduceJoinAttrs {
  std::string separator;
  bool keep_dims = false;
  void Fields(auto&& field) {
    field("separator", separator);
    field("keep_dims", keep_dims);
  }
};

// SegmentJoin(x, ids, *segments): strings of one id, joined in order; "" for an id without strings.

// SplitStrings(x[n], separator) -> indices i64[m, 2], parts[m], shape i64[2]: a sparse matrix with
// the parts of each string as a row, as many columns as the longest row has. `set`: every byte of
// the separator splits, an empty separator splits between all bytes. Otherwise the separator is
// matched as a whole, and an empty one matches runs of whitespace, as in Python's split(); at most
// `most` splits if that is above 0.
struct SplitStringsAttrs {
  bool set = false;
  bool skip_empty = false;  // leaves out empty parts; of `set` only
  int64_t most = -1;
  void Fields(auto&& field) {
    field("set", set);
    field("skip_empty", skip_empty);
    field("most", most);
  }
};

// Changes ASCII letters only; with `unicode` a string with other characters fails the run.
struct ChangeCaseAttrs {
  bool upper = false;
  bool unicode = false;
  void Fields(auto&& field) {
    field("upper", upper);
    field("unicode", unicode);
  }
};

// Attributes of StringLength(x) -> i32 and of Substring(x, position, length), which broadcasts.
struct StringUnitAttrs {
  bool characters = false;  // of UTF-8; else bytes
  void Fields(auto&& field) { field("characters", characters); }
};

// StripStrings(x): without whitespace at both ends. No attributes.

// FormatStrings(x..) -> string[]: the template with each placeholder replaced by a tensor, of which
// at most `ends` elements at both ends of each axis are shown (negative: all).
struct FormatStringsAttrs {
  std::string text = "%s";
  std::string placeholder = "%s";
  int64_t ends = 3;
  void Fields(auto&& field) {
    field("text", text);
    field("placeholder", placeholder);
    field("ends", ends);
  }
};

// PrintNumbers(x) -> strings as C's printf formats them. `fill` is a flag of printf.
struct PrintNumbersAttrs {
  int64_t precision = -1, width = -1;
  bool scientific = false, shortest = false;
  std::string fill;
  void Fields(auto&& field) {
    field("precision", precision);
    field("width", width);
    field("scientific", scientific);
    field("shortest", shortest);
    field("fill", fill);
  }
};

// HashStrings(x) -> i64 in [0, buckets). With murmur3, x may be numbers, whose bytes are hashed.
struct HashStringsAttrs {
  // farm: FarmHash's fingerprint; sip: SipHash-2-4; murmur: Murmur64A; murmur3: MurmurHash3 of 32
  // bits.
  std::string hash = "farm";
  int64_t buckets = 1;
  std::vector<int64_t> key;  // of sip: two numbers; of murmur3: the seed
  void Fields(auto&& field) {
    field("hash", hash);
    field("buckets", buckets);
    field("key", key);
  }
};

// RegexReplace(x, pattern[], rewrite[]), RegexMatch(x, pattern[]) -> bool of whole strings: RE2's
// syntax.
struct RegexReplaceAttrs {
  bool all = true;       // else only the first match
  bool longest = false;  // prefer the longest alternative, else the first
  void Fields(auto&& field) {
    field("all", all);
    field("longest", longest);
  }
};

// StringNGrams(x[n], splits) -> strings, their splits: for each row, every run of as many
// neighbours as one of `widths`, joined. Rows are padded with width - 1 strings on each side, or
// with `pad` if given.
struct StringNGramsAttrs {
  std::string separator, left, right;
  std::vector<int64_t> widths;
  int64_t pad = -1;
  bool keep_short = false;  // a row too short for any n-gram becomes one itself
  void Fields(auto&& field) {
    field("separator", separator);
    field("left", left);
    field("right", right);
    field("widths", widths);
    field("pad", pad);
    field("keep_short", keep_short);
  }
};

// Attributes of EncodeBase64(x), with the URL-safe alphabet; DecodeBase64(x) accepts text with and
// without padding.
struct Base64Attrs {
  bool pad = false;
  void Fields(auto&& field) { field("pad", pad); }
};

// DecodeUnicode(x) -> splits, characters i32, the byte offset of each i64; EncodeUnicode(
// characters, splits) -> strings; TranscodeUnicode(x) -> strings. CharacterScripts(characters i32)
// -> ICU's numbers of their scripts, -1 for a value that is not a character.
// Encodings: utf-8, utf-16-be, utf-16-le, utf-32-be, utf-32-le, us-ascii, iso-8859-1. Invalid
// characters are replaced, ignored, or fail the run (strict).
struct UnicodeAttrs {
  std::string from = "utf-8", to = "utf-8";
  std::string errors = "replace";
  int64_t replacement = 0xFFFD;
  bool replace_control = false;  // U+0000 .. U+001F count as invalid, except for strict
  DType splits = DType::kI64;
  void Fields(auto&& field) {
    field("from", from);
    field("to", to);
    field("errors", errors);
    field("replacement", replacement);
    field("replace_control", replace_control);
    field("splits", splits);
  }
};

}  // namespace oncilla
