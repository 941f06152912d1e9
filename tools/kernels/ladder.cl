// ladder: the well-known steps of a product for NVIDIA, as OpenCL, so that the model of estimate.py can
// be held against published figures. a: m x k, b: k x n, all multiples of the tile.
// STEP 2 one sum per work-item, straight from memory (coalesced)
//      3 32 x 32 tiles in local memory, one sum
//      4 a column of TM sums     5 TM x TN sums    6 the same by float4, A transposed in local memory
//      7 warp tiles: each warp has a compact part of the tile, work-items several TM x TN pieces of it
// Tiles of 4..6: BM, BN, BK, TM, TN; of 7 also WM, WN, WNITER.
#define UNROLL _Pragma("unroll")
#if STEP == 2
__kernel __attribute__((reqd_work_group_size(1024, 1, 1))) void ladder(
    __global const float* restrict a, __global const float* restrict b, __global float* restrict c,
    const int m, const int n, const int k) {
  const int row = get_group_id(1) * 32 + get_local_id(0) / 32;
  const int column = get_group_id(0) * 32 + get_local_id(0) % 32;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum = fma(a[row * k + i], b[i * n + column], sum);
  c[row * n + column] = sum;
}
#elif STEP == 3
__kernel __attribute__((reqd_work_group_size(1024, 1, 1))) void ladder(
    __global const float* restrict a, __global const float* restrict b, __global float* restrict c,
    const int m, const int n, const int k) {
  __local float as[1024] __attribute__((aligned(16))), bs[1024] __attribute__((aligned(16)));
  const int x = get_local_id(0) % 32, y = get_local_id(0) / 32;
  a += get_group_id(1) * 32 * k;
  b += get_group_id(0) * 32;
  float sum = 0;
  for (int s = 0; s < k; s += 32) {
    as[y * 32 + x] = a[y * k + x];
    bs[y * 32 + x] = b[y * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    a += 32;
    b += 32 * n;
    UNROLL for (int i = 0; i < 32; ++i) sum = fma(as[y * 32 + i], bs[i * 32 + x], sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[(get_group_id(1) * 32 + y) * n + get_group_id(0) * 32 + x] = sum;
}
#elif STEP == 4
__kernel __attribute__((reqd_work_group_size(BM * BN / TM, 1, 1))) void ladder(
    __global const float* restrict a, __global const float* restrict b, __global float* restrict c,
    const int m, const int n, const int k) {
  __local float as[BM * BK] __attribute__((aligned(16))), bs[BK * BN] __attribute__((aligned(16)));
  const int id = get_local_id(0), x = id % BN, y = id / BN;
  a += get_group_id(1) * BM * k;
  b += get_group_id(0) * BN;
  float sum[TM];
  UNROLL for (int i = 0; i < TM; ++i) sum[i] = 0;
  for (int s = 0; s < k; s += BK) {
    as[id / BK * BK + id % BK] = a[id / BK * k + id % BK];
    bs[id / BN * BN + id % BN] = b[id / BN * n + id % BN];
    barrier(CLK_LOCAL_MEM_FENCE);
    a += BK;
    b += BK * n;
    UNROLL for (int l = 0; l < BK; ++l) {
      const float v = bs[l * BN + x];
      UNROLL for (int i = 0; i < TM; ++i) sum[i] = fma(as[(y * TM + i) * BK + l], v, sum[i]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  UNROLL for (int i = 0; i < TM; ++i)
    c[(get_group_id(1) * BM + y * TM + i) * n + get_group_id(0) * BN + x] = sum[i];
}
#elif STEP == 5 || STEP == 6
#define T (BM * BN / (TM * TN))
__kernel __attribute__((reqd_work_group_size(T, 1, 1))) void ladder(
    __global const float* restrict a, __global const float* restrict b, __global float* restrict c,
    const int m, const int n, const int k) {
  __local float as[BM * BK] __attribute__((aligned(16))), bs[BK * BN] __attribute__((aligned(16)));
  const int id = get_local_id(0), x = id % (BN / TN), y = id / (BN / TN);
  a += get_group_id(1) * BM * k;
  b += get_group_id(0) * BN;
  float sum[TM][TN];
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j) sum[i][j] = 0;
  for (int s = 0; s < k; s += BK) {
#if STEP == 5
    UNROLL for (int o = 0; o < BM; o += T / BK) as[(id / BK + o) * BK + id % BK] = a[(id / BK + o) * k + id % BK];
    UNROLL for (int o = 0; o < BK; o += T / BN) bs[(id / BN + o) * BN + id % BN] = b[(id / BN + o) * n + id % BN];
#else
    UNROLL for (int o = 0; o < BM; o += T * 4 / BK) {
      const int r = id / (BK / 4) + o, q = id % (BK / 4) * 4;
      const float4 v = *(__global const float4*)(a + r * k + q);
      as[(q + 0) * BM + r] = v.x;
      as[(q + 1) * BM + r] = v.y;
      as[(q + 2) * BM + r] = v.z;
      as[(q + 3) * BM + r] = v.w;
    }
    UNROLL for (int o = 0; o < BK; o += T * 4 / BN) {
      const int r = id / (BN / 4) + o, q = id % (BN / 4) * 4;
      *(__local float4*)(bs + r * BN + q) = *(__global const float4*)(b + r * n + q);
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    a += BK;
    b += BK * n;
    UNROLL for (int l = 0; l < BK; ++l) {
      float u[TM], v[TN];
#if STEP == 5
      UNROLL for (int i = 0; i < TM; ++i) u[i] = as[(y * TM + i) * BK + l];
#else
      UNROLL for (int i = 0; i < TM; i += 4) *(float4*)(u + i) = *(__local const float4*)(as + l * BM + y * TM + i);
#endif
      UNROLL for (int j = 0; j < TN; j += 4) *(float4*)(v + j) = *(__local const float4*)(bs + l * BN + x * TN + j);
      UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j) sum[i][j] = fma(u[i], v[j], sum[i][j]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; j += 4)
    *(__global float4*)(c + (get_group_id(1) * BM + y * TM + i) * n + get_group_id(0) * BN + x * TN + j) =
        (float4)(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
}
#else
#define T (BM / WM * (BN / WN) * 32)
#define WMITER (WM * WN / (32 * TM * TN * WNITER))
#define SM_ (WM / WMITER)
#define SN_ (WN / WNITER)
__kernel __attribute__((reqd_work_group_size(T, 1, 1))) void ladder(
    __global const float* restrict a, __global const float* restrict b, __global float* restrict c,
    const int m, const int n, const int k) {
  __local float as[BM * BK] __attribute__((aligned(16))), bs[BK * BN] __attribute__((aligned(16)));
  const int id = get_local_id(0), warp = id / 32, lane = id % 32;
  const int wy = warp / (BN / WN), wx = warp % (BN / WN), ly = lane / (SN_ / TN), lx = lane % (SN_ / TN);
  a += get_group_id(1) * BM * k;
  b += get_group_id(0) * BN;
  float sum[WMITER * TM][WNITER * TN];
  UNROLL for (int i = 0; i < WMITER * TM; ++i) UNROLL for (int j = 0; j < WNITER * TN; ++j) sum[i][j] = 0;
  for (int s = 0; s < k; s += BK) {
    UNROLL for (int o = 0; o < BM; o += T * 4 / BK) {
      const int r = id / (BK / 4) + o, q = id % (BK / 4) * 4;
      const float4 v = *(__global const float4*)(a + r * k + q);
      as[(q + 0) * BM + r] = v.x;
      as[(q + 1) * BM + r] = v.y;
      as[(q + 2) * BM + r] = v.z;
      as[(q + 3) * BM + r] = v.w;
    }
    UNROLL for (int o = 0; o < BK; o += T * 4 / BN) {
      const int r = id / (BN / 4) + o, q = id % (BN / 4) * 4;
      *(__local float4*)(bs + r * BN + q) = *(__global const float4*)(b + r * n + q);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    a += BK;
    b += BK * n;
    UNROLL for (int l = 0; l < BK; ++l) {
      float u[WMITER * TM], v[WNITER * TN];
      UNROLL for (int w = 0; w < WMITER; ++w) UNROLL for (int i = 0; i < TM; i += 4)
        *(float4*)(u + w * TM + i) = *(__local const float4*)(as + l * BM + wy * WM + w * SM_ + ly * TM + i);
      UNROLL for (int w = 0; w < WNITER; ++w) UNROLL for (int j = 0; j < TN; j += 4)
        *(float4*)(v + w * TN + j) = *(__local const float4*)(bs + l * BN + wx * WN + w * SN_ + lx * TN + j);
      UNROLL for (int i = 0; i < WMITER * TM; ++i) UNROLL for (int j = 0; j < WNITER * TN; ++j)
        sum[i][j] = fma(u[i], v[j], sum[i][j]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  UNROLL for (int w = 0; w < WMITER; ++w) UNROLL for (int x = 0; x < WNITER; ++x)
    UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; j += 4) {
      const int r = w * TM + i, q = x * TN + j;
      *(__global float4*)(c + (get_group_id(1) * BM + wy * WM + w * SM_ + ly * TM + i) * n +
                          get_group_id(0) * BN + wx * WN + x * SN_ + lx * TN + j) =
          (float4)(sum[r][q], sum[r][q + 1], sum[r][q + 2], sum[r][q + 3]);
    }
}
#endif
