// byte_table: y[i] = table[x[i]], x read as unsigned bytes.
// One work-item per element, of BYTES bytes.
// VARIANT: -DBYTES=1 -DGROUP=64 -DIDX=int
// VARIANT: -DBYTES=4 -DGROUP=64 -DIDX=long
#if BYTES == 1
typedef uchar ELEMENT;
#elif BYTES == 2
typedef ushort ELEMENT;
#elif BYTES == 4
typedef uint ELEMENT;
#else
typedef ulong ELEMENT;
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void byte_table(__global const uchar* restrict x, __global const ELEMENT* restrict table,
                __global ELEMENT* restrict y, const IDX elements) {
  const IDX at = get_global_id(0);
  if (at >= elements) return;
  y[at] = table[x[at]];
}
