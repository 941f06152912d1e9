// ONCILLA_UNROLL before a loop of a few steps over arrays of vectors: only when such loops are
// unrolled do compilers keep the arrays in registers.
#pragma once

#define ONCILLA_UNROLL _Pragma("GCC unroll 16")
