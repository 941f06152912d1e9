"""More models of make_run_models.py: graphs that depend on the feeds, and old control flow in the forms that TensorFlow 1 wrote."""
import os
import numpy as np
from run_recorder import f32, record, record1, Recorder, settings, sig, tf, v1

B, raw = np.bool_, tf.raw_ops
placeholder = lambda name, shape, dtype=tf.float32: v1.placeholder(dtype, shape, name)


def deep_branches():
    """tf.cond in tf.cond on both sides, three deep, with several results; tf.case of every kind; the two branches of old batch norm."""
    def build():
        x, k = placeholder("x", [None]), placeholder("k", [], tf.int32)
        p, q, r = (placeholder(name, [], tf.bool) for name in "pqr")
        a = tf.cond(p, lambda: tf.cond(q, lambda: tf.cond(r, lambda: x + 1.0, lambda: x * 2.0), lambda: x - 3.0),
                    lambda: tf.cond(r, lambda: -x, lambda: tf.cond(q, lambda: tf.constant([1.0]), lambda: x)))
        b, c = tf.cond(p, lambda: (tf.cond(q, lambda: x, lambda: x * 3.0), tf.constant(1)), lambda: (x, tf.cond(q, lambda: tf.constant(5), lambda: tf.constant(6))))
        mean, var = tf.cond(p, lambda: tf.nn.moments(x, [0]), lambda: (tf.constant(0.5), tf.constant(2.0)))
        d = tf.cond(p, lambda: tf.identity(mean), lambda: tf.constant(0.25)) + (x - mean) / tf.sqrt(var + 1e-3)
        e = tf.case([(k < 0, lambda: x), (tf.equal(k, 0), lambda: x + 1.0), (k < 3, lambda: x * 2.0)], default=lambda: -x)
        f = tf.case({tf.equal(k, 0): lambda: x[:1], tf.equal(k, 1): lambda: x[1:], tf.equal(k, 2): lambda: x[:2] * 3.0}, default=lambda: x, exclusive=True)
        g = tf.switch_case(k, [lambda: x, lambda: x * 2.0, lambda: tf.reduce_sum(x, keepdims=True)])
        return dict(x=x, k=k, p=p, q=q, r=r), dict(a=a, b=b, c=c, d=d, e=e, f=f, g=g)
    record1("deep_branches", build, [{"x": f32(3), "k": np.int32(i - 2), "p": B(i & 1), "q": B(i & 2), "r": B(i & 4)} for i in range(8)])


def loop_branches():
    """tf.cond in tf.while_loop, of which one asks something from outside; the other way round."""
    def build():
        x, n, p = placeholder("x", [None, 3]), placeholder("n", [], tf.int32), placeholder("p", [], tf.bool)
        def body(i, y, k):
            y = tf.cond(tf.equal(i % 2, 0), lambda: tf.cond(tf.equal(i % 3, 0), lambda: y + 1.0, lambda: y * 0.5),
                        lambda: tf.cond(p, lambda: y - x, lambda: tf.cond(i > 3, lambda: tf.zeros_like(y), lambda: y)))
            return i + 1, y, tf.cond(p, lambda: k + 1, lambda: k)
        i, y, k = tf.while_loop(lambda i, *_: i < n, body, (tf.constant(0), x, tf.constant(0)))
        def loop(y): return tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, tf.cond(i > 1, lambda: y * 2.0, lambda: y + x)), (tf.constant(0), y))[1]
        a = tf.cond(p, lambda: loop(x), lambda: loop(x * 10.0) + 1.0)
        return dict(x=x, n=n, p=p), dict(i=i, y=y, k=k, a=a)
    record1("loop_branches", build, [{"x": f32(2, 3), "n": np.int32(n), "p": B(p)} for n, p in ((0, 1), (1, 0), (7, 1), (7, 0), (2, 1))])


class Cell:
    """What dynamic_rnn asks of a cell."""
    def __init__(self, name, inputs, units):
        self.w, self.units = v1.get_variable(name, [inputs + units, units], initializer=v1.random_normal_initializer(seed=1)), units

    output_size = state_size = property(lambda self: self.units)
    def zero_state(self, batch, dtype): return tf.zeros([batch, self.units], dtype)
    def __call__(self, x, h, scope=None):
        h = tf.tanh(tf.concat([x, h], 1) @ self.w)
        return h, h


def sequences():
    """dynamic_rnn, both ways and one, and static_rnn, with lengths."""
    def build():
        x, l, s = placeholder("x", [None, None, 3]), placeholder("l", [None], tf.int32), placeholder("s", [None, 4, 3])
        y, h = v1.nn.dynamic_rnn(Cell("a", 3, 4), x, sequence_length=l, dtype=tf.float32)
        (forth, back), _ = v1.nn.bidirectional_dynamic_rnn(Cell("b", 4, 2), Cell("c", 4, 3), y, sequence_length=l, dtype=tf.float32)
        z, g = v1.nn.static_rnn(Cell("d", 3, 4), tf.unstack(s, axis=1), sequence_length=l, dtype=tf.float32)
        return dict(x=x, l=l, s=s), dict(y=y, h=h, forth=forth, back=back, z=tf.stack(z, 1), g=g)
    record1("sequences", build, [{"x": f32(2, 5, 3), "s": f32(2, 4, 3), "l": np.array([4, 2], np.int32)}, {"x": f32(3, 4, 3), "s": f32(3, 4, 3), "l": np.array([0, 1, 3], np.int32)},
                                 {"x": f32(1, 1, 3), "s": f32(1, 4, 3), "l": np.array([1], np.int32)}])


def beams():
    """A beam search: arrays that grow in a loop which ends when all beams are done, and a second loop that walks back."""
    def build():
        x, steps, width, vocab, end = placeholder("x", [None, 5]), placeholder("steps", [], tf.int32), 3, 5, 0
        w = v1.get_variable("w", [5, 5], initializer=v1.random_normal_initializer(seed=3))
        batch = tf.shape(x)[0]
        scores, ids = tf.nn.top_k(tf.nn.log_softmax(x), width)
        array = lambda first: tf.TensorArray(tf.int32, steps, dynamic_size=True, element_shape=[None, 3]).write(0, first)
        done = tf.equal(ids, end)
        def body(i, ids, scores, done, out, parents):
            step = tf.nn.log_softmax(tf.gather(w, ids))
            only_end = tf.one_hot(tf.fill(tf.shape(ids), end), vocab, on_value=0.0, off_value=-1e9)
            step = tf.where(tf.tile(done[:, :, None], [1, 1, vocab]), only_end, step)
            scores, flat = tf.nn.top_k(tf.reshape(scores[:, :, None] + step, [batch, width * vocab]), width)
            parent, ids = flat // vocab, flat % vocab
            done = tf.gather(done, parent, batch_dims=1) | tf.equal(ids, end)
            scores = tf.cond(tf.reduce_all(done), lambda: scores, lambda: scores + 0.0)
            return i + 1, ids, scores, done, out.write(i, ids), parents.write(i, parent)
        more = lambda i, ids, scores, done, *_: (i < steps) & ~tf.reduce_all(done)
        i, _, scores, done, out, parents = tf.while_loop(more, body, (tf.constant(1), ids, scores, done, array(ids), array(tf.zeros_like(ids))))
        out, parents = out.stack(), parents.stack()
        def back(t, at, words):
            return t - 1, tf.gather(parents[t], at, batch_dims=1), tf.concat([tf.gather(out[t], at, batch_dims=1)[None], words], 0)
        at = tf.tile(tf.range(width)[None], [batch, 1])
        shapes = (tf.TensorShape([]), tf.TensorShape([None, 3]), tf.TensorShape([None, None, 3]))
        words = tf.while_loop(lambda t, *_: t >= 0, back, (i - 1, at, tf.zeros([0, batch, width], tf.int32)), shape_invariants=shapes)[2]
        return dict(x=x, steps=steps), dict(words=words, scores=scores, n=i)
    record1("beams", build, [{"x": f32(2, 5), "steps": np.int32(k)} for k in (4, 1, 9)])


def merges():
    """Switch and Merge by hand: three sides, which one was taken, a Merge of Merges, the side that a loop's own Merge took, a side taken by itself."""
    def build():
        x, p, q, n = placeholder("x", [None]), placeholder("p", [], tf.bool), placeholder("q", [], tf.bool), placeholder("n", [], tf.int32)
        f, t = raw.Switch(data=x, pred=p)
        tf_, tt = raw.Switch(data=t, pred=q)
        a, a_at = raw.Merge(inputs=[f * 2.0, t + 1.0])
        b, b_at = raw.Merge(inputs=[f * 3.0, tf_ * 4.0, tt * 5.0])
        c, c_at = raw.Merge(inputs=[tt, tf_ - 1.0, f])
        d = raw.Merge(inputs=[raw.Merge(inputs=[tf_, tt * 9.0])[0], f])[0]
        enter = lambda v, constant=False: raw.Enter(data=v, frame_name="frame", is_constant=constant)
        y, i, k, limit, one, two = enter(x), enter(tf.constant(0)), enter(tf.constant(0)), enter(n, True), enter(tf.constant(1), True), enter(tf.constant(2.0), True)
        (ym, took), (im, _), (km, _) = (raw.Merge(inputs=[v, v]) for v in (y, i, k))
        more = raw.LoopCond(input=im < limit)
        ys, is_, ks = (raw.Switch(data=v, pred=more) for v in (ym, im, km))
        for merge, value in ((ym, ys[1] * two), (im, is_[1] + one), (km, ks[1] + took)): merge.op._update_input(1, raw.NextIteration(data=value))
        side = raw.Switch(data=x, pred=tf.greater(tf.size(x), 1))[1] + 1.0
        return dict(x=x, p=p, q=q, n=n), dict(a=a, a_at=a_at, b=b, b_at=b_at, c=c, c_at=c_at, d=d, y=raw.Exit(data=ys[0]), i=raw.Exit(data=is_[0]), k=raw.Exit(data=ks[0]), side=side)
    record1("merges", build, [{"x": f32(3), "p": B(i & 1), "q": B(i & 2), "n": np.int32(i + i // 3 * 2)} for i in range(4)])


def merges_apart():
    """Sides that differ in more than one predicate: a Switch behind another, and predicates that exclude each other without being the same."""
    def build():
        x, p, q = placeholder("x", [None]), placeholder("p", [], tf.bool), placeholder("q", [], tf.bool)
        f, t = raw.Switch(data=x, pred=p)
        low, high = raw.Switch(data=x * 7.0, pred=q)
        a, a_at = raw.Merge(inputs=[t + 1.0, raw.Switch(data=low, pred=p)[0] * 3.0, raw.Switch(data=high - 1.0, pred=p)[0] * 5.0])
        either, both = tf.logical_or(p, q), tf.logical_and(p, q)
        b, b_at = raw.Merge(inputs=[raw.Switch(data=tf.exp(low), pred=either)[0] + 2.0, raw.Switch(data=x, pred=either)[1]])
        c, c_at = raw.Merge(inputs=[raw.Switch(data=x, pred=both)[1] * 2.0, raw.Switch(data=x - 1.0, pred=tf.logical_not(tf.logical_and(p, q)))[1] * 3.0])
        d = raw.Merge(inputs=[raw.Switch(data=c, pred=p)[0], raw.Switch(data=b * 2.0, pred=p)[1]])[0]
        e = raw.Merge(inputs=[raw.Switch(data=raw.Switch(data=x, pred=p)[1], pred=p)[1], f])[0]
        return dict(x=x, p=p, q=q), dict(a=a, a_at=a_at, b=b, b_at=b_at, c=c, c_at=c_at, d=d, e=e)
    record1("merges_apart", build, [{"x": f32(3), "p": B(i & 1), "q": B(i & 2)} for i in range(4)])


def unranked():
    """Placeholders without a shape, one with a default that is not fed, results of branches of different ranks, shapes and axes that are fed."""
    def build():
        x, w, s, a, k = placeholder("x", None), placeholder("w", None), placeholder("s", [None], tf.int32), placeholder("a", [], tf.int32), placeholder("k", [], tf.bool)
        fill = v1.placeholder_with_default(tf.constant([[1.0, 2.0]]), None, "fill")
        either = tf.cond(k, lambda: x, lambda: tf.reduce_sum(x, -1))
        y = tf.reshape(x, s)
        outs = {"product": tf.matmul(x, w), "einsum": tf.einsum("ij,jk->ki", x, w), "dots": raw.Einsum(inputs=[x, w], equation="...j,jk->...k"), "sum": tf.reduce_sum(either),
                "either": either, "unique": raw.Unique(x=raw.Reshape(tensor=tf.cast(x, tf.int32), shape=s[:1] * 0 - 1))[0], "best": tf.argmax(y, a), "joined": tf.concat([y, y], a),
                "cut": tf.split(tf.concat([y, y], a), 2, a)[1], "places": tf.where(x > 0), "default": fill * 3.0, "spectrum": tf.abs(tf.signal.rfft(x)), "last": tf.reduce_max(y, tf.rank(y) - 1),
                "bias": tf.nn.bias_add(x, w[0]), "rows": tf.gather(y, [0], axis=a), "truth": raw.ToBool(input=x)}
        return dict(x=x, w=w, s=s, a=a, k=k), outs
    record1("unranked", build, [{"x": f32(4, 3), "w": f32(3, 3), "s": np.array(s, np.int32), "a": np.int32(a), "k": B(k)} for s, a, k in (([2, 6], 1, 1), ([2, 2, 3], -1, 0), ([2, 2, 3], 0, 1), ([12], 0, 0))])


def kinds():
    """Functions without a signature, saved for several kinds of arguments: told apart by names, types, ranks and sizes."""
    class M(tf.Module):
        def __init__(self): self.w = tf.Variable(f32(3))

        @tf.function
        def scale(self, x, by=None):
            return {"y": x * 2 if by is None else x * by, "kind": tf.constant(x.shape.rank or 0)}

        @tf.function
        def sized(self, x): return x * self.w[:x.shape[0]], tf.constant(x.shape[0])

    m = M()
    spec = lambda shape, dtype=tf.float32, name=None: tf.TensorSpec(shape, dtype, name)
    for args in ((spec([None]),), (spec([None, 3]),), (spec([None], tf.int32),), (spec([None]), spec([]))): m.scale.get_concrete_function(*args)
    for n in (1, 2, 3): m.sized.get_concrete_function(spec([n]))
    r = Recorder("kinds")
    tf.saved_model.save(m, r.model, signatures={})
    loaded = tf.saved_model.load(r.model)
    def step(path, **feeds):
        out = getattr(loaded, path)(**{k: tf.constant(v) for k, v in feeds.items()})
        if not isinstance(out, dict): out = {"output_%d" % i: v for i, v in enumerate(out)}
        r.step(path, feeds, {k: v.numpy() for k, v in out.items()})
    for x in (f32(4), f32(2, 3), np.arange(3, dtype=np.int32), f32(1)): step("scale", x=x)
    step("scale", x=f32(4), by=np.float32(3))
    for n in (3, 1, 2, 3): step("sized", x=f32(n))
    r.finish()


def complex_border():
    """Complex numbers that are fed, fetched, constant and in a variable."""
    class M(tf.Module):
        def __init__(self):
            self.w = tf.Variable(tf.complex(f32(3), f32(3)))

        @sig(z=([None, 3], tf.complex64), x=([None, 4], tf.float32))
        def turn(self, z, x):
            return {"product": z * self.w + tf.constant([1 + 2j, -1j, 0.5], tf.complex64), "spectrum": tf.signal.rfft(x), "same": z, "size": tf.abs(z), "sum": tf.reduce_sum(z, -1), "two": tf.stack([z, tf.math.conj(z)], -1)}

        @sig(z=([], tf.complex128))
        def wide(self, z): return {"y": z / tf.constant(2 - 1j, tf.complex128)}

    m = M()
    z = lambda *shape: (f32(*shape) + 1j * f32(*shape)).astype(np.complex64)
    record("complex_border", m, {"turn": m.turn, "wide": m.wide}, [("turn", {"z": z(2, 3), "x": f32(2, 4)}), ("wide", {"z": np.complex128(3 - 4j)}), ("turn", {"z": z(0, 3), "x": f32(1, 4)})])


def named_tables():
    """Vocabularies whose file's name is joined from parts, or whose words are computed while loading."""
    path = "/tmp/assets/words.txt"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file: file.write("red 3\ngreen 5\nblue 7\n")
    def build():
        w = placeholder("w", [None], tf.string)
        asset = tf.constant(path)
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
        def table(init, default=-1): return tf.lookup.StaticHashTable(init, default)
        whole = table(tf.lookup.TextFileInitializer(asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER))
        joined = table(tf.lookup.TextFileInitializer(raw.StringJoin(inputs=[os.path.dirname(path), "words.txt"], separator="/"), tf.string, 0, tf.int64, 1, delimiter=" "))
        lines = tf.strings.split([tf.strings.regex_replace(tf.io.read_file(asset), "\n$", "")], "\n").values
        computed = table(tf.lookup.KeyValueTensorInitializer(tf.strings.upper(lines), tf.range(tf.size(lines))))
        return {"w": w}, {"whole": whole.lookup(w), "joined": joined.lookup(w), "computed": computed.lookup(w)}
    words = lambda *w: np.array(w, object)
    r = Recorder("named_tables")
    with tf.Graph().as_default(), v1.Session() as session:
        inputs, outputs = build()
        session.run(v1.tables_initializer())
        builder = v1.saved_model.Builder(r.model)
        info = lambda d: {k: v1.saved_model.build_tensor_info(t) for k, t in d.items()}
        signature = v1.saved_model.build_signature_def(info(inputs), info(outputs), "tensorflow/serving/predict")
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature}, assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS), main_op=v1.tables_initializer())
        builder.save()
        for w in (words(b"red", b"RED 3", b"blue 7"), words(b"green", b"")):
            r.step("serving_default", {"w": w}, session.run(outputs, {inputs["w"]: w}))
    r.finish()


def open_ranks():
    """Results of branches of different ranks, in ops that must know a rank elsewhere: no feed tells it."""
    def build():
        x, y, w, p, q = placeholder("x", [None, None, 4]), placeholder("y", [None, 4, 3]), placeholder("w", [None, None]), placeholder("p", [], tf.bool), placeholder("q", [], tf.bool)
        a, b = tf.cond(p, lambda: x, lambda: x[0]), tf.cond(q, lambda: y, lambda: y[0])
        one, deep = tf.cond(p, lambda: x, lambda: x[0, 0]), tf.cond(p, lambda: tf.stack([x, x * 2.0]), lambda: x)
        picks = tf.cond(q, lambda: a > 0.0, lambda: tf.reshape(a, [-1])[:tf.shape(a)[0]] > 0.0)
        truth = tf.cond(q, lambda: x[0, 0] > 0.0, lambda: x[0, 0, 0] > 0.0)
        z = tf.complex(a, a * 0.5 - 1.0)
        parts = lambda t: tf.stack([tf.math.real(t), tf.math.imag(t)])
        outs = {"dots": raw.Einsum(inputs=[a, w], equation="...j,jk->...k"), "one": raw.Einsum(inputs=[one, w], equation="...j,kj->k..."), "both": raw.Einsum(inputs=[a, b], equation="...ij,...jk->...ik"),
                "three": raw.Einsum(inputs=[raw.Einsum(inputs=[a, b], equation="...ij,...jk->...ki"), w[:3, :3]], equation="...ki,kl->...li"), "sum": raw.Einsum(inputs=[a], equation="i...j->...j"),
                "outer": raw.Einsum(inputs=[a, w[0]], equation="i...,b->...bi"), "stretched": raw.Einsum(inputs=[deep, y[:1, :, :1]], equation="...ij,...jk->...ik"),
                "rows": raw.Select(condition=tf.reshape(a, [-1])[:tf.shape(a)[0]] > 0.0, x=a, y=-a), "picks": raw.Select(condition=picks, x=a, y=-a), "truth": raw.Select(condition=truth, x=x[0, 0], y=-x[0, 0]),
                "bias": tf.nn.bias_add(deep, w[0, :tf.shape(deep)[1]], "NCHW"), "bins": parts(tf.signal.rfft(a, [4])), "few": parts(tf.signal.rfft(a, [3])), "points": raw.IRFFT(input=z, fft_length=[6]), "planes": parts(tf.signal.rfft2d(a, [2, 4])),
                "fft": parts(tf.signal.fft(z)), "ifft": parts(tf.signal.ifft(z)), "fft2d": parts(tf.signal.fft2d(z)), "ifft2d": parts(tf.signal.ifft2d(z)), "fft3d": parts(tf.signal.fft3d(tf.complex(deep, deep + 1.0)))}
        return dict(x=x, y=y, w=w, p=p, q=q), outs
    record1("open_ranks", build, [{"x": f32(n, m, 4), "y": f32(n, 4, 3), "w": f32(4, 4), "p": B(p), "q": B(q)} for n, m, p, q in ((2, 3, 1, 1), (2, 3, 0, 1), (3, 2, 1, 0), (2, 4, 0, 0), (1, 2, 1, 1))])


GENERAL = (deep_branches, loop_branches, sequences, beams, merges, merges_apart, unranked, kinds, complex_border, named_tables, open_ranks)
