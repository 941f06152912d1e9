// Mutants: cases whose attributes, values, sizes and types were changed at random. Their results
// are not known; see Case::mutant for what is expected of them.
#pragma once

#include <vector>

#include "tests/case_runner/case_file.h"

namespace oncilla::testing {

// `each` mutants of every case, the same ones for the same seed: a mutant depends only on the seed,
// its case's position in its file and its number, except that texts of attributes are taken from
// the other cases of the op as well.
std::vector<Case> MutantsOf(const std::vector<Case>& cases, const OpSet& ops, uint64_t seed,
                            int each);

}  // namespace oncilla::testing
