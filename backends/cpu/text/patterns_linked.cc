// Regular expressions in programs and in the static library, where RE2 is linked.
#include "backends/cpu/text/patterns.h"

namespace oncilla::cpu {

Result<const PatternFunctions*> FindPatternFunctions() { return oncilla_pattern_functions(); }

}  // namespace oncilla::cpu
