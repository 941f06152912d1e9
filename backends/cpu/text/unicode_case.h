// Scripts and letter case of characters, by the Unicode Character Database.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace oncilla::cpu {

// ICU's number of the script; -1 for an invalid character.
int32_t ScriptOf(int32_t character);

// Full case mappings that do not depend on a language: some characters become several, and a sigma
// at the end of a word has a lower-case form of its own.
std::vector<int32_t> WithCase(std::span<const int32_t> text, bool upper);

// The mapping of one character to one; a character that would become several is not changed.
int32_t SimpleCase(int32_t character, bool upper);

}  // namespace oncilla::cpu
