"""Fused recurrent cells and layers, and greedy decoding."""
from recorder import *

N, I, H, T = 2, 3, 4, 5
for k, (forget, clip, peep) in enumerate([(1.0, 3.0, False), (0.0, 0.4, True), (0.5, -1.0, False), (1.0, 0.0, True)]):
    kw = dict(cell_clip=clip, use_peephole=peep)
    weights = lambda: [c(f32(I + H, 4 * H)), c(f32(H)), c(f32(H)), c(f32(H)), c(f32(4 * H))]
    case("LSTMBlockCell_%d" % k, lambda x, cs, h, kw=kw, forget=forget, w=weights: (lambda p: list(raw.LSTMBlockCell(x=x, cs_prev=cs, h_prev=h, w=p[0], wci=p[1], wcf=p[2], wco=p[3], b=p[4], forget_bias=forget, **kw)))(w()), f32(N, I), f32(N, H), f32(N, H))
    def block(n, x, cs, h, kw=kw, forget=forget, w=weights, all_steps=True):
        p = w()
        out = raw.BlockLSTM(seq_len_max=n, x=x, cs_prev=cs, h_prev=h, w=p[0], wci=p[1], wcf=p[2], wco=p[3], b=p[4], forget_bias=forget, **kw)
        # Behind the last step TensorFlow clears the cell and the output, and leaves the others as memory was.
        return list(out) if all_steps else [out.cs, out.h] + [o[:n] for o in (out.i, out.f, out.o, out.ci, out.co)]
    for steps in (T, 3, 0):
        case("BlockLSTM_%d_%d" % (k, steps), lambda *a, full=steps == T, block=block: block(*a, all_steps=full), np.int64(steps), f32(T, N, I), f32(N, H), f32(N, H))
    case("BlockLSTMV2_%d" % k, lambda n, x, cs, h, kw=kw, w=weights: (lambda p: list(raw.BlockLSTMV2(seq_len_max=n, x=x, cs_prev=cs, h_prev=h, w=p[0], wci=p[1], wcf=p[2], wco=p[3], b=p[4], **kw)))(w()), np.int64(T), f32(T, N, I), f32(N, H), f32(N, H))
case("BlockLSTMV2_fed", lambda n, x, cs, h, w, b: raw.BlockLSTMV2(seq_len_max=n, x=x, cs_prev=cs, h_prev=h, w=w, wci=c(f32(H)), wcf=c(f32(H)), wco=c(f32(H)), b=b).h, np.int64(T), f32(T, N, I), f32(N, H), f32(N, H), f32(I + H, 4 * H), f32(4 * H), const=(4,))
case("GRUBlockCell", lambda x, h: list(raw.GRUBlockCell(x=x, h_prev=h, w_ru=c(f32(I + H, 2 * H)), w_c=c(f32(I + H, H)), b_ru=c(f32(2 * H)), b_c=c(f32(H)))), f32(N, I), f32(N, H))
case("GRUBlockCell_one", lambda x, h: raw.GRUBlockCell(x=x, h_prev=h, w_ru=c(f32(2, 2)), w_c=c(f32(2, 1)), b_ru=c(f32(2)), b_c=c(f32(1))).h, f32(3, 1), f32(3, 1))
X = np.round(f32(12, 3, 3))
for merge in (False, True):
    for blank in (-1, 0, 1, -3):
        case("CTCGreedyDecoder_%d_%d" % (merge, blank + 3), lambda x, n, merge=merge, blank=blank: list(raw.CTCGreedyDecoder(inputs=x, sequence_length=n, merge_repeated=merge, blank_index=blank)), X, np.array([12, 7, 0], np.int32))
case("CTCGreedyDecoder_f64", lambda x, n: list(raw.CTCGreedyDecoder(inputs=x, sequence_length=n)), f32(6, 2, 4).astype(np.float64), np.array([6, 3], np.int32))
case("CTCGreedyDecoder_long", lambda x, n: list(raw.CTCGreedyDecoder(inputs=x, sequence_length=n)), f32(6, 2, 4), np.array([7, 3], np.int32), error=True)
NAN = f32(T, N, I)
NAN[1, 0, 2] = np.nan
NAN[2, 1, 0] = np.inf
case("BlockLSTM_nan", lambda n, x, cs, h, w, b: list(raw.BlockLSTM(seq_len_max=n, x=x, cs_prev=cs, h_prev=h, w=w, wci=c(f32(H)), wcf=c(f32(H)), wco=c(f32(H)), b=b)), np.int64(T), NAN, f32(N, H), f32(N, H), f32(I + H, 4 * H), f32(4 * H), const=(4, 5))
half = lambda *shape: c(f32(*shape).astype(np.float16))
case("LSTMBlockCell_inner16", lambda x, cs, h: list(raw.LSTMBlockCell(x=x, cs_prev=cs, h_prev=h, w=half(I + H, 4 * H), wci=half(H), wcf=half(H), wco=half(H), b=half(4 * H), use_peephole=True)), f32(N, I).astype(np.float16), f32(N, H).astype(np.float16), f32(N, H).astype(np.float16))
LOGITS = f32(6, 2, 4)
LOGITS[2, 0, 1] = np.nan
LOGITS[3, 1, 0] = np.nan
LOGITS[4, 1, :] = -np.inf
case("CTCGreedyDecoder_nan", lambda x, n: list(raw.CTCGreedyDecoder(inputs=x, sequence_length=n)), LOGITS, np.array([6, 6], np.int32))
TIES = np.zeros((4, 1, 3), np.float32)
case("CTCGreedyDecoder_ties", lambda x, n: list(raw.CTCGreedyDecoder(inputs=x, sequence_length=n, merge_repeated=True)), TIES, np.array([4], np.int32))
for beam, paths, merge in ((4, 1, False), (4, 3, True), (20, 2, True), (2, 2, False), (100, 5, False)):
    case("CTCBeamSearchDecoder_%d_%d_%d" % (beam, paths, merge), lambda x, n, beam=beam, paths=paths, merge=merge: sum(map(list, raw.CTCBeamSearchDecoder(inputs=x, sequence_length=n, beam_width=beam, top_paths=paths, merge_repeated=merge)[:3]), []) +
         [raw.CTCBeamSearchDecoder(inputs=x, sequence_length=n, beam_width=beam, top_paths=paths, merge_repeated=merge).log_probability], f32(9, 3, 5, lo=-3, hi=3), np.array([9, 6, 4], np.int32))
case("CTCBeamSearchDecoder_f64", lambda x, n: list(raw.CTCBeamSearchDecoder(inputs=x, sequence_length=n, beam_width=8, top_paths=1).decoded_values), f32(12, 2, 6).astype(np.float64), np.array([12, 0], np.int32))
case("CTCBeamSearchDecoder_two", lambda x, n: [raw.CTCBeamSearchDecoder(inputs=x, sequence_length=n, beam_width=3, top_paths=1).log_probability], f32(5, 1, 2), np.array([5], np.int32))
case("CTCBeamSearchDecoder_few", lambda x, n: raw.CTCBeamSearchDecoder(inputs=x, sequence_length=n, beam_width=9, top_paths=9).log_probability, f32(1, 1, 3), np.array([1], np.int32), error=True)
case("CTCBeamSearchDecoder_long", lambda x, n: raw.CTCBeamSearchDecoder(inputs=x, sequence_length=n, beam_width=9, top_paths=1).log_probability, f32(1, 1, 3), np.array([2], np.int32), error=True)
