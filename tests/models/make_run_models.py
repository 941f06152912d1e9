#!/usr/bin/env python3
"""Writes SavedModels whose runs need more than one pass over a graph, with what TensorFlow answers, to testdata/tensorflow/runs:
loops and branches (functional and old style), recurrent layers, variables that change, tables and vocabularies, strings.

  python3 -m venv v && v/bin/pip install tensorflow-cpu==2.21.0
  v/bin/python tests/models/make_run_models.py testdata/tensorflow/runs [NAME..]

Each folder NAME holds model/ (the SavedModel) and runs/: steps.json, which `oncilla run --steps` takes, and the files of each step, in_K_<key>
and out_K_<key>. tests/models/run_models.py runs and compares. No TensorFlow is needed for that."""
import os, sys, run_lists
import numpy as np
from run_general import GENERAL
from run_recorder import keras, tf, v1, f32, old_graph, record, record1, record_graph, record_keras, Recorder, settings, sig

settings.root, chosen = sys.argv[1], sys.argv[2:]
rng = None


def loops():
    class M(tf.Module):
        def __init__(self):
            self.w = tf.Variable(f32(3, 3) * 0.3)

        # Carried shapes that grow, a list of results, a nested loop.
        @sig(x=([None, 3], tf.float32), n=([], tf.int32))
        def grow(self, x, n):
            def body(i, y, all):
                y = tf.concat([y, tf.tanh(y[-1:] @ self.w)], 0)
                return i + 1, y, all.write(i, tf.reduce_sum(y))
            all = tf.TensorArray(tf.float32, 0, dynamic_size=True)
            i, y, all = tf.while_loop(lambda i, *_: i < n, body, (0, x, all),
                                      shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 3]), tf.TensorShape(None)))
            return {"y": y, "sums": all.stack(), "i": i}

        @sig(n=([], tf.int32))
        def table(self, n):
            out = tf.TensorArray(tf.int32, n)
            for i in tf.range(n):
                total = tf.constant(0)
                j = tf.constant(0)
                while j <= i:
                    if j % 2 == 0:
                        total += i * j
                    else:
                        total -= j
                    j += 1
                out = out.write(i, total)
            return {"t": out.stack()}

    m = M()
    record("loops", m, {"grow": m.grow, "table": m.table},
           [("grow", {"x": f32(2, 3), "n": np.int32(3)}), ("grow", {"x": f32(1, 3), "n": np.int32(1)}), ("table", {"n": np.int32(6)}),
            ("grow", {"x": f32(2, 3), "n": np.int32(4)}), ("table", {"n": np.int32(1)})])


def branches():
    class M(tf.Module):
        def __init__(self):
            self.w = tf.Variable(f32(4))

        @sig(x=([None, 4], tf.float32), a=([], tf.bool), k=([], tf.int32))
        def choose(self, x, a, k):
            y = tf.cond(a, lambda: tf.cond(tf.reduce_sum(x) > 0, lambda: x * self.w, lambda: x - self.w), lambda: tf.zeros_like(x))
            z = tf.switch_case(k, [lambda: x[:1], lambda: tf.concat([x, x], 0), lambda: x * 2])
            return {"y": y, "z": z}

    m = M()
    x = f32(3, 4)
    record("branches", m, {"serving_default": m.choose},
           [("serving_default", {"x": x * s, "a": np.bool_(a), "k": np.int32(k)}) for s, a, k in ((1, True, 0), (-1, True, 1), (1, False, 2), (1, True, 7))])


def recurrent():
    x = keras.Input((None, 5), name="x")
    y = keras.layers.LSTM(6, return_sequences=True)(x)
    y = keras.layers.Bidirectional(keras.layers.GRU(4, return_sequences=True))(y)
    y = keras.layers.SimpleRNN(3)(keras.layers.GRU(4, reset_after=False, return_sequences=True)(y))
    record_keras("recurrent", keras.Model(x, y), [{"x": f32(2, 7, 5)}, {"x": f32(1, 3, 5)}, {"x": f32(3, 1, 5)}])


def masked():
    ids = keras.Input((None,), dtype="int32", name="ids")
    y = keras.layers.Embedding(20, 4, mask_zero=True)(ids)
    y = keras.layers.LSTM(5, go_backwards=True)(keras.layers.LSTM(5, return_sequences=True)(y))
    record_keras("masked", keras.Model(ids, y), [{"ids": np.array([[3, 4, 5, 0, 0], [1, 2, 3, 4, 5]], np.int32)}, {"ids": np.array([[7, 0]], np.int32)}])


def state():
    class M(tf.Module):
        def __init__(self):
            self.count, self.sum = tf.Variable(0, dtype=tf.int64), tf.Variable(tf.zeros([3]))
            self.rows = tf.Variable(f32(4, 2))

        @sig(x=([3], tf.float32))
        def add(self, x):
            self.count.assign_add(1)
            self.sum.assign_add(x)
            return {"mean": self.sum / tf.cast(self.count, tf.float32)}

        @tf.function(input_signature=[])
        def get(self):
            return {"count": self.count.read_value(), "sum": self.sum.read_value(), "rows": self.rows.read_value()}

        @sig(i=([None], tf.int32), x=([None, 2], tf.float32), add=([], tf.bool))
        def row(self, i, x, add):
            before = tf.gather(self.rows, i)
            if add:
                self.rows.scatter_add(tf.IndexedSlices(x, i))
            else:
                self.rows.scatter_update(tf.IndexedSlices(x, i))
            return {"before": before, "after": tf.gather(self.rows, i)}

        @tf.function(input_signature=[])
        def reset(self):
            self.count.assign(0)
            self.sum.assign(tf.zeros([3]))
            return {"done": tf.constant(True)}

    m = M()
    record("state", m, {"add": m.add, "get": m.get, "row": m.row, "reset": m.reset},
           [("get", {}), ("add", {"x": f32(3)}), ("get", {}), ("add", {"x": f32(3)}), ("add", {"x": f32(3)}),
            ("row", {"i": np.array([1, 3], np.int32), "x": f32(2, 2), "add": np.bool_(True)}), ("get", {}), ("reset", {}),
            ("row", {"i": np.array([0], np.int32), "x": f32(1, 2), "add": np.bool_(False)}), ("get", {}), ("add", {"x": f32(3)})])


def tables():
    words = ["the", "a", "cat", "dog", "sat", "on", "mat", "caf\u00e9"]
    path = "/tmp/vocabulary.txt"
    with open(path, "w") as file: file.write("\n".join(words) + "\n")

    class M(tf.Module):
        def __init__(self):
            lookup = tf.lookup
            self.words = lookup.StaticVocabularyTable(lookup.TextFileInitializer(path, tf.string, lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                                                                                 lookup.TextFileIndex.LINE_NUMBER), num_oov_buckets=2)
            self.back = lookup.StaticHashTable(lookup.TextFileInitializer(path, tf.int64, lookup.TextFileIndex.LINE_NUMBER, tf.string,
                                                                          lookup.TextFileIndex.WHOLE_LINE), "?")
            self.scores = lookup.StaticHashTable(lookup.KeyValueTensorInitializer(tf.constant([5, 1, -3], tf.int64), tf.constant([0.5, 0.1, -0.3])), 9.0)

        @sig(text=([None], tf.string))
        def ids(self, text):
            return {"ids": self.words.lookup(text), "size": self.words.size()}

        @sig(ids=([None, None], tf.int64))
        def text(self, ids):
            return {"text": self.back.lookup(ids), "score": self.scores.lookup(ids)}

    m = M()
    record("tables", m, {"ids": m.ids, "text": m.text},
           [("ids", {"text": np.array([b"cat", b"zebra", "caf\u00e9".encode(), b"the"], object)}),
            ("text", {"ids": np.array([[0, 5], [7, 99], [-3, 1]], np.int64)}), ("ids", {"text": np.array([], object)})])


def nested():
    class M(tf.Module):
        def __init__(self):
            self.w = tf.Variable(f32(3))

        @tf.function
        def inner(self, x, k):
            return x * self.w + k

        @tf.function
        def middle(self, x):
            return self.inner(x, 1.0) + self.inner(x, 2.0)

        @sig(x=([None, 3], tf.float32), n=([], tf.int32))
        def outer(self, x, n):
            for _ in tf.range(n):
                x = tf.tanh(self.middle(x))
            return {"y": x}

    m = M()
    record("nested", m, {"serving_default": m.outer}, [("serving_default", {"x": f32(2, 3), "n": np.int32(n)}) for n in (0, 3)])


def pixels():
    """Pictures as bytes, with preprocessing inside."""
    i = keras.Input((None, None, 3), dtype="uint8", name="image")
    x = keras.layers.Resizing(16, 12)(keras.ops.cast(i, "float32"))
    x = keras.layers.Normalization(mean=[120.0, 110, 100], variance=[3000.0, 2900, 2800])(x)
    x = keras.layers.Conv2D(4, 3, activation="relu")(x)
    y = keras.layers.Dense(3, activation="softmax")(keras.layers.GlobalAveragePooling2D()(x))
    record_keras("pixels", keras.Model(i, y), [{"image": rng.integers(0, 256, s).astype(np.uint8)} for s in ((1, 20, 30, 3), (2, 9, 16, 3))])


def old_loops():
    """Switch, Merge, Enter, Exit: nested loops, a branch in a loop, arrays, several outputs."""
    def build():
        x, n = v1.placeholder(tf.float32, [None, 3], "x"), v1.placeholder(tf.int32, [], "n")
        w = v1.get_variable("w", [3, 3], initializer=v1.random_normal_initializer(seed=1))
        def inner(i, y):
            return tf.while_loop(lambda j, _: j < i, lambda j, z: (j + 1, tf.tanh(tf.matmul(z, w) + tf.cast(j, tf.float32))), (tf.constant(0), y))[1]
        def body(i, y, all):
            y = tf.cond(tf.equal(i % 2, 0), lambda: inner(i, y), lambda: y * 0.5)
            return i + 1, y, all.write(i, tf.reduce_mean(y, 1))
        i, y, all = tf.while_loop(lambda i, *_: i < n, body, (tf.constant(0), x, tf.TensorArray(tf.float32, n)))
        return {"x": x, "n": n}, {"i": i, "y": y, "all": all.stack()}
    record1("old_loops", build, [{"x": f32(2, 3), "n": np.int32(5)}, {"x": f32(1, 3), "n": np.int32(0)}, {"x": f32(2, 3), "n": np.int32(4)}][0:3:2] + [{"x": f32(4, 3), "n": np.int32(1)}])


def old_stacks():
    """The gradient of an old loop pushes what its rounds compute to stacks and pops it on the way back; a stack used by hand."""
    def build():
        x, n = v1.placeholder(tf.float32, [2, 3], "x"), v1.placeholder(tf.int32, [], "n")
        y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, tf.sin(y) * x), (tf.constant(0), x))[1]
        slope = tf.gradients(tf.reduce_sum(y), x)[0]
        stack = tf.raw_ops.StackV2(max_size=tf.constant(-1), elem_type=tf.float32)
        first = tf.raw_ops.StackPushV2(handle=stack, elem=x)
        with tf.control_dependencies([first]): second = tf.raw_ops.StackPushV2(handle=stack, elem=x * 2.0)
        with tf.control_dependencies([second]): top = tf.raw_ops.StackPopV2(handle=stack, elem_type=tf.float32)
        with tf.control_dependencies([top]): below = tf.raw_ops.StackPopV2(handle=stack, elem_type=tf.float32)
        return {"x": x, "n": n}, {"y": y, "slope": slope, "top": top + 1.0, "below": below}
    record1("old_stacks", build, [{"x": f32(2, 3), "n": np.int32(k)} for k in (3, 0, 1, 5)])


def old_branches():
    """tf.cond of TensorFlow 1: constants on both sides, nested, several results, effects inside; a predicate that is a constant."""
    def build():
        x, p, q = v1.placeholder(tf.float32, [None], "x"), v1.placeholder(tf.bool, [], "p"), v1.placeholder(tf.bool, [], "q")
        total = v1.get_variable("total", [], initializer=v1.zeros_initializer())
        a, b = tf.cond(p, lambda: (tf.constant(1.0), x + 1.0), lambda: (tf.constant(2.0), x * 2.0))
        c = tf.cond(p, lambda: tf.cond(q, lambda: b + a, lambda: b - a), lambda: tf.reduce_sum(x) + tf.zeros_like(x))
        d = tf.cond(q, lambda: v1.assign_add(total, tf.reduce_sum(c)), lambda: tf.identity(total))
        train = v1.placeholder_with_default(False, [], "training")
        e = tf.cond(train, lambda: tf.nn.dropout(x, rate=0.5), lambda: x)
        return {"x": x, "p": p, "q": q}, {"a": a, "b": b, "c": c, "d": d, "e": e}
    record1("old_branches", build, [{"x": f32(3), "p": np.bool_(p), "q": np.bool_(q)} for p, q in ((0, 0), (0, 1), (1, 0), (1, 1), (0, 0))])


def to_old_arrays(graph, version):
    """Arrays of version 3 as the versions before: handles are strings, and flows begin as constants."""
    makers = {n.name for n in graph.node if n.op == "TensorArrayV3"}
    strings = set(makers)
    for n in graph.node:
        handle = n.input[0].split(":")[0] if n.input else ""
        if n.op in ("Enter", "Switch") and handle in strings and n.attr["T"].type == tf.resource.as_datatype_enum:
            n.attr["T"].type = tf.string.as_datatype_enum
            strings.add(n.name)
        if n.op.startswith("TensorArray"):
            n.op = n.op[:-2] + version
            n.attr.pop("identical_element_shapes", None)
        for i, name in enumerate(n.input):
            if name.split(":")[0] in makers and name.endswith(":1"): n.input[i] = name[:-2] + "/zero"
        if n.op == "TensorArrayGather" and version == "" and n.name.startswith("pack"): n.op = "TensorArrayPack"
    for name in sorted(makers):
        zero = graph.node.add(name=name + "/zero", op="Const")
        zero.attr["dtype"].type = tf.float32.as_datatype_enum
        zero.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.float32(0)))
    graph.versions.producer = 25 if version else 15


def old_arrays():
    """TensorArrayV2, in a loop that reads one array and writes two, one of them in a branch; V1 without a loop."""
    def build():
        x, n = v1.placeholder(tf.float32, [None, 3], "x"), v1.placeholder(tf.int32, [], "n")
        source = tf.TensorArray(tf.float32, n).unstack(x)
        def body(i, a, b):
            y = source.read(i)
            b = tf.cond(tf.equal(i % 2, 0), lambda: b.write(i, y * 2.0), lambda: b.write(i, -y))
            return i + 1, a.write(i, tf.reduce_sum(y)), b
        i, a, b = tf.while_loop(lambda i, *_: i < n, body, (tf.constant(0), tf.TensorArray(tf.float32, n), tf.TensorArray(tf.float32, n, element_shape=[3])))
        parts = tf.TensorArray(tf.float32, 2, infer_shape=False, clear_after_read=False).split(x, [1, tf.shape(x)[0] - 1])
        return {"x": x, "n": n}, {"a": a.stack(), "b": b.gather([n - 1]), "size": b.size(), "joined": parts.concat(), "late": parts.read(1)}
    graph, inputs, outputs = old_graph(build)
    to_old_arrays(graph, "V2")
    record_graph("old_arrays", graph, inputs, outputs, [{"x": f32(k, 3), "n": np.int32(k)} for k in (4, 1, 5)])


def first_arrays():
    """The very first arrays, with references, Pack and Unpack."""
    g = v1.GraphDef()
    g.versions.producer = 15
    def node(name, op, *inputs, **attrs):
        n = g.node.add(name=name, op=op, input=inputs)
        for key, value in attrs.items():
            if key == "value": n.attr[key].tensor.CopyFrom(tf.make_tensor_proto(value))
            else: n.attr[key].type = tf.as_dtype(value).as_datatype_enum
    def const(name, value): node(name, "Const", dtype=np.asarray(value).dtype, value=np.asarray(value))
    node("x", "Placeholder", dtype=tf.float32)
    g.node[-1].attr["shape"].shape.unknown_rank = True
    for name, value in (("n", np.int32(3)), ("two", np.int32(2)), ("zero", np.float32(0)), ("i0", np.int32(0)), ("i1", np.int32(1)), ("some", np.array([2, 0], np.int32)), ("sizes", np.array([1, 2], np.int64))): const(name, value)
    node("a", "TensorArray", "n", dtype=tf.float32)
    node("filled", "TensorArrayUnpack", "a", "x", "zero", T=tf.float32)
    node("row", "TensorArrayRead", "a", "i1", "filled", dtype=tf.float32)
    node("b", "TensorArray", "two", dtype=tf.float32)
    node("b1", "TensorArrayWrite", "b", "i1", "row", "zero", T=tf.float32)
    node("b2", "TensorArrayWrite", "b", "i0", "row", "b1", T=tf.float32)
    node("packed", "TensorArrayPack", "b", "b2", dtype=tf.float32)
    node("count", "TensorArraySize", "b", "b2")
    node("c", "TensorArray", "n", dtype=tf.float32)
    node("c1", "TensorArrayUnpack", "c", "x", "zero", T=tf.float32)
    node("chosen", "TensorArrayGather", "c", "some", "c1", dtype=tf.float32)
    node("d", "TensorArray", "two", dtype=tf.float32)
    node("d1", "TensorArraySplit", "d", "x", "sizes", "zero", T=tf.float32)
    node("joined", "TensorArrayConcat", "d", "d1", dtype=tf.float32)
    node("e", "TensorArray", "n", dtype=tf.float32)
    node("e1", "TensorArrayScatter", "e", "some", "packed", "zero", T=tf.float32)
    node("first", "TensorArrayRead", "e", "i0", "e1", dtype=tf.float32)
    names = {k: k + ":0" for k in ("row", "packed", "count", "chosen", "joined", "first")}
    names["lengths"] = "joined:1"
    record_graph("first_arrays", g, {"x": "x:0"}, names, [{"x": f32(3, 2)}, {"x": f32(3, 4)}])


def first_ops():
    """Ops that TensorFlow gave up long ago, in a graph that says that it is as old."""
    g = v1.GraphDef()
    g.versions.producer = 6
    def node(name, op, *inputs, attrs=(), **types):
        n = g.node.add(name=name, op=op, input=inputs)
        for key, value in attrs: n.attr[key].CopyFrom(value)
        for key, value in types.items(): n.attr[key].type = value.as_datatype_enum
    A = v1.AttrValue
    for name in ("x", "mean", "variance", "offset", "scale"): node(name, "Placeholder", dtype=tf.float32, attrs=[("shape", A(shape=tf.TensorShape(None).as_proto()))])
    for scaled in (False, True):
        node("norm%d" % scaled, "BatchNormWithGlobalNormalization", "x", "mean", "variance", "offset", "scale", T=tf.float32, attrs=[("variance_epsilon", A(f=1e-3)), ("scale_after_normalization", A(b=scaled))])
    outputs = {"plain": "norm0:0", "scaled": "norm1:0"}
    calls = [{"x": f32(2, 3, 4, 5), "mean": f32(5), "variance": np.abs(f32(5)), "offset": f32(5), "scale": f32(5)} for _ in range(2)]
    record_graph("first_ops", g, {k: k + ":0" for k in ("x", "mean", "variance", "offset", "scale")}, outputs, calls)


def files():
    """An asset read as one string; tables that change, whose keys are hashed densely."""
    path = "/tmp/notes.bin"
    with open(path, "wb") as file: file.write(b"two\nlines, \x00\xff bytes")

    class M(tf.Module):
        def __init__(self):
            self.notes = tf.saved_model.Asset(path)
            self.table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, default_value=-1.0, empty_key=-1, deleted_key=-2, initial_num_buckets=16)
            self.words = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=0)
            self.vectors = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, default_value=[0.5, 0.25])
            self.table.insert(tf.constant([3, 4, 5], tf.int64), tf.constant([30.0, 40.0, 50.0]))
            self.table.remove(tf.constant([5], tf.int64))
            self.words.insert(tf.constant(["z", "b", "m"]), tf.constant([26, 2, 13], tf.int64))

        @sig(k=([None], tf.int64), v=([None], tf.float32), w=([None], tf.string))
        def put(self, k, v, w):
            self.table.insert(k, v)
            self.words.insert(w, k)
            self.vectors.insert(k, tf.stack([v, -v], 1))
            return {"size": self.table.size()}

        @sig(k=([None], tf.int64), w=([None], tf.string))
        def get(self, k, w):
            return {"v": self.table.lookup(k), "k": self.words.lookup(w), "two": self.vectors.lookup(k), "notes": tf.io.decode_raw(tf.io.read_file(self.notes.asset_path), tf.uint8)}

        @sig(k=([None], tf.int64))
        def drop(self, k):
            self.table.remove(k)
            return {"size": self.table.size()}

    m = M()
    keys = lambda *k: np.array(k, np.int64)
    words = lambda *w: np.array(w, object)
    record("files", m, {"put": m.put, "get": m.get, "drop": m.drop},
           [("get", {"k": keys(3, 7), "w": words(b"a")}), ("put", {"k": keys(7, 3, 9), "v": f32(3), "w": words(b"a", b"b", b"a")}), ("get", {"k": keys(3, 7, 8), "w": words(b"b", b"a", b"")}),
            ("drop", {"k": keys(3, 100)}), ("get", {"k": keys(9, 3), "w": words(b"b")})])


def streams():
    """Random numbers by op seeds, which go on from run to run, whatever the sizes are, and within a loop."""
    def build():
        n, m, x = v1.placeholder(tf.int32, [None], "n"), v1.placeholder(tf.int32, [], "m"), v1.placeholder(tf.float32, [None, 2], "x")
        seeds = dict(seed=7, seed2=11)
        uniform = tf.raw_ops.RandomUniform(shape=n, dtype=tf.float32, **seeds)
        normal = tf.raw_ops.RandomStandardNormal(shape=n, dtype=tf.float32, seed=5)
        cut = tf.raw_ops.TruncatedNormal(shape=n, dtype=tf.float32, seed2=3)
        whole = tf.raw_ops.RandomUniformInt(shape=n, minval=-5, maxval=100, **seeds)
        order = tf.raw_ops.RandomShuffle(value=x, **seeds)
        classes = tf.raw_ops.Multinomial(logits=x, num_samples=m, **seeds)
        walk = tf.while_loop(lambda i, _: i < m, lambda i, y: (i + 1, y + tf.raw_ops.RandomUniform(shape=[2], dtype=tf.float32, seed=1, seed2=2)), (tf.constant(0), tf.zeros([2])))[1]
        side = tf.cond(m > 2, lambda: tf.raw_ops.RandomUniform(shape=[2], dtype=tf.float32, seed=9), lambda: tf.zeros([2]))
        return {"n": n, "m": m, "x": x}, {"uniform": uniform, "normal": normal, "cut": cut, "whole": whole, "order": order, "classes": classes, "walk": walk, "side": side}
    record1("streams", build, [{"n": np.array(n, np.int32), "m": np.int32(m), "x": f32(rows, 2)} for n, m, rows in (([3], 3, 5), ([3], 3, 5), ([2, 5], 1, 9), ([3], 0, 2), ([0, 4], 5, 1), ([3], 3, 5))])


def parts():
    """Parts of variables, set and changed: slices, rows and elements, by handle."""
    class M(tf.Module):
        def __init__(self):
            self.v = tf.Variable(f32(4, 3))
            self.ring = tf.Variable(tf.zeros([2, 5]))

        @sig(x=([None, 3], tf.float32), i=([], tf.int32))
        def put(self, x, i):
            self.v[1:3].assign(x[:2])
            self.v[i, ::-2].assign(x[0, :2])
            self.v[..., 0].assign(7.0)
            tf.raw_ops.ResourceScatterNdMax(ref=self.v.handle, indices=tf.stack([[i % 4, 1], [0, 2]]), updates=x[1, :2])
            tf.raw_ops.ResourceScatterNdMin(ref=self.v.handle, indices=[[3]], updates=x[:1])
            return {"v": self.v.read_value(), "there": tf.raw_ops.VarIsInitializedOp(resource=self.v.handle)}

        @sig(x=([2], tf.float32))
        def push(self, x):
            self.ring[:, :-1].assign(self.ring[:, 1:])
            self.ring[:, 4].assign(x)
            return {"ring": self.ring.read_value(), "other": tf.raw_ops.VarIsInitializedOp(resource=self.v.handle)}

    m = M()
    record("parts", m, {"put": m.put, "push": m.push}, [("put", {"x": f32(2, 3), "i": np.int32(0)}), ("push", {"x": f32(2)}), ("push", {"x": f32(2)}), ("put", {"x": f32(3, 3), "i": np.int32(-1)}), ("push", {"x": f32(2)})])


def old_parts():
    """The same by reference, as TensorFlow 1 has it."""
    def build():
        x, i = v1.placeholder(tf.float32, [None, 3], "x"), v1.placeholder(tf.int32, [None], "i")
        v = v1.get_variable("v", [4, 3], initializer=v1.random_normal_initializer(seed=1))
        outs, last = {}, []
        def then(key, make):
            # A copy, since what follows changes the variable's memory in place.
            with tf.control_dependencies(last): outs[key] = tf.cast(make(), tf.float64)
            last[:] = [outs[key]]
        then("slice", lambda: tf.raw_ops.StridedSliceAssign(ref=v, begin=[1, 0], end=[3, 2], strides=[1, 1], value=x[:2, :2]))
        then("max", lambda: v1.scatter_max(v, i, x))
        then("min", lambda: v1.scatter_min(v, i, x * 0.5))
        then("mul", lambda: v1.scatter_mul(v, i, x))
        then("nd_add", lambda: v1.scatter_nd_add(v, tf.expand_dims(i, 1), x))
        then("nd_sub", lambda: v1.scatter_nd_sub(v, tf.stack([i, i % 3], 1), x[:, 0]))
        then("nd_max", lambda: tf.raw_ops.ScatterNdMax(ref=v, indices=tf.stack([i, i % 3], 1), updates=x[:, 1]))
        then("nd_min", lambda: tf.raw_ops.ScatterNdMin(ref=v, indices=tf.stack([i, i % 3], 1), updates=x[:, 2]))
        return {"x": x, "i": i}, outs
    record1("old_parts", build, [{"x": f32(n, 3), "i": np.array(i, np.int32)} for n, i in ((2, [1, 3]), (3, [0, 2, 2]), (2, [3, 0]))])


def sides():
    """Which side a Merge took; conditions that are strings, numbers and tensors."""
    def build():
        x, p, q = v1.placeholder(tf.float32, [None], "x"), v1.placeholder(tf.bool, [], "p"), v1.placeholder(tf.bool, [], "q")
        no, yes = tf.raw_ops.Switch(data=x, pred=p)
        y, index = tf.raw_ops.Merge(inputs=[no + 1.0, yes * 2.0])
        z, other = tf.raw_ops.Merge(inputs=[tf.exp(yes), tf.sin(no)])
        far_no, far_yes = tf.raw_ops.Switch(data=tf.cast(index, tf.float32) + y, pred=q)
        w, third = tf.raw_ops.Merge(inputs=[far_no, far_yes - 1.0])
        return {"x": x, "p": p, "q": q}, {"y": y, "index": index, "z": z, "other": other, "w": w, "third": third}
    graph, inputs, outputs = old_graph(build)
    record_graph("sides", graph, inputs, outputs, [{"x": f32(3), "p": np.bool_(p), "q": np.bool_(q)} for p, q in ((0, 0), (1, 0), (0, 1), (1, 1))])


def truth():
    """Conditions of If and While that are no booleans."""
    one = lambda dtype: tf.function(lambda x: x + 1.0).get_concrete_function(tf.TensorSpec([], tf.float32))
    two = tf.function(lambda x: x * 3.0).get_concrete_function(tf.TensorSpec([], tf.float32))
    cut = tf.function(lambda s, n: (tf.strings.substr(s, 1, 100), n + 1)).get_concrete_function(tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int32))
    same = tf.function(lambda s, n: s).get_concrete_function(tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int32))
    shorter = tf.function(lambda v: v[1:]).get_concrete_function(tf.TensorSpec([None], tf.float32))
    all_of = tf.function(lambda v: v).get_concrete_function(tf.TensorSpec([None], tf.float32))

    class M(tf.Module):
        @sig(s=([], tf.string), i=([], tf.int64), f=([], tf.float32), v=([None], tf.float32))
        def __call__(self, s, i, f, v):
            x = tf.constant(5.0)
            choose = lambda c: tf.raw_ops.If(cond=c, input=[x], Tout=[tf.float32], then_branch=one(0), else_branch=two)[0]
            left, count = tf.raw_ops.While(input=[s, tf.constant(0)], cond=same, body=cut)
            none = tf.raw_ops.StatelessWhile(input=[v], cond=all_of, body=shorter)[0]
            return {"s": choose(s), "i": choose(i), "f": choose(f), "v": choose(v), "left": left, "count": count, "none": none}

    record("truth", M(), None, [("serving_default", {"s": np.array(s, object), "i": np.int64(i), "f": np.float32(f), "v": f32(n)}) for s, i, f, n in ((b"", 0, 0.0, 0), (b"abc", -7, np.nan, 3), (b"\0", 1 << 40, -0.0, 1))])


def counted():
    """For loops: up, down, not at all; with handles and values that stay; one within another."""
    class M(tf.Module):
        def __init__(self):
            self.w, self.total = tf.Variable(f32(3, 3) * 0.3), tf.Variable(0.0)

        @sig(start=([], tf.int32), limit=([], tf.int32), delta=([], tf.int32), x=([None, 3], tf.float32))
        def __call__(self, start, limit, delta, x):
            T = tf.TensorSpec
            inner = tf.function(lambda i, y, k: (y + tf.cast(i * k, tf.float32), k)).get_concrete_function(T([], tf.int32), T([None, 3], tf.float32), T([], tf.int32))
            grow = tf.function(lambda i, y: tf.concat([y, y[:1] + tf.cast(i, tf.float32)], 0)).get_concrete_function(T([], tf.int32), T([None, 3], tf.float32))
            def step(i, y, w):
                z = tf.raw_ops.For(start=0, limit=2, delta=1, input=[y, i], body=inner)[0]
                return tf.tanh(tf.matmul(z, w)), w
            body = tf.function(step).get_concrete_function(T([], tf.int32), T([None, 3], tf.float32), T([3, 3], tf.float32))
            y, _ = tf.raw_ops.For(start=start, limit=limit, delta=delta, input=[x, self.w], body=body)
            z = tf.raw_ops.For(start=start, limit=limit, delta=delta, input=[x], body=grow)[0]
            def add(i, handle, k):
                tf.raw_ops.AssignAddVariableOp(resource=handle, value=tf.cast(i, tf.float32))
                return handle, k + tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
            add = tf.function(add).get_concrete_function(T([], tf.int32), T([], tf.resource), T([], tf.float32))
            k = tf.raw_ops.For(start=start, limit=limit, delta=delta, input=[self.total.handle, 0.0], body=add)[1]
            return {"y": y, "z": z, "k": k, "total": self.total.read_value()}

    record("counted", M(), None, [("serving_default", {"start": np.int32(a), "limit": np.int32(b), "delta": np.int32(d), "x": f32(2, 3)}) for a, b, d in ((0, 4, 1), (5, -2, -3), (3, 3, 0), (2, 2, 1), (0, 5, 2))])


def old_recurrent():
    """dynamic_rnn with lengths, as TensorFlow 1 wrote it."""
    def build():
        x, lengths = v1.placeholder(tf.float32, [None, None, 4], "x"), v1.placeholder(tf.int32, [None], "lengths")
        kernel = v1.get_variable("kernel", [7, 12], initializer=v1.random_normal_initializer(0, 0.4, seed=1))
        bias = v1.get_variable("bias", [12], initializer=v1.random_normal_initializer(seed=2))
        batch, steps = tf.shape(x)[0], tf.shape(x)[1]
        inputs = tf.TensorArray(tf.float32, steps).unstack(tf.transpose(x, [1, 0, 2]))
        def body(t, c, h, out):
            i, j, f, o = tf.split(tf.matmul(tf.concat([inputs.read(t), h], 1), kernel) + bias, 4, 1)
            new_c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
            new_h = tf.tanh(new_c) * tf.sigmoid(o)
            live = t < lengths
            out = out.write(t, v1.where(live, new_h, tf.zeros_like(new_h)))
            return t + 1, v1.where(live, new_c, c), v1.where(live, new_h, h), out
        zero = tf.zeros([batch, 3])
        _, c, h, out = tf.while_loop(lambda t, *_: t < steps, body, (0, zero, zero, tf.TensorArray(tf.float32, steps)))
        y = tf.transpose(out.stack(), [1, 0, 2])
        return {"x": x, "lengths": lengths}, {"y": y, "c": c, "h": h}
    record1("old_recurrent", build, [{"x": f32(2, 5, 4), "lengths": np.array([5, 2], np.int32)}, {"x": f32(3, 2, 4), "lengths": np.array([1, 2, 0], np.int32)}])


def old_tables():
    def build():
        t = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["b", "a", "c"], tf.constant([20, 10, 30], tf.int64)), -1)
        s = v1.placeholder(tf.string, [None], "s")
        return {"s": s}, {"y": t.lookup(s)}
    record1("old_tables", build, [{"s": np.array([b"a", b"x", b"c", b"a"], object)}])


def partitioned():
    """Variables cut into parts, in a checkpoint of two shards."""
    r = Recorder("partitioned")
    with tf.Graph().as_default():
        v1.disable_resource_variables()
        x = v1.placeholder(tf.float32, [None, 7], "x")
        with v1.variable_scope("net", partitioner=v1.fixed_size_partitioner(3)):
            w = v1.get_variable("w", [7, 4], initializer=v1.random_normal_initializer(seed=1))
        with v1.variable_scope("two"):
            b = v1.get_variable("b", [4], initializer=v1.random_normal_initializer(seed=2))
        y = tf.matmul(x, tf.convert_to_tensor(w)) + b
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            builder = v1.saved_model.Builder(r.model)
            info = v1.saved_model.utils.build_tensor_info
            signature = v1.saved_model.signature_def_utils.build_signature_def({"x": info(x)}, {"y": info(y)}, "predict")
            builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
            builder.save()
            feed = f32(3, 7)
            r.step("serving_default", {"x": feed}, {"y": session.run(y, {x: feed})})
    r.finish()


def functions():
    """No signature: functions that Python calls as attributes, which alone capture variables, a table and a constant."""
    class Head(tf.Module):
        def __init__(self):
            self.b = tf.Variable(f32(2))

        @sig(h=([None, 4], tf.float32))
        def logits(self, h):
            return {"sum": tf.reduce_sum(h, 1), "max": tf.reduce_max(h, 1) + self.b[0]}

    class M(tf.Module):
        def __init__(self):
            self.w = tf.Variable(f32(3, 4))
            self.count = tf.Variable(0, dtype=tf.int64)
            self.offset = tf.constant(f32(4))
            self.head = Head()
            self.words = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), -1)

        @sig(x=([None, 3], tf.float32), by=([], tf.float32))
        def encode(self, x, by):
            self.count.assign_add(1)
            return by * (x @ self.w) + self.offset

        @sig()
        def calls(self): return self.count + 0

        @sig(w=([None], tf.string))
        def lookup(self, w): return self.words.lookup(w)

        @tf.function
        def twice(self, x): return x + x, x

        @sig(x=([None, 3], tf.float32))
        def __call__(self, x):
            return self.head.logits(self.encode(x, 2.0))

    m = M()
    for spec in (tf.TensorSpec([2], tf.float32), tf.TensorSpec([None], tf.int32)): m.twice.get_concrete_function(spec)
    r = Recorder("functions")
    tf.saved_model.save(m, r.model, signatures={})
    loaded = tf.saved_model.load(r.model)
    x, h = f32(2, 3), f32(5, 4)
    def step(path, feeds, call):
        out = call(**{k: tf.constant(v) for k, v in feeds.items()})
        if not isinstance(out, dict): out = {"output_%d" % i: v for i, v in enumerate(tf.nest.flatten(out))}
        r.step(path, feeds, {k: v.numpy() for k, v in out.items()})
    step("encode", {"x": x, "by": np.float32(3)}, loaded.encode)
    step("head.logits", {"h": h}, loaded.head.logits)
    step("calls", {}, loaded.calls)
    step("__call__", {"x": x}, loaded.__call__)
    step("lookup", {"w": np.array(["b", "z", "a"])}, loaded.lookup)
    step("calls", {}, loaded.calls)
    r.finish()


for make in (loops, branches, recurrent, masked, state, tables, nested, pixels, old_loops, old_stacks, old_branches, old_arrays, first_arrays, first_ops, files, streams, parts, old_parts, sides, truth, counted, old_recurrent, old_tables, partitioned, functions, run_lists.lists, *GENERAL):
    if chosen and make.__name__ not in chosen: continue
    rng = settings.rng = np.random.default_rng(len(make.__name__))
    keras.utils.set_random_seed(7)
    make()
