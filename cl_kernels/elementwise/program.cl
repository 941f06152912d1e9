// program: a tree of elementwise ops, one work-item per element of the output, or, with LOADS, for four
// that lie side by side.
// The body is made at run time by backends/opencl/recipes/elementwise.cc:
//   PARAMS  operands p0, p1, ..., sizes n0, n1, ... (innermost first), strides; ends with a comma
//   INDEX   from the global id: i, the element of the output, and a0, a1, ..., its place; leaves the
//           kernel where there is no such element
//   LAST_PARAMS  nothing, or ", ERROR_PARAMS"
//   STEPS   loads operands and computes t0, t1, ...;  OUT, RESULT  the output's dtype and value
//   LOADS   reads four elements at once as w0, w1, ..., of which STEPS takes element q
// Groups have GROUP x ROWS work-items.
// The output may lie over an operand of its own size.
// VARIANT: -DGROUP=64 -DROWS=1 '-DPARAMS=__global const float* p0, const int n0,' '-DINDEX=const int i = get_global_id(0); if (i >= n0) return;' '-DSTEPS=const float t0 = Exp_f(LOAD_f32(p0, i));' -DOUT=f32 -DRESULT=t0 -DLAST_PARAMS=
// VARIANT: -DGROUP=64 -DROWS=1 '-DPARAMS=__global const short* p0, const int n0,' '-DINDEX=const int i = get_global_id(0); if (i >= n0) return;' '-DSTEPS=const long t0 = Div_l(LOAD_i16(p0, i), K_l(3));' -DOUT=f16 '-DRESULT=CUT_l_f16(t0)' '-DLAST_PARAMS=, ERROR_PARAMS'
// VARIANT: -DGROUP=256 -DROWS=1 '-DPARAMS=__global const half* p0, const int n0,' '-DINDEX=const int i = 4 * (int)get_global_id(0); if (i >= n0) return;' '-DLOADS=const MEM4_f16 w0 = *(__global const MEM4_f16*)(p0 + i);' '-DSTEPS=const float v0 = LOAD_f16((const MEM_f16*)&w0, q); const float t0 = Exp_f(v0);' -DOUT=f16 -DRESULT=t0 -DLAST_PARAMS=
#include "common/dtype.clh"
#include "common/elementwise.clh"
#include "common/error.clh"

__kernel __attribute__((reqd_work_group_size(GROUP, ROWS, 1)))
void program(PARAMS __global MEM(OUT)* out LAST_PARAMS) {
  INDEX
#ifdef LOADS
  LOADS
  MEM4(OUT) four;
  _Pragma("unroll") for (int q = 0; q < 4; ++q) {
    STEPS
    STORE(OUT, (MEM(OUT)*)&four, q, RESULT);
  }
  *(__global MEM4(OUT)*)(out + i) = four;
#else
  STEPS
  STORE(OUT, out, i, RESULT);
#endif
}
