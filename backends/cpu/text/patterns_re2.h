// What the module around RE2 offers: plain functions, so that nothing of C++ is shared between two
// copies of a library in one process.
#pragma once

#include <cstddef>

extern "C" {

struct PatternFunctions {
  int version;  // kPatternFunctions of those who made it
  // Null when `text` is no pattern; `error` then gets why, as a C string. Of the matches at a place
  // it finds the one of the first alternative, or with `longest` the longest.
  void* (*compile)(const char* text, size_t size, bool longest, char* error, size_t error_size);
  void (*free)(void* regex);
  // The first match at `from` or later; with `whole` one that is all of the text. Gives `count`
  // groups as begin and size; begin is null where a group takes no part.
  bool (*match)(const void* regex, const char* text, size_t size, size_t from, bool whole,
                const char** begins, size_t* sizes, size_t count);
  bool (*check_rewrite)(const void* regex, const char* rewrite, size_t size, char* error,
                        size_t error_size);
};

inline constexpr int kPatternFunctions = 2;
inline constexpr size_t kMostPatternGroups = 10;  // \0 to \9

[[gnu::visibility("default")]] const PatternFunctions* oncilla_pattern_functions();
}
