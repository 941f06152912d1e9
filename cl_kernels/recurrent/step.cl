// recurrent_step: one step of a recurrent layer, a work-item per hidden unit and sample. The formulas
// are those of engine/ops/recurrent.h. Steps are launches one behind the other: the state before is
// read from y (from h0 for the first), the cell's from c, which each work-item keeps for itself. Where
// T has 16 bits, KEEP: both are kept in scratch memory as floats, the state of two steps in turn.
//
// KIND 0 Rnn; 1 Gru with LINEAR_BEFORE_RESET; 2 Lstm; 3 and 4 the two halves of a Gru without it: 3
// leaves z and r * h' in scratch memory, 4 goes on from there. F, G, H name activations, whole because
// some drivers have macros called tanh; T is the dtype. `extra` is the Gru's candidate_bias or the Lstm's peepholes, where EXTRA.
// VARIANT: -DT=f32 -DKIND=0 -DF=RNN_tanh -DG=RNN_tanh -DH=RNN_tanh -DREVERSE=0 -DSTARTED=1 -DEXTRA=0 -DLENGTHS=0 -DINDEX=i32 -DCLIP=0
// VARIANT: -DT=f32 -DKIND=1 -DF=RNN_hard_sigmoid -DG=RNN_softsign -DH=RNN_tanh -DREVERSE=1 -DSTARTED=0 -DEXTRA=1 -DLENGTHS=1 -DINDEX=i32 -DCLIP=1
// VARIANT: -DT=f16 -DKEEP -DKIND=2 -DF=RNN_sigmoid -DG=RNN_elu -DH=RNN_softplus -DREVERSE=0 -DSTARTED=1 -DEXTRA=1 -DLENGTHS=1 -DINDEX=i64 -DCLIP=1
// VARIANT: -DT=bf16 -DKEEP -DKIND=3 -DF=RNN_sigmoid -DG=RNN_relu -DH=RNN_tanh -DREVERSE=0 -DSTARTED=1 -DEXTRA=0 -DLENGTHS=0 -DINDEX=i32 -DCLIP=0
// VARIANT: -DT=bf16 -DKEEP -DKIND=4 -DF=RNN_sigmoid -DG=RNN_tanh -DH=RNN_tanh -DREVERSE=1 -DSTARTED=0 -DEXTRA=0 -DLENGTHS=0 -DINDEX=i32 -DCLIP=0
// VARIANT: -DT=f32 -DKIND=4 -DF=RNN_leaky_relu -DG=RNN_thresholded_relu -DH=RNN_affine -DREVERSE=0 -DSTARTED=1 -DEXTRA=0 -DLENGTHS=0 -DINDEX=i32 -DCLIP=0 -DINPUT_FORGET
#include "common/dtype.clh"
#include "common/error.clh"
#include "common/group.clh"
#include "common/index.clh"

#define ACC CARRY(T)
#define RNN_tanh(x, a, b) tanh(x)
#define RNN_sigmoid(x, a, b) ((ACC)(1) / ((ACC)(1) + exp(-(x))))
#define RNN_relu(x, a, b) fmax(x, (ACC)(0))
#define RNN_affine(x, a, b) ((a) * (x) + (b))
#define RNN_leaky_relu(x, a, b) ((x) >= 0 ? (x) : (a) * (x))
#define RNN_thresholded_relu(x, a, b) ((x) >= (a) ? (x) : (ACC)(0))
#define RNN_scaled_tanh(x, a, b) ((a)*tanh((b) * (x)))
#define RNN_hard_sigmoid(x, a, b) fmin(fmax((a) * (x) + (b), (ACC)(0)), (ACC)(1))
#define RNN_elu(x, a, b) ((x) >= 0 ? (x) : (a)*expm1(x))
#define RNN_softsign(x, a, b) ((x) / ((ACC)(1) + fabs(x)))
#define RNN_softplus(x, a, b) (fmax(x, (ACC)(0)) + log1p(exp(-fabs(x))))
#define RNN(name, x, a, b) name(x, (ACC)(a), (ACC)(b))
#if CLIP
#define BOUND(x) clamp(x, -(ACC)(bound), (ACC)(bound))
#else
#define BOUND(x) (x)
#endif
ACC act_f(ACC x, float a, float b) { return RNN(F, x, a, b); }
ACC act_g(ACC x, float a, float b) { return RNN(G, x, a, b); }
ACC act_h(ACC x, float a, float b) { return RNN(H, x, a, b); }

#if KIND == 0
#define GATES 1
#elif KIND == 2
#define GATES 4
#else
#define GATES 3
#endif

__kernel void recurrent_step(__global const MEM(T)* gates, __global const MEM(T)* recurrent,
                             __global const MEM(INDEX)* lengths, __global const MEM(T)* h0,
                             __global const MEM(T)* extra, __global MEM(T)* y,
                             __global MEM(T)* h, __global MEM(T)* c, __global ACC* kept_z,
                             __global ACC* kept_rh, __global ACC* kept_h, __global ACC* kept_c,
                             const long step, const long steps,
                             const int samples, const int units, const float bound,
                             const float fa, const float fb, const float ga, const float gb,
                             const float ha, const float hb, ERROR_PARAMS) {
  const int i = get_global_id(0);
  if (i >= samples * units) return;
  const int n = i / units, j = i % units;
  long length = steps;
#if LENGTHS
  length = READ_INDEX(INDEX, lengths, n);
  if (length < 0 || length > steps) {
    REPORT(ERROR_INDEX);
    length = 0;
  }
#endif
  if (step >= length) {
#if KIND != 3
    STORE(T, y, (step * samples + n) * units + j, (ACC)(0));
#endif
    return;
  }
#if REVERSE
  const long at = (length - 1 - step) * samples + n, before = at + samples;
#else
  const long at = step * samples + n, before = at - samples;
#endif
#ifdef KEEP
  __global const ACC* old = kept_h + ((step + 1) % 2 * samples + n) * units;
#else
  __global const ACC* old = y + before * units;
#endif
  ACC sum[GATES], product[GATES];
  for (int g = 0; g < GATES; ++g) {
    sum[g] = LOAD(T, gates, at * GATES * units + g * units + j);
    product[g] = 0;
  }
#if KIND == 4
#define FIRST 2
#define LAST 3
#else
#define FIRST 0
#define LAST (KIND == 3 ? 2 : GATES)
#endif
#define ADD_PRODUCT(p_k)                                                       \
  for (int k = 0; k < units; ++k) {                                            \
    const ACC v = p_k;                                                         \
    for (int g = FIRST; g < LAST; ++g) {                                       \
      product[g] += v * LOAD(T, recurrent, ((long)k * GATES + g) * units + j); \
    }                                                                          \
  }
  // Without h0 the first step has no state to look at.
  const ACC own = step > 0 ? old[j] : STARTED ? (ACC)LOAD(T, h0, i) : (ACC)(0);
#if KIND == 4
  if (step > 0 || STARTED) ADD_PRODUCT(kept_rh[(long)n * units + k])
#else
  if (step > 0) ADD_PRODUCT(old[k])
  else if (STARTED) ADD_PRODUCT(LOAD(T, h0, (long)n * units + k))
#endif
#if KIND == 0
  const ACC result = act_f(BOUND(sum[0] + product[0]), fa, fb);
#elif KIND == 1
  const ACC z = act_f(BOUND(sum[0] + product[0]), fa, fb);
  const ACC r = act_f(BOUND(sum[1] + product[1]), fa, fb);
#if EXTRA
  product[2] += LOAD(T, extra, j);
#endif
  const ACC result = (1 - z) * act_g(BOUND(sum[2] + r * product[2]), ga, gb) + z * own;
#elif KIND == 2
#ifdef KEEP
  const ACC cell = step > 0 ? kept_c[i] : (ACC)LOAD(T, c, i);
#else
  const ACC cell = c[i];
#endif
  ACC in = sum[0] + product[0], out = sum[1] + product[1], forget = sum[2] + product[2];
#if EXTRA
  in += LOAD(T, extra, j) * cell;
  forget += LOAD(T, extra, 2 * units + j) * cell;
#endif
  in = act_f(BOUND(in), fa, fb);
#ifdef INPUT_FORGET
  forget = 1 - in;
#else
  forget = act_f(BOUND(forget), fa, fb);
#endif
  const ACC now = forget * cell + in * act_g(BOUND(sum[3] + product[3]), ga, gb);
#if EXTRA
  out += LOAD(T, extra, units + j) * now;
#endif
  const ACC result = act_f(BOUND(out), fa, fb) * act_h(now, ha, hb);
#ifdef KEEP
  kept_c[i] = now;
  if (step == length - 1) STORE(T, c, i, now);
#else
  c[i] = now;
#endif
#elif KIND == 3
  kept_z[i] = act_f(BOUND(sum[0] + product[0]), fa, fb);
  kept_rh[i] = act_f(BOUND(sum[1] + product[1]), fa, fb) * own;
#else
  const ACC z = kept_z[i];
  const ACC result = (1 - z) * act_g(BOUND(sum[2] + product[2]), ga, gb) + z * own;
#endif
#if KIND != 3
  STORE(T, y, at * units + j, result);
#ifdef KEEP
  kept_h[(step % 2 * samples + n) * units + j] = result;
#endif
  if (step == length - 1) STORE(T, h, i, result);
#endif
}
