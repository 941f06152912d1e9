"""What the modules of cases share: `case` declares one, `write` runs them with TensorFlow and saves their graph.

A case `name` is the nodes name/in0.. (placeholders of unknown sizes), the ops under test, name/out0.. (identities), and constants
name/feed0.. and name/expect0.. with the values that went in and those that TensorFlow computed on its CPU. Of an `error` case TensorFlow's
message is kept instead: a string constant name/error."""
import os, zlib
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import numpy as np, tensorflow as tf

v1, raw = tf.compat.v1, tf.raw_ops
v1.disable_eager_execution()


class State:
    """The family being declared: its own graph and random numbers, so that one family's cases do not move another's."""
    def begin(self, family):
        self.rng, self.graph, self.cases = np.random.default_rng(zlib.crc32(family.encode())), tf.Graph(), []


state = State()


def f32(*shape, lo=-2.0, hi=2.0):
    return state.rng.uniform(lo, hi, shape).astype(np.float32)


def i32(*shape, lo=-9, hi=10):
    return state.rng.integers(lo, hi, shape).astype(np.int32)


def boolean(*shape):
    return state.rng.integers(0, 2, shape).astype(bool)


def c(value, dtype=None):
    return tf.constant(value, dtype)


def case(name, build, *feeds, const=(), error=False, sized=False, reference=None):
    """build(*tensors) gives a tensor or a list; the feeds whose numbers are in `const` become constants. With `error` the run must fail.
    With `sized` the placeholders know their sizes, which some of TensorFlow's own checks need.
    `reference` gives the results where TensorFlow's CPU lacks what `build` asks for (channels first)."""
    feeds = [np.asarray(x) for x in feeds]
    if any(name == other for other, *_ in state.cases): raise SystemExit("two cases are named " + name)
    with state.graph.as_default(), v1.name_scope(name):
        ins = []
        for i, x in enumerate(feeds):
            if i in const:
                ins.append(tf.constant(x))
            else:
                ins.append(v1.placeholder(tf.as_dtype(x.dtype if x.dtype.kind not in "OSU" else tf.string), x.shape if sized else [None] * x.ndim, name="in%d" % i))
        outs = build(*ins)
        outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        asked = reference(*ins) if reference else outs
        asked = list(asked) if isinstance(asked, (list, tuple)) else [asked]
        outs = [tf.identity(o, name="out%d" % i) for i, o in enumerate(outs)]
        state.cases.append((name, [(i, t, x) for i, (t, x) in enumerate(zip(ins, feeds)) if i not in const], outs, asked if reference else outs, error))


def write(path):
    with v1.Session(graph=state.graph, config=v1.ConfigProto(graph_options=v1.GraphOptions(place_pruned_graph=True))) as session:
        for name, ins, outs, asked, error in state.cases:
            values, message = [], None
            try:
                values = session.run(asked, {t: x for _, t, x in ins})
                if error: raise SystemExit("%s: no failure" % name)
            except (tf.errors.OpError, ValueError) as e:
                if not error: raise SystemExit("%s: %s" % (name, e))
                message = next((m for m in e.message.split("\n") if "assertion failed:" in m), e.message.split("\n")[0])
                message = message[message.find("assertion failed:"):] if "assertion failed:" in message else message
            with state.graph.as_default():
                for i, t, x in ins: tf.constant(x, t.dtype, name="%s/feed%d" % (name, i))
                for i, x in enumerate(values): tf.constant(x, outs[i].dtype, name="%s/expect%d" % (name, i))
                if message is not None: tf.constant(message, name="%s/error" % name)
    data = state.graph.as_graph_def().SerializeToString()
    open(path, "wb").write(data)
    print(len(state.cases), "cases,", len(data), "bytes in", path)
