// attention_matrix: attention_flash on a matrix unit (common/matrix_unit.clh), for 16-bit tensors. A warp
// takes 16 queries of one head, and keys by tiles of 32: its scores are 16 x 32 sums of the unit, which
// come out where the unit wants the left operand of the next product, so that weights of keys stay in
// registers. They are rounded to T there; sums, maxima and results are in float.
//
//   4 warps:  PARTS 1   64 queries, one tile of keys for all
//             PARTS 2   32 queries; two warps go through the even tiles of keys, two through the odd ones
//             PARTS 4   16 queries; each warp goes through every fourth tile
//
// What parts found is brought together at the end. D: the next multiple of 16 of both sizes of heads.
// The other macros and the arguments are those of attention_flash.
// VARIANT: -DT=f16 -DD=64 -DSIZE=64 -DVALUES=64 -DPARTS=2 -DWIDE=1 -DMATRIX=1 -DMATRIX_PTX=1 -DIDX=int -DMASK=1 -DCAP=0 -DLENGTHS=0 -DSTARTS=0 -DSINK=0 -DWINDOW=0 -DFROM_END=0 -DBLIND=NAN
// VARIANT: -DT=f16 -DD=64 -DSIZE=64 -DVALUES=64 -DPARTS=1 -DWIDE=1 -DMATRIX=1 -DMATRIX_PTX=1 -DIDX=int -DMASK=0 -DCAP=0 -DLENGTHS=0 -DSTARTS=0 -DSINK=0 -DWINDOW=0 -DFROM_END=0 -DBLIND=NAN
// VARIANT: -DT=f16 -DD=64 -DSIZE=64 -DVALUES=64 -DPARTS=4 -DWIDE=1 -DMATRIX=1 -DMATRIX_PTX=1 -DIDX=int -DMASK=1 -DCAP=0 -DLENGTHS=0 -DSTARTS=0 -DSINK=0 -DWINDOW=0 -DFROM_END=0 -DBLIND=NAN
// VARIANT: -DT=bf16 -DD=80 -DSIZE=80 -DVALUES=72 -DPARTS=1 -DWIDE=0 -DMATRIX=1 -DIDX=long -DMASK=2 -DCAP=1 -DLENGTHS=1 -DSTARTS=1 -DSINK=1 -DWINDOW=1 -DFROM_END=0 -DBLIND=0
// VARIANT: -DT=f16 -DD=32 -DSIZE=32 -DVALUES=32 -DPARTS=4 -DWIDE=1 -DMATRIX=1 -DIDX=int -DMASK=0 -DCAP=0 -DLENGTHS=0 -DSTARTS=0 -DSINK=0 -DWINDOW=1 -DFROM_END=1 -DBLIND=NAN
#define WARPS 4
#define THREADS (32 * WARPS)
#define PART (THREADS / PARTS)  // work-items of a part
#define QUERIES (16 * WARPS / PARTS)
#define BK 32
#define UNROLL _Pragma("unroll")
#define PRAGMA(x) _Pragma(#x)
#define UNROLL_BY(n) PRAGMA(unroll n)
#include "common/attention.clh"
#include "common/matrix_unit.clh"

#define PITCH (D + MATRIX_PITCH)
#define LOADS (BK * D / 4 / PART)
#define AHEAD (LOADS <= 8)  // where there are registers
#define Q_QUADS (QUERIES * D / 4)
#define KEY_BLOCKS (BK / 8)
#define VALUE_BLOCKS (D / 8)

// Two numbers as one word of T.
#define PAIR(v) CAT(pair_of_, T)(v)
uint pair_of_bf16(const float2 v) { return bf16_bits(v.x) | (uint)bf16_bits(v.y) << 16; }
uint pair_of_f16(const float2 v) {
  ushort h[2];
  vstore_half_rte(v.x, 0, (half*)h);
  vstore_half_rte(v.y, 1, (half*)h);
  return h[0] | (uint)h[1] << 16;
}
// Numbers d .. d + 3 of a row of `size`, as they are; zeros behind its end.
ushort4 raw4(__global const MEM(T)* from, const int d, const int size) {
  __global const ushort* p = (__global const ushort*)from;
#if WIDE && SIZE == D && VALUES == D
  return *(__global const ushort4*)(p + d);
#else
  if (WIDE && d + 4 <= size) return *(__global const ushort4*)(p + d);
  ushort4 some = 0;
  if (d < size) some.x = p[d];
  if (d + 1 < size) some.y = p[d + 1];
  if (d + 2 < size) some.z = p[d + 2];
  if (d + 3 < size) some.w = p[d + 3];
  return some;
#endif
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_matrix(
    ATTENTION_TENSORS, const IDX tiles, ATTENTION_SIZES) {
  __local ushort q_tile[QUERIES * PITCH] __attribute__((aligned(16)));
  __local ushort kv_tiles[PARTS * 2 * BK * PITCH] __attribute__((aligned(16)));
  __local float best_of[PARTS * QUERIES], total_of[PARTS * QUERIES];
  MATRIX_MEMORY
  const int lid = get_local_id(0), lane = lid & 31, warp = lid >> 5;
#if PARTS > 1
  const int part = lid / PART, item = lid % PART;
#else
  const int part = 0, item = lid;
#endif
  __local ushort* const k_tile = kv_tiles + part * (2 * BK * PITCH);
  __local ushort* const v_tile = k_tile + BK * PITCH;
  const IDX group = get_group_id(0);
  const IDX query0 = group % tiles * QUERIES, head = group / tiles % heads;
  const IDX batch = group / tiles / heads;
  const int row0 = warp % (WARPS / PARTS) * 16, t = lane % 4;  // a lane has row0 + lane / 4 and 8 rows on
#define ROW(r) (row0 + lane / 4 + (r)*8)
  q += q_at + batch * q_batch + head * q_head;
  k += k_at + batch * k_batch + head / shared_by * k_head;
  v += v_at + batch * v_batch + head / shared_by * v_head;
  y += batch * y_batch + head * y_head;
  KEYS_SEEN(query0, min(query0 + QUERIES, rows) - 1)

  for (int at = lid; at < Q_QUADS; at += THREADS) {
    const int row = at / (D / 4), d = at % (D / 4) * 4;
    *(__local ushort4*)(q_tile + row * PITCH + d) =
        raw4(q + min(query0 + row, rows - 1) * q_row, d, SIZE);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  uint4 queries[D / 16];
#define QUERY_ROWS(i) (q_tile + (row0 + (i) / 8 % 2 * 8 + (i) % 8) * PITCH + d + (i) / 16 * 8)
  UNROLL for (int d = 0; d < D; d += 16) LOAD_MATRICES(queries[d / 16], QUERY_ROWS)

  float2 sum[2][VALUE_BLOCKS];
  float best[2], total[2];
#if SINK  // counts once, among the keys of the first part's first lanes
  const float sinks = LOAD(T, sink, head);
  const float start_total = part == 0 && t == 0 && sinks != -INFINITY ? 1 : 0;
#else
  const float sinks = -INFINITY, start_total = 0;
#endif
  UNROLL for (int r = 0; r < 2; ++r) {
    best[r] = sinks;
    total[r] = start_total;  // of this lane's keys
    UNROLL for (int n = 0; n < VALUE_BLOCKS; ++n) sum[r][n] = 0;
  }
  // What a work-item brings of a tile. Where no keys are left for a part, it takes the last one again,
  // hidden.
#define EACH_QUAD(first, body)                                                 \
  UNROLL for (int i = 0; i < LOADS; ++i) {                                     \
    const int at = item + i * PART, row = at / (D / 4), d = at % (D / 4) * 4;  \
    const IDX key = min((first) + row, highest - 1);                           \
    body                                                                       \
  }
#define KEY_QUAD raw4(k + key * k_row, d, SIZE)
#define VALUE_QUAD raw4(v + key * v_row, d, VALUES)
#define STORE_QUAD(tile, quad) *(__local ushort4*)(tile + row * PITCH + d) = quad;
#if AHEAD  // the next tile is read while one is computed
  ushort4 ahead_k[LOADS], ahead_v[LOADS];
#define LOAD_AHEAD(first) \
  if ((first) - part * BK < highest) EACH_QUAD(first, ahead_k[i] = KEY_QUAD; ahead_v[i] = VALUE_QUAD;)
#else
#define LOAD_AHEAD(first)
#endif
  LOAD_AHEAD(lowest + part * BK)
  for (IDX first = lowest + part * BK; first - part * BK < highest; first += BK * PARTS) {
#if AHEAD
    EACH_QUAD(first, STORE_QUAD(k_tile, ahead_k[i]) STORE_QUAD(v_tile, ahead_v[i]))
#else
    EACH_QUAD(first, STORE_QUAD(k_tile, KEY_QUAD) STORE_QUAD(v_tile, VALUE_QUAD))
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    LOAD_AHEAD(first + BK * PARTS)
    // Scores: a pair of keys in each of both rows for every 8 keys.
    float2 s[2][KEY_BLOCKS];
    UNROLL for (int n = 0; n < KEY_BLOCKS; ++n) s[0][n] = s[1][n] = 0;
#define KEY_ROWS(i) (k_tile + (n * 8 + (i) / 16 * 8 + (i) % 8) * PITCH + d + (i) / 8 % 2 * 8)
    MATRIX_UNROLL for (int d = 0; d < D; d += 16) {
      MATRIX_UNROLL for (int n = 0; n < KEY_BLOCKS; n += 2) {
        uint4 u;
        LOAD_MATRICES(u, KEY_ROWS)
        MATRIX_MULTIPLY(s[0][n], s[1][n], queries[d / 16], u.x, u.y)
        MATRIX_MULTIPLY(s[0][n + 1], s[1][n + 1], queries[d / 16], u.z, u.w)
      }
    }
    UNROLL for (int r = 0; r < 2; ++r) {
      const IDX row = min(query0 + ROW(r), rows - 1);
      const IDX from = (IDX)FIRST_SEEN(row), to = (IDX)END_SEEN(row);
      float most = best[r];
      UNROLL for (int n = 0; n < KEY_BLOCKS; ++n) {
        const IDX key = first + n * 8 + t * 2;
        float2 x = s[r][n] * scale;
#if CAP
        x = tanh(x / cap) * cap;
#endif
#if MASK
#define MASK_AT(key)                                                                              \
  LOAD(T, mask, batch * mask_batch + head * mask_head + (MASK == 2 ? row * mask_row : 0) + \
                    min(key, highest - 1) * mask_key)
        x += (float2)(MASK_AT(key), MASK_AT(key + 1));
#endif
        x.x = key >= from && key < to ? x.x : -INFINITY;
        x.y = key + 1 >= from && key + 1 < to ? x.y : -INFINITY;
        s[r][n] = x;
        most = fmax(most, fmax(x.x, x.y));
      }
      float other;
      FROM_LANE(other, most, 1)
      most = fmax(most, other);
      FROM_LANE(other, most, 2)
      most = fmax(most, other);
      const float less_by = most == -INFINITY ? 0 : most;  // nothing but hidden keys so far
      const float less = exp2((best[r] - less_by) * M_LOG2E_F);
      best[r] = most;
      float added = 0;
      UNROLL for (int n = 0; n < KEY_BLOCKS; ++n) {
        s[r][n] = exp2((s[r][n] - less_by) * M_LOG2E_F);
        added += s[r][n].x + s[r][n].y;
      }
      total[r] = fma(total[r], less, added);
      UNROLL for (int n = 0; n < VALUE_BLOCKS; ++n) sum[r][n] *= less;
    }
    // Values, 16 keys and 16 columns at a time. A lane's scores are its words of the left operand.
#define VALUE_ROWS(i) (v_tile + (l * 8 + (i) / 8 % 2 * 8 + (i) % 8) * PITCH + n * 8 + (i) / 16 * 8)
    MATRIX_UNROLL for (int l = 0; l < KEY_BLOCKS; l += 2) {
      const uint4 weights = (uint4)(PAIR(s[0][l]), PAIR(s[1][l]), PAIR(s[0][l + 1]), PAIR(s[1][l + 1]));
      MATRIX_UNROLL for (int n = 0; n < VALUE_BLOCKS; n += 2) {
        uint4 u;
        LOAD_MATRICES_TURNED(u, VALUE_ROWS)
        MATRIX_MULTIPLY(sum[0][n], sum[1][n], weights, u.x, u.y)
        MATRIX_MULTIPLY(sum[0][n + 1], sum[1][n + 1], weights, u.z, u.w)
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  UNROLL for (int r = 0; r < 2; ++r) {
    float other;
    FROM_LANE(other, total[r], 1)
    total[r] += other;
    FROM_LANE(other, total[r], 2)
    total[r] += other;
  }
#if PARTS > 1  // maxima, then sums by the largest of them, in the place of the tiles
  __local float* const sums = (__local float*)kv_tiles;
#define SUMS_OF(part, row, n) \
  (*(__local float2*)(sums + ((part)*QUERIES + (row)) * D + (n)*8 + t * 2))
  UNROLL for (int r = 0; r < 2; ++r) {
    if (t == 0) best_of[part * QUERIES + ROW(r)] = best[r];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (int r = 0; r < 2; ++r) {
    float most = best[r];
    UNROLL for (int other = 0; other < PARTS; ++other) {
      most = fmax(most, best_of[other * QUERIES + ROW(r)]);
    }
    const float less = exp2((best[r] - (most == -INFINITY ? 0 : most)) * M_LOG2E_F);
    if (t == 0) total_of[part * QUERIES + ROW(r)] = total[r] * less;
    UNROLL for (int n = 0; n < VALUE_BLOCKS; ++n) SUMS_OF(part, ROW(r), n) = sum[r][n] * less;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#endif
  // Each part writes its share of the columns.
  UNROLL for (int r = 0; r < 2; ++r) {
    const IDX query = query0 + ROW(r);
#if PARTS > 1
    float all = 0;
    UNROLL for (int other = 0; other < PARTS; ++other) all += total_of[other * QUERIES + ROW(r)];
#else
    const float all = total[r];
#endif
    const float by = all == 0 ? (float)BLIND : 1 / all;
    UNROLL for (int n0 = 0; n0 < VALUE_BLOCKS; n0 += PARTS) {
      const int n = n0 + part, d = n * 8 + t * 2;
#if PARTS > 1
      if (n >= VALUE_BLOCKS) continue;
      float2 result = 0;
      UNROLL for (int other = 0; other < PARTS; ++other) result += SUMS_OF(other, ROW(r), n);
#else
      const float2 result = sum[r][n];
#endif
      if (query < rows && d < VALUES) STORE(T, y + query * y_row, d, result.x * by);
      if (query < rows && d + 1 < VALUES) STORE(T, y + query * y_row, d + 1, result.y * by);
    }
  }
}
