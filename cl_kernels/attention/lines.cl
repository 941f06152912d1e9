// attention_lines: attention as engine/ops/nn/attention.h has it; a work-item takes V queries of one head,
// a lane each, and goes through the keys KT at a time with the largest score, the sum and the result
// so far (online softmax). SIZE, VALUES: sizes of heads of keys and of values; at, batch, head, row:
// where element 0 of a row stands, in elements. WINDOW: left or right bounds what a query sees, -1 is
// no bound; STARTS: places of first queries are given, else FROM_END says whence they count.
// T: dtype; computed in float, f64 in double (V = 1).
// VARIANT: -DT=f32 -DV=16 -DSIZE=32 -DVALUES=32 -DIDX=int -DMASK=1 -DCAP=0 -DLENGTHS=0 -DSTARTS=0 -DSINK=0 -DWINDOW=0 -DFROM_END=0 -DBLIND=NAN
// VARIANT: -DT=f16 -DV=8 -DSIZE=40 -DVALUES=24 -DIDX=int -DMASK=0 -DCAP=0 -DLENGTHS=1 -DSTARTS=0 -DSINK=0 -DWINDOW=1 -DFROM_END=1 -DBLIND=0
// VARIANT: -DT=bf16 -DV=4 -DSIZE=64 -DVALUES=64 -DIDX=long -DMASK=1 -DCAP=1 -DLENGTHS=1 -DSTARTS=1 -DSINK=1 -DWINDOW=1 -DFROM_END=0 -DBLIND=0
// VARIANT: -DT=f64 -DV=1 -DSIZE=64 -DVALUES=64 -DIDX=int -DMASK=1 -DCAP=1 -DLENGTHS=1 -DSTARTS=1 -DSINK=1 -DWINDOW=1 -DFROM_END=0 -DBLIND=NAN
#include "common/dtype.clh"
#include "common/group.clh"

#define KT 8
#define ACC CARRY(T)
#if V == 1
#define VACC ACC
#define FROM_LANES(p) (*(p))
#define TO_LANES(v, p) (*(p) = (v))
#define OR_ZERO(v) ((v) == -INFINITY ? (ACC)0 : (v))
#else
#define VACC CAT(float, V)
#define FROM_LANES(p) CAT(vload, V)(0, p)
#define TO_LANES(v, p) CAT(vstore, V)(v, 0, p)
#define OR_ZERO(v) select((v), (VACC)(0), (v) == (VACC)(-INFINITY))
#endif
#define EACH_KEY(j) _Pragma("unroll") for (int j = 0; j < KT; ++j)

__kernel void attention_lines(
    __global const MEM(T)* restrict q, __global const MEM(T)* restrict k,
    __global const MEM(T)* restrict v, __global const MEM(T)* restrict mask,
    __global const long* restrict lengths, __global const long* restrict starts,
    __global const MEM(T)* restrict sink, __global MEM(T)* restrict y, const IDX items,
    const IDX tiles, const IDX heads, const IDX shared_by, const IDX rows, const IDX keys,
    const IDX q_at, const IDX q_batch, const IDX q_head, const IDX q_row, const IDX k_at,
    const IDX k_batch, const IDX k_head, const IDX k_row, const IDX v_at, const IDX v_batch,
    const IDX v_head, const IDX v_row, const IDX y_batch, const IDX y_head, const IDX y_row,
    const IDX mask_batch, const IDX mask_head, const IDX mask_row, const IDX mask_key,
    const long left, const long right, const float scale, const float cap) {
  const IDX item = get_global_id(0);
  if (item >= items) return;
  const IDX row0 = item % tiles * V, head = item / tiles % heads, batch = item / tiles / heads;

  // What each lane sees; lanes beyond the last query repeat it and store nothing.
  long there = keys;
#if LENGTHS
  there = clamp(lengths[batch], (long)0, there);
#endif
  IDX first[V], end[V], lowest = keys, highest = 0, all_from = 0, all_to = keys;
  for (int i = 0; i < V; ++i) {
    long from = 0, to = there;
#if WINDOW
    long place = min(row0 + i, rows - 1);
#if STARTS
    place += clamp(starts[batch], -((long)1 << 40), (long)1 << 40);
#elif FROM_END
    place += there - rows;
#endif
    if (left >= 0) from = clamp(place - left, (long)0, there);
    if (right >= 0) to = clamp(place + right + 1, from, there);
#endif
    first[i] = (IDX)from;
    end[i] = (IDX)to;
    if (from < to) {
      lowest = min(lowest, first[i]);
      highest = max(highest, end[i]);
    }
    all_from = max(all_from, first[i]);
    all_to = min(all_to, end[i]);
  }

  ACC lanes[V];
  VACC query[SIZE > 0 ? SIZE : 1], sum[VALUES];
  for (int d = 0; d < SIZE; ++d) {
    for (int i = 0; i < V; ++i) {
      const IDX row = min(row0 + i, rows - 1);
      lanes[i] = LOAD(T, q, q_at + batch * q_batch + head * q_head + row * q_row + d);
    }
    query[d] = FROM_LANES(lanes) * (ACC)scale;
  }
  for (int d = 0; d < VALUES; ++d) sum[d] = 0;
  VACC best = -INFINITY, total = 0;
#if SINK
  const ACC sinks = LOAD(T, sink, head);
  if (sinks != -INFINITY) {
    best = sinks;
    total = 1;
  }
#endif
  const IDX shared = head / shared_by;
  const IDX k0 = k_at + batch * k_batch + shared * k_head;
  const IDX v0 = v_at + batch * v_batch + shared * v_head;
  for (IDX key = lowest; key < highest; key += KT) {
    IDX place[KT];
    VACC s[KT];
    EACH_KEY(j) {
      place[j] = min(key + j, highest - 1);
      s[j] = 0;
    }
    for (int d = 0; d < SIZE; ++d) {
      EACH_KEY(j) s[j] += query[d] * (VACC)(LOAD(T, k, k0 + place[j] * k_row + d));
    }
#if CAP
    EACH_KEY(j) s[j] = tanh(s[j] / (ACC)cap) * (ACC)cap;
#endif
#if MASK
    const IDX mask0 = batch * mask_batch + head * mask_head;
    EACH_KEY(j) {
      for (int i = 0; i < V; ++i) {
        const IDX row = min(row0 + i, rows - 1);
        lanes[i] = LOAD(T, mask, mask0 + row * mask_row + place[j] * mask_key);
      }
      s[j] += FROM_LANES(lanes);
    }
#endif
    if (key < all_from || key + KT > all_to) {
      EACH_KEY(j) {
        TO_LANES(s[j], lanes);
        for (int i = 0; i < V; ++i) {
          if (key + j < first[i] || key + j >= end[i]) lanes[i] = -INFINITY;
        }
        s[j] = FROM_LANES(lanes);
      }
    }
    VACC now = best;
    EACH_KEY(j) now = fmax(now, s[j]);
    const VACC from = OR_ZERO(now);  // nothing but hidden keys so far
    const VACC less = exp(best - from);
    best = now;
    total *= less;
    EACH_KEY(j) {
      s[j] = exp(s[j] - from);
      total += s[j];
    }
    for (int d = 0; d < VALUES; ++d) {
      VACC part = sum[d] * less;
      EACH_KEY(j) part += s[j] * (VACC)(LOAD(T, v, v0 + place[j] * v_row + d));
      sum[d] = part;
    }
  }

  ACC totals[V];
  TO_LANES(total, totals);
  for (int d = 0; d < VALUES; ++d) {
    TO_LANES(sum[d], lanes);
    for (int i = 0; i < V && row0 + i < rows; ++i) {
      const ACC result = totals[i] == 0 ? (ACC)BLIND : lanes[i] / totals[i];
      STORE(T, y, batch * y_batch + head * y_head + (row0 + i) * y_row + d, result);
    }
  }
}
