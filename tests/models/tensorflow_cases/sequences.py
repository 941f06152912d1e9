"""SequenceExample messages."""
from recorder import *


def serialized(items): return np.array(items, object)
def flat(outputs): return [t for o in outputs for t in (o if isinstance(o, (list, tuple)) else [o])]


def feature(v):
    if v is None: return tf.train.Feature()
    if v and isinstance(v[0], bytes): return tf.train.Feature(bytes_list=tf.train.BytesList(value=v))
    if v and isinstance(v[0], float): return tf.train.Feature(float_list=tf.train.FloatList(value=v))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=v))


def sequence(context, **lists):
    return tf.train.SequenceExample(context=tf.train.Features(feature={k: feature(v) for k, v in context.items()}),
                                    feature_lists=tf.train.FeatureLists(feature_list={k: tf.train.FeatureList(feature=[feature(v) for v in steps]) for k, steps in lists.items()})).SerializeToString()


FULL = [sequence(dict(x=[1.5, 2.5], n=[7], s=[b"a", b"bc"], r=[1, 2]), d=[[1.0, 2.0], [3.0, 4.0]], e=[[1], [2], [3]], w=[[b"u"], None, [b"v", b"w"]], q=[[1, 2], [3]], g=[[b"k", b"l"], None]),
        sequence(dict(x=[3.5, -1.0], n=[-9], s=[b""], r=[4]), d=[[5.0, 6.0]], e=[], w=[[b"z", b"y", b"x"]], q=[[], [4, 5, 6], [7]], g=[[b"m"]])]
GAPS = FULL + [sequence(dict(x=[0.5, 0.25], n=[1]), e=[[4]]), sequence(dict(s=None), d=[], w=[])]
TYPES = dict(context_sparse_types=[tf.string, tf.int64], feature_list_sparse_types=[tf.string, tf.int64], context_dense_shapes=[[2], []], feature_list_dense_types=[tf.float32, tf.int64], feature_list_dense_shapes=[[2], []])


def v1_op(a, defaults=None, empty=("d", "e")):
    return flat(raw.ParseSequenceExample(serialized=a, debug_name=c([], tf.string), context_dense_defaults=defaults or [c([9.0, 8.0]), c(-1, tf.int64)], feature_list_dense_missing_assumed_empty=list(empty), context_sparse_keys=["s", "r"],
                                         context_dense_keys=["x", "n"], feature_list_sparse_keys=["w", "q"], feature_list_dense_keys=["d", "e"], Ncontext_sparse=2, Ncontext_dense=2, Nfeature_list_sparse=2, Nfeature_list_dense=2, **TYPES))


def v2_op(a, defaults=None, empty=(True, True), ragged=True):
    return flat(raw.ParseSequenceExampleV2(serialized=a, debug_name=c([], tf.string), context_dense_defaults=defaults or [c([9.0, 8.0]), c(-1, tf.int64)], feature_list_dense_missing_assumed_empty=c(list(empty)), context_sparse_keys=c(["s"]),
                                           context_dense_keys=c(["x", "n"]), context_ragged_keys=c(["r"] if ragged else [], tf.string), feature_list_sparse_keys=c(["w"]), feature_list_dense_keys=c(["d", "e"]), feature_list_ragged_keys=c(["q", "g"] if ragged else [], tf.string),
                                           Ncontext_sparse=1, Nfeature_list_sparse=1, Nfeature_list_dense=2, context_ragged_value_types=[tf.int64] if ragged else [], context_ragged_split_types=[tf.int32] if ragged else [],
                                           feature_list_ragged_value_types=[tf.int64, tf.string] if ragged else [], feature_list_ragged_split_types=[tf.int64, tf.int32] if ragged else [],
                                           **{**TYPES, "context_sparse_types": [tf.string], "feature_list_sparse_types": [tf.string]}))


def single(a, defaults=None, empty=("d", "e")):
    return flat(raw.ParseSingleSequenceExample(serialized=a, feature_list_dense_missing_assumed_empty=c(list(empty), tf.string), context_sparse_keys=[c("s"), c("r")], context_dense_keys=[c("x"), c("n")], feature_list_sparse_keys=[c("w"), c("q")],
                                               feature_list_dense_keys=[c("d"), c("e")], context_dense_defaults=defaults or [c([9.0, 8.0]), c(-1, tf.int64)], debug_name=c(""), **TYPES))


BAD = {"damaged": FULL[0][:-3], "type": sequence(dict(x=[1, 2], n=[7])), "size": sequence(dict(x=[1.0], n=[7])), "list_type": sequence(dict(x=[1.0, 2.0], n=[7]), d=[[1, 2]]), "list_size": sequence(dict(x=[1.0, 2.0], n=[7]), d=[[1.0]]), "step_none": sequence(dict(x=[1.0, 2.0], n=[7]), d=[None])}
for name, op in (("ParseSequenceExample", v1_op), ("ParseSequenceExampleV2", v2_op)):
    case(name, lambda a, op=op: op(a), serialized(FULL))
    case(name + "_gaps", lambda a, op=op: op(a), serialized(GAPS))
    case(name + "_none", lambda a, op=op: op(a), serialized([]))
    for bad, data in BAD.items(): case("%s_%s" % (name, bad), lambda a, op=op: op(a), serialized([FULL[0], data]), error=True)
    case(name + "_required", lambda a, op=op: op(a, defaults=[c([], tf.float32), c([], tf.int64)]), serialized(GAPS), error=True)
    case(name + "_list_required", lambda a, op=op: op(a, empty=("e",) if op is v1_op else (False, True)), serialized(GAPS), error=True)
case("ParseSequenceExampleV2_one", lambda a: v2_op(a, ragged=False), np.array(FULL[0], object))
case("ParseSequenceExampleV2_one_gaps", lambda a: v2_op(a, ragged=False), np.array(GAPS[3], object))
case("ParseSingleSequenceExample", lambda a: single(a), np.array(FULL[0], object))
case("ParseSingleSequenceExample_second", lambda a: single(a), np.array(FULL[1], object))
case("ParseSingleSequenceExample_gaps", lambda a: single(a), np.array(GAPS[3], object))
case("ParseSingleSequenceExample_required", lambda a: single(a, defaults=[c([], tf.float32), c([], tf.int64)]), np.array(GAPS[3], object), error=True)
case("ParseSingleSequenceExample_list_required", lambda a: single(a, empty=()), np.array(GAPS[2], object), error=True)
for bad, data in BAD.items(): case("ParseSingleSequenceExample_" + bad, lambda a: single(a), np.array(data, object), error=True)
