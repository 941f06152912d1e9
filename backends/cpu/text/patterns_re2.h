// The interface of the module around RE2: plain functions, so that no C++ types are shared between
// two copies of a library in one process.
#pragma once

#include <cstddef>

extern "C" {

struct PatternFunctions {
  int version;  // kPatternFunctions of those who made it
  // Returns null when `text` is not a valid pattern; `error` then receives the reason, as a C
  // string. Among the matches at a position, the first alternative counts, or with `longest` the
  // longest.
  void* (*compile)(const char* text, size_t size, bool longest, char* error, size_t error_size);
  void (*free)(void* regex);
  // The first match at `from` or later; with `whole` one that covers the whole text. Returns
  // `count` groups as begin and size; begin is null if a group did not take part.
  bool (*match)(const void* regex, const char* text, size_t size, size_t from, bool whole,
                const char** begins, size_t* sizes, size_t count);
  bool (*check_rewrite)(const void* regex, const char* rewrite, size_t size, char* error,
                        size_t error_size);
};

inline constexpr int kPatternFunctions = 2;
inline constexpr size_t kMostPatternGroups = 10;  // \0 to \9

[[gnu::visibility("default")]] const PatternFunctions* oncilla_pattern_functions();
}
