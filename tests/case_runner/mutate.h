// Mutants: cases whose attributes, values, sizes and types were changed at random. Nobody wrote
// down what they give; see Case::mutant for what is expected of them.
#pragma once

#include <vector>

#include "tests/case_runner/case_file.h"

namespace oncilla::testing {

// `each` mutants of every case, the same ones for the same seed: a mutant depends on the seed, its
// case's place in its file and its number alone, whatever other cases there are, but for texts of
// attributes, which are taken from the other cases of the op as well.
std::vector<Case> MutantsOf(const std::vector<Case>& cases, const OpSet& ops, uint64_t seed,
                            int each);

}  // namespace oncilla::testing
