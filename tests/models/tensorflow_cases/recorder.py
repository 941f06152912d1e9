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


# Cases for every dtype that TensorFlow has a kernel for.
INTS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = "float16 bfloat16 float32 float64".split()
np_type = lambda d: tf.as_dtype(d).as_numpy_dtype


def least(d): return np.iinfo(np_type(d)).min
def most(d): return np.iinfo(np_type(d)).max


def numbers(d):
    """Seven numbers of a dtype."""
    if d == "bool": return np.array([1, 0, 0, 1, 1, 0, 1], bool)
    if d == "string": return np.array([b"b", b"", b"a", b"b", b"\xc3\xa4", b"zz", b"a"], object)
    if d in INTS: return np.array([least(d), most(d), 0, 1, 7, 3, 100 if d[0] == "u" else -5], np_type(d))
    return np.array([-np.inf, np.inf, np.nan, -0.0, 2.5, -1.5, 0.375]).astype(np_type(d))


def small(d, *shape):
    """Numbers whose sums and products fit every type, with ties."""
    n = int(np.prod(shape))
    values = (np.arange(n) * 5 + 2) % 7 - (0 if d[0] in "ub" and d != "bfloat16" else 3)
    if d == "string": return np.array([b"v%d" % v for v in values], object).reshape(shape)
    return values.reshape(shape).astype(np_type(d))


def runs(build, feeds):
    """TensorFlow's CPU can."""
    with tf.Graph().as_default() as graph:
        try:
            ins = [v1.placeholder(tf.as_dtype(x.dtype if x.dtype.kind not in "OSU" else tf.string), [None] * x.ndim) for x in feeds]
            outs = build(*ins)
            outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
            v1.Session(graph=graph).run(outs, dict(zip(ins, feeds)))
        except (tf.errors.OpError, TypeError, ValueError):
            return False
    return True


def each(name, dtypes, build, feeds, const=(), close=False):
    """A case for each dtype. `close`: TensorFlow computes 16-bit floats in steps of 16 bits."""
    for d in dtypes.split() if isinstance(dtypes, str) else dtypes:
        args = [np.asarray(x) for x in (feeds(d) if callable(feeds) else feeds)]
        for x in args:
            if x.dtype.kind == "O" and not isinstance(x.ravel()[0] if x.size else b"", bytes): raise SystemExit(name)
        make = (lambda *t, d=d: build(d, *t))
        fixed = lambda *t, args=args: make(*[tf.constant(args[i]) if i in const else t[i] for i in range(len(t))])
        if not runs(fixed, args): continue
        sixteen = close and d in ("float16", "bfloat16")
        case("%s_%s%s" % (name, d, "_inner16" if sixteen else ""), make, *args, const=const)


ANY = ["bool"] + INTS + FLOATS
TEXT = ANY + ["string"]


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
