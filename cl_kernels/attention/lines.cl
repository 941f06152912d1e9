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
#include "common/attention.clh"
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
    ATTENTION_TENSORS, const IDX items, const IDX tiles, ATTENTION_SIZES) {
  const IDX item = get_global_id(0);
  if (item >= items) return;
  const IDX row0 = item % tiles * V, head = item / tiles % heads, batch = item / tiles / heads;

  // What each lane sees; lanes beyond the last query repeat it and store nothing.
  KEYS_THERE
  IDX first[V], end[V], lowest = keys, highest = 0, all_from = 0, all_to = keys;
  for (int i = 0; i < V; ++i) {
    const IDX row = min(row0 + i, rows - 1);
    first[i] = (IDX)FIRST_SEEN(row);
    end[i] = (IDX)END_SEEN(row);
    if (first[i] < end[i]) {
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
