// Lookups in tables of runs of characters, by binary search for the run that holds a character.
#include "backends/cpu/text/unicode_case.h"

#include <algorithm>
#include <iterator>

namespace oncilla::cpu {
namespace {

struct ValueRun {
  int32_t first;
  int32_t value;
};
struct CaseRun {
  int32_t first, last, step, distance;
};
struct LongCase {
  int32_t character;
  int32_t becomes[3];  // unused entries are zero
};

#include "backends/cpu/text/unicode_tables.inc"

// The run that a character may belong to: the last one that begins at or before it.
template <class Run, size_t N>
const Run* FindRun(const Run (&runs)[N], int32_t character) {
  const Run* after =
      std::upper_bound(std::begin(runs), std::end(runs), character,
                       [](int32_t value, const Run& run) { return value < run.first; });
  return after == std::begin(runs) ? nullptr : after - 1;
}

constexpr int32_t kCased = 1, kPassedOver = 2;
int32_t CaseKind(int32_t character) { return FindRun(kCaseKinds, character)->value; }

// Whether a cased letter follows in this direction, after any ignorable characters.
bool MeetsLetter(std::span<const int32_t> text, size_t at, bool forward) {
  while (forward ? ++at < text.size() : at-- > 0) {
    const int32_t kind = CaseKind(text[at]);
    if (kind != kPassedOver) return kind == kCased;
  }
  return false;
}

// Characters that the tables map to several characters and that also have a single equivalent; and
// the letters of Unicode 14, which is newer than the tables.
constexpr CaseRun kShortLower[] = {
    {0x130, 0x130, 1, -199},   {0x2c2f, 0x2c2f, 1, 48},   {0xa7c0, 0xa7c0, 1, 1},
    {0xa7d0, 0xa7d0, 1, 1},    {0xa7d6, 0xa7d8, 2, 1},    {0x10570, 0x1057a, 1, 39},
    {0x1057c, 0x1058a, 1, 39}, {0x1058c, 0x10592, 1, 39}, {0x10594, 0x10595, 1, 39},
};
constexpr CaseRun kShortUpper[] = {
    {0x1f80, 0x1f87, 1, 8},     {0x1f90, 0x1f97, 1, 8},     {0x1fa0, 0x1fa7, 1, 8},
    {0x1fb3, 0x1fb3, 1, 9},     {0x1fc3, 0x1fc3, 1, 9},     {0x1ff3, 0x1ff3, 1, 9},
    {0x2c5f, 0x2c5f, 1, -48},   {0xa7c1, 0xa7c1, 1, -1},    {0xa7d1, 0xa7d1, 1, -1},
    {0xa7d7, 0xa7d9, 2, -1},    {0x10597, 0x105a1, 1, -39}, {0x105a3, 0x105b1, 1, -39},
    {0x105b3, 0x105b9, 1, -39}, {0x105bb, 0x105bc, 1, -39},
};

template <size_t N>
int32_t Moved(const CaseRun (&moves)[N], int32_t character) {
  const CaseRun* run = FindRun(moves, character);
  const bool moved =
      run != nullptr && character <= run->last && (character - run->first) % run->step == 0;
  return moved ? character + run->distance : character;
}

template <size_t N, size_t M>
void Append(const CaseRun (&moves)[N], const LongCase (&longer)[M], int32_t character,
            std::vector<int32_t>& out) {
  const LongCase* special =
      std::lower_bound(std::begin(longer), std::end(longer), character,
                       [](const LongCase& row, int32_t value) { return row.character < value; });
  if (special != std::end(longer) && special->character == character) {
    for (int32_t c : special->becomes) {
      if (c != 0) out.push_back(c);
    }
    return;
  }
  out.push_back(Moved(moves, character));
}

}  // namespace

int32_t ScriptOf(int32_t character) {
  if (character < 0 || character > 0x10FFFF) return -1;
  return FindRun(kScripts, character)->value;
}

int32_t SimpleCase(int32_t character, bool upper) {
  const int32_t moved = upper ? Moved(kUpper, character) : Moved(kLower, character);
  if (moved != character) return moved;
  return upper ? Moved(kShortUpper, character) : Moved(kShortLower, character);
}

std::vector<int32_t> WithCase(std::span<const int32_t> text, bool upper) {
  constexpr int32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
  std::vector<int32_t> out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (upper) {
      Append(kUpper, kLongUpper, text[i], out);
    } else if (text[i] == kSigma && MeetsLetter(text, i, false) && !MeetsLetter(text, i, true)) {
      out.push_back(kFinalSigma);
    } else {
      Append(kLower, kLongLower, text[i], out);
    }
  }
  return out;
}

}  // namespace oncilla::cpu
