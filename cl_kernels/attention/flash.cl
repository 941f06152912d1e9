// attention_flash: attention as engine/ops/nn/attention.h has it, without the matrix of scores in between:
// keys come in tiles of 32 through local memory, with a running maximum and sum of each query (online
// softmax). A group takes BQ queries of one head with 2 * BQ work-items: 8 side by side for each four
// queries, each with 4 queries x 4 keys of the scores and 4 queries x D / 8 of the result. Where groups
// are too few for the device they have two PARTS of so many work-items: each goes through every second
// tile of keys, and what both found is brought together at the end.
// SIZE, VALUES: sizes of heads of keys and of values, D: the next multiple of 32 of both, at most 128.
// at, batch, head, row: where element 0 of a row stands, in elements. MASK 1: one for all queries of a
// head, 2: a row for each. WIDE: rows of q, k, v and y begin at multiples of four elements, as do their
// heads. AHEAD: the next tile is read while this one is computed, for which it needs registers. The
// other macros are those of attention_lines. T: f32, f16 or bf16 in memory.
// VARIANT: -DT=f32 -DD=32 -DSIZE=32 -DVALUES=32 -DBQ=64 -DPARTS=1 -DWIDE=1 -DAHEAD=1 -DIDX=int -DMASK=1 -DCAP=0 -DLENGTHS=0 -DSTARTS=0 -DSINK=0 -DWINDOW=0 -DFROM_END=0 -DBLIND=NAN
// VARIANT: -DT=f16 -DD=64 -DSIZE=64 -DVALUES=64 -DBQ=64 -DPARTS=1 -DWIDE=1 -DAHEAD=1 -DIDX=int -DMASK=0 -DCAP=0 -DLENGTHS=1 -DSTARTS=0 -DSINK=0 -DWINDOW=1 -DFROM_END=1 -DBLIND=0
// VARIANT: -DT=f32 -DD=64 -DSIZE=64 -DVALUES=64 -DBQ=32 -DPARTS=1 -DWIDE=1 -DAHEAD=1 -DIDX=int -DMASK=0 -DCAP=0 -DLENGTHS=0 -DSTARTS=0 -DSINK=0 -DWINDOW=1 -DFROM_END=0 -DBLIND=NAN
// VARIANT: -DT=bf16 -DD=96 -DSIZE=80 -DVALUES=72 -DBQ=32 -DPARTS=1 -DWIDE=0 -DAHEAD=0 -DIDX=long -DMASK=2 -DCAP=1 -DLENGTHS=1 -DSTARTS=1 -DSINK=1 -DWINDOW=1 -DFROM_END=0 -DBLIND=0
// VARIANT: -DT=f32 -DD=128 -DSIZE=128 -DVALUES=128 -DBQ=32 -DPARTS=1 -DWIDE=1 -DAHEAD=0 -DIDX=int -DMASK=2 -DCAP=0 -DLENGTHS=0 -DSTARTS=0 -DSINK=0 -DWINDOW=0 -DFROM_END=0 -DBLIND=NAN
// VARIANT: -DT=f32 -DD=64 -DSIZE=64 -DVALUES=64 -DBQ=32 -DPARTS=2 -DWIDE=1 -DAHEAD=1 -DIDX=int -DMASK=1 -DCAP=0 -DLENGTHS=0 -DSTARTS=0 -DSINK=0 -DWINDOW=0 -DFROM_END=0 -DBLIND=NAN
// VARIANT: -DT=f16 -DD=32 -DSIZE=32 -DVALUES=32 -DBQ=32 -DPARTS=2 -DWIDE=1 -DAHEAD=1 -DIDX=int -DMASK=2 -DCAP=0 -DLENGTHS=1 -DSTARTS=0 -DSINK=1 -DWINDOW=1 -DFROM_END=1 -DBLIND=0
// VARIANT: -DT=f32 -DD=32 -DSIZE=32 -DVALUES=32 -DBQ=32 -DPARTS=1 -DWIDE=1 -DAHEAD=1 -DIDX=int -DMASK=0 -DCAP=0 -DLENGTHS=0 -DSTARTS=0 -DSINK=0 -DWINDOW=0 -DFROM_END=0 -DBLIND=NAN
#include "common/attention.clh"
#include "common/quad.clh"

#define ROWS 4               // queries of a work-item
#define PART (BQ / ROWS * 8)  // work-items of a part
#define THREADS (PART * PARTS)
#define BK 32
#define QUADS (D / 32)       // quads of the result in a work-item
#define Q_PITCH (BQ + 4)     // queries as [d][query]
#define K_PITCH (BK + 4)     // keys as [d][key]; values as [key][d] in the same place
#define P_PITCH (BQ + 4)     // weights as [key][query]
#define LOADS (BK * D / 4 / PART)
#define Q_LOADS (BQ * D / 4 / THREADS)
#define MULTIPLY(s, a, b)                   \
  (s)[0] = fma((float4)((a).x), b, (s)[0]); \
  (s)[1] = fma((float4)((a).y), b, (s)[1]); \
  (s)[2] = fma((float4)((a).z), b, (s)[2]); \
  (s)[3] = fma((float4)((a).w), b, (s)[3]);
// Which row and quad of numbers a work-item moves: 8 rows x 4 quads for each 32 work-items, so that
// two of them at most meet in a bank of local memory when rows become columns.
#define ROW_OF(at, rows) (((at) & 7) | ((at) >> 5 & ((rows) / 8 - 1)) << 3)
#define QUAD_OF(at, rows) (((at) >> 3 & 3) | (at) / (4 * (rows)) * 4)

// Numbers d .. d + 3 of a row of `size`, zeros behind its end.
float4 read4(__global const MEM(T)* p, const int d, const int size) {
#if WIDE && SIZE == D && VALUES == D
  return LOAD4(p + d);
#else
  if (WIDE && d + 4 <= size) return LOAD4(p + d);
  float4 some = 0;
  if (d < size) some.x = LOAD(T, p, d);
  if (d + 1 < size) some.y = LOAD(T, p, d + 1);
  if (d + 2 < size) some.z = LOAD(T, p, d + 2);
  if (d + 3 < size) some.w = LOAD(T, p, d + 3);
  return some;
#endif
}
void write4(const float4 v, __global MEM(T)* p, const int d) {
  if (WIDE && d + 4 <= VALUES) {
    STORE4(v, p + d);
  } else {
    if (d < VALUES) STORE(T, p, d, v.x);
    if (d + 1 < VALUES) STORE(T, p, d + 1, v.y);
    if (d + 2 < VALUES) STORE(T, p, d + 2, v.z);
    if (d + 3 < VALUES) STORE(T, p, d + 3, v.w);
  }
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void attention_flash(
    ATTENTION_TENSORS, const IDX tiles, ATTENTION_SIZES) {
  __local float q_tile[D * Q_PITCH] __attribute__((aligned(16)));
  __local float kv_tiles[PARTS * D * K_PITCH] __attribute__((aligned(16)));
  __local float p_tiles[PARTS * BK * P_PITCH] __attribute__((aligned(16)));
  __local float bests_of[PARTS * BQ * 8] __attribute__((aligned(16)));
#if PARTS > 1
  const int part = get_local_id(0) / PART, lid = get_local_id(0) % PART;
#else
  const int part = 0, lid = get_local_id(0);
#endif
  __local float* const kv_tile = kv_tiles + part * D * K_PITCH;
  __local float* const p_tile = p_tiles + part * BK * P_PITCH;
  __local float* const best_of = bests_of + part * BQ * 8;
  const IDX group = get_group_id(0);
  const IDX query0 = group % tiles * BQ, head = group / tiles % heads, batch = group / tiles / heads;
  // Of the lowest 5 bits 0, 2 and 3 say which of the 8 columns, the others which ROWS queries.
  const int column = (lid & 1) | (lid >> 1 & 6);
  const int row0 = ((lid >> 1 & 1) | (lid >> 3 & 2) | (lid >> 5 << 2)) * ROWS;
  q += q_at + batch * q_batch + head * q_head;
  k += k_at + batch * k_batch + head / shared_by * k_head;
  v += v_at + batch * v_batch + head / shared_by * v_head;
  y += batch * y_batch + head * y_head;

  KEYS_SEEN(query0, min(query0 + BQ, rows) - 1)
  UNROLL for (int i = 0; i < Q_LOADS; ++i) {
    const int at = get_local_id(0) + i * THREADS, row = ROW_OF(at, BQ), d = QUAD_OF(at, BQ) * 4;
    const float4 u = read4(q + min(query0 + row, rows - 1) * q_row, d, SIZE) * scale;
    q_tile[(d + 0) * Q_PITCH + row] = u.x;
    q_tile[(d + 1) * Q_PITCH + row] = u.y;
    q_tile[(d + 2) * Q_PITCH + row] = u.z;
    q_tile[(d + 3) * Q_PITCH + row] = u.w;
  }
#if AHEAD
  float4 ahead_k[LOADS], ahead_v[LOADS];
#endif
  float4 sum[QUADS][ROWS];
  float best[ROWS], total[ROWS];
#if SINK  // counts once, among the keys of the first part's first column
  const float sinks = LOAD(T, sink, head);
  const float start_total = part == 0 && column == 0 && sinks != -INFINITY ? 1 : 0;
#else
  const float sinks = -INFINITY, start_total = 0;
#endif
  UNROLL for (int i = 0; i < ROWS; ++i) {
    best[i] = sinks;
    total[i] = start_total;  // of this work-item's keys
    UNROLL for (int j = 0; j < QUADS; ++j) sum[j][i] = 0;
  }
#define KEYS_AT(key) read4(k + min((key) + ROW_OF(at, BK), highest - 1) * k_row, QUAD_OF(at, BK) * 4, SIZE)
#define VALUES_AT(key) read4(v + min((key) + at / (D / 4), highest - 1) * v_row, at % (D / 4) * 4, VALUES)
#if AHEAD
#define LOAD_KEYS(key)                     \
  UNROLL for (int i = 0; i < LOADS; ++i) { \
    const int at = lid + i * PART;      \
    ahead_k[i] = KEYS_AT(key);             \
  }
#define EACH_LOAD UNROLL
#define KEYS(i, key) ahead_k[i]
#define VALUES_OF(i, key) ahead_v[i]
#else
#define LOAD_KEYS(key)
#define EACH_LOAD _Pragma("unroll 4")
#define KEYS(i, key) KEYS_AT(key)
#define VALUES_OF(i, key) VALUES_AT(key)
#endif
  if (lowest < highest) {
    LOAD_KEYS(lowest + part * BK)
  }
  // All parts take as many rounds: the last ones may have no keys left, which is as if all were hidden.
  for (IDX first = lowest + part * BK; first - part * BK < highest; first += BK * PARTS) {
    EACH_LOAD for (int i = 0; i < LOADS; ++i) {
      const int at = lid + i * PART, row = ROW_OF(at, BK), d = QUAD_OF(at, BK) * 4;
      const float4 u = KEYS(i, first);
      kv_tile[(d + 0) * K_PITCH + row] = u.x;
      kv_tile[(d + 1) * K_PITCH + row] = u.y;
      kv_tile[(d + 2) * K_PITCH + row] = u.z;
      kv_tile[(d + 3) * K_PITCH + row] = u.w;
    }
#if AHEAD
    UNROLL for (int i = 0; i < LOADS; ++i) {  // arrives while scores are computed
      const int at = lid + i * PART;
      ahead_v[i] = VALUES_AT(first);
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    float4 s[ROWS];
    UNROLL for (int i = 0; i < ROWS; ++i) s[i] = 0;
    _Pragma("unroll 8") for (int d = 0; d < D; ++d) {
      const float4 a = *(__local const float4*)(q_tile + d * Q_PITCH + row0);
      const float4 b = *(__local const float4*)(kv_tile + d * K_PITCH + column * 4);
      MULTIPLY(s, a, b)
    }
    const IDX key = first + column * 4;
#if CAP
    UNROLL for (int i = 0; i < ROWS; ++i) s[i] = tanh(s[i] / cap) * cap;
#endif
#if MASK
#define MASK_AT(row, j) \
  LOAD(T, mask, batch * mask_batch + head * mask_head + (row) * mask_row + min(key + j, highest - 1) * mask_key)
#define MASK_ROW(row) (float4)(MASK_AT(row, 0), MASK_AT(row, 1), MASK_AT(row, 2), MASK_AT(row, 3))
#if MASK == 1
    const float4 add = MASK_ROW(0);
    UNROLL for (int i = 0; i < ROWS; ++i) s[i] += add;
#else
    UNROLL for (int i = 0; i < ROWS; ++i) {
      const IDX row = min(query0 + row0 + i, rows - 1);
      s[i] += MASK_ROW(row);
    }
#endif
#endif
#if !WINDOW
    if (first + BK > highest)  // only the last tile
#endif
    {
      UNROLL for (int i = 0; i < ROWS; ++i) {
        const IDX row = min(query0 + row0 + i, rows - 1);
        const IDX from = (IDX)FIRST_SEEN(row), to = (IDX)END_SEEN(row);
        s[i].x = key >= from && key < to ? s[i].x : -INFINITY;
        s[i].y = key + 1 >= from && key + 1 < to ? s[i].y : -INFINITY;
        s[i].z = key + 2 >= from && key + 2 < to ? s[i].z : -INFINITY;
        s[i].w = key + 3 >= from && key + 3 < to ? s[i].w : -INFINITY;
      }
    }
    UNROLL for (int i = 0; i < ROWS; ++i) {
      best_of[(row0 + i) * 8 + column] = fmax(fmax(s[i].x, s[i].y), fmax(s[i].z, s[i].w));
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // all have read the keys; all maxima are there
    float4 p[ROWS];
    UNROLL for (int i = 0; i < ROWS; ++i) {
      const float4 m0 = *(__local const float4*)(best_of + (row0 + i) * 8);
      const float4 m1 = *(__local const float4*)(best_of + (row0 + i) * 8 + 4);
      const float4 m2 = fmax(m0, m1);
      const float now = fmax(best[i], fmax(fmax(m2.x, m2.y), fmax(m2.z, m2.w)));
      const float from = now == -INFINITY ? 0 : now;  // nothing but hidden keys so far
      const float less = exp2((best[i] - from) * M_LOG2E_F);
      best[i] = now;
      p[i] = exp2((s[i] - from) * M_LOG2E_F);
      total[i] = fma(total[i], less, (p[i].x + p[i].y) + (p[i].z + p[i].w));
      UNROLL for (int j = 0; j < QUADS; ++j) sum[j][i] *= less;
    }
    __local float* p_to = p_tile + column * 4 * P_PITCH + row0;
    *(__local float4*)(p_to + 0 * P_PITCH) = (float4)(p[0].x, p[1].x, p[2].x, p[3].x);
    *(__local float4*)(p_to + 1 * P_PITCH) = (float4)(p[0].y, p[1].y, p[2].y, p[3].y);
    *(__local float4*)(p_to + 2 * P_PITCH) = (float4)(p[0].z, p[1].z, p[2].z, p[3].z);
    *(__local float4*)(p_to + 3 * P_PITCH) = (float4)(p[0].w, p[1].w, p[2].w, p[3].w);
    EACH_LOAD for (int i = 0; i < LOADS; ++i) {
      const int at = lid + i * PART;
      *(__local float4*)(kv_tile + at * 4) = VALUES_OF(i, first);
    }
    if (first + BK * PARTS < highest) {  // arrives while values are added up
      LOAD_KEYS(first + BK * PARTS)
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    _Pragma("unroll 8") for (int l = 0; l < BK; ++l) {
      const float4 a = *(__local const float4*)(p_tile + l * P_PITCH + row0);
      UNROLL for (int j = 0; j < QUADS; ++j) {
        const float4 b = *(__local const float4*)(kv_tile + l * D + (j * 8 + column) * 4);
        MULTIPLY(sum[j], a, b)
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#if PARTS > 1  // maxima, then sums by the largest of them
  UNROLL for (int i = 0; i < ROWS; ++i) best_of[(row0 + i) * 8 + column] = best[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (int i = 0; i < ROWS; ++i) {
    float now = best[i];
    UNROLL for (int other = 0; other < PARTS; ++other) {
      now = fmax(now, bests_of[other * BQ * 8 + (row0 + i) * 8 + column]);
    }
    const float less = exp2((best[i] - (now == -INFINITY ? 0 : now)) * M_LOG2E_F);
    total[i] *= less;
    UNROLL for (int j = 0; j < QUADS; ++j) {
      *(__local float4*)(kv_tile + (row0 + i) * D + (j * 8 + column) * 4) = sum[j][i] * less;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);  // all have read the maxima
#endif
  UNROLL for (int i = 0; i < ROWS; ++i) best_of[(row0 + i) * 8 + column] = total[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  // Each part writes its share of the rows.
  UNROLL for (int share = 0; share < ROWS / PARTS; ++share) {
    const int i = share + part * (ROWS / PARTS), row = row0 + i;
    float4 t = 0;
    UNROLL for (int other = 0; other < PARTS; ++other) {
      __local const float* of = bests_of + (other * BQ + row) * 8;
      t += *(__local const float4*)of + *(__local const float4*)(of + 4);
    }
    const float all = (t.x + t.y) + (t.z + t.w);
    const float by = all == 0 ? (float)BLIND : 1 / all;
    if (query0 + row < rows) {
      UNROLL for (int j = 0; j < QUADS; ++j) {
#if PARTS > 1
        float4 result = 0;
        UNROLL for (int other = 0; other < PARTS; ++other) {
          result += *(__local const float4*)(kv_tiles + other * D * K_PITCH + row * D + (j * 8 + column) * 4);
        }
#else
        const float4 result = sum[j][i];
#endif
        write4(result * by, y + (query0 + row) * y_row, (j * 8 + column) * 4);
      }
    }
  }
}
