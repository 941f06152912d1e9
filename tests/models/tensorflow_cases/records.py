"""Records: Example messages, CSV, raw bytes."""
from recorder import *


def example(**features):
    kinds = {}
    for k, v in features.items():
        if v is None: kinds[k] = tf.train.Feature()
        elif v and isinstance(v[0], bytes): kinds[k] = tf.train.Feature(bytes_list=tf.train.BytesList(value=v))
        elif v and isinstance(v[0], float): kinds[k] = tf.train.Feature(float_list=tf.train.FloatList(value=v))
        else: kinds[k] = tf.train.Feature(int64_list=tf.train.Int64List(value=v))
    return tf.train.Example(features=tf.train.Features(feature=kinds)).SerializeToString()


FULL = [example(x=[1.5, 2.5], n=[7], m=[5, 6], s=[b"a", b"bc"], r=[1, 2, 3], t=[b"one"]), example(x=[3.5, -1.0], n=[-9], s=[b""], r=[4], t=[b"two"])]
GAPS = FULL + [example(x=[0.5, 0.25], r=None), b""]


def serialized(items):
    return np.array(items, object)


def flat(outputs):
    return [t for o in outputs for t in (o if isinstance(o, (list, tuple)) else [o])]


def v2(a, defaults, ragged=True):
    return flat(raw.ParseExampleV2(serialized=a, names=c([], tf.string), sparse_keys=c(["s", "m"]), dense_keys=c(["x", "n"]), ragged_keys=c(["r", "t"] if ragged else [], tf.string), dense_defaults=defaults, num_sparse=2, sparse_types=[tf.string, tf.int64],
                                   ragged_value_types=[tf.int64, tf.string] if ragged else [], ragged_split_types=[tf.int32, tf.int64] if ragged else [], dense_shapes=[[2], []]))


case("ParseExampleV2", lambda a: v2(a, [c([], tf.float32), c([], tf.int64)]), serialized(FULL))
case("ParseExampleV2_defaults", lambda a: v2(a, [c([9.0, 8.0]), c(-1, tf.int64)]), serialized(GAPS))
case("ParseExampleV2_one", lambda a: v2(a, [c([9.0, 8.0]), c(-1, tf.int64)], ragged=False), np.array(FULL[0], object))
case("ParseExampleV2_none", lambda a: v2(a, [c([9.0, 8.0]), c(-1, tf.int64)]), serialized([]))
case("ParseExampleV2_missing", lambda a: v2(a, [c([], tf.float32), c([], tf.int64)]), serialized(GAPS), error=True)
case("ParseExampleV2_damaged", lambda a: v2(a, [c([9.0, 8.0]), c(-1, tf.int64)]), serialized([FULL[0][:-3]]), error=True)
case("ParseExampleV2_type", lambda a: v2(a, [c([9.0, 8.0]), c(-1, tf.int64)]), serialized([example(x=[1, 2], n=[7])]), error=True)
case("ParseExampleV2_size", lambda a: v2(a, [c([9.0, 8.0]), c(-1, tf.int64)]), serialized([example(x=[1.0], n=[7])]), error=True)
case("ParseExampleV2_variable", lambda a: flat(raw.ParseExampleV2(serialized=a, names=c([], tf.string), sparse_keys=c([], tf.string), dense_keys=c(["r", "s"]), ragged_keys=c([], tf.string), dense_defaults=[c(-5, tf.int64), c(b"pad")], num_sparse=0, sparse_types=[],
                                                                  ragged_value_types=[], ragged_split_types=[], dense_shapes=[[None], [None]])), serialized(GAPS[:3]))
case("ParseExample", lambda a: flat(raw.ParseExample(serialized=a, names=c([], tf.string), sparse_keys=[c("s"), c("r")], dense_keys=[c("n"), c("x"), c("t")], dense_defaults=[c(3, tf.int64), c([1.0, 2.0]), c(b"none")], sparse_types=[tf.string, tf.int64],
                                                     dense_shapes=[[], [2], []])), serialized(GAPS))
case("ParseSingleExample", lambda a: flat(raw.ParseSingleExample(serialized=a, dense_defaults=[c(3, tf.int64), c([[1.0, 2.0]])], num_sparse=1, sparse_keys=["s"], dense_keys=["n", "x"], sparse_types=[tf.string], dense_shapes=[[], [1, 2]])), np.array(FULL[0], object))
case("ParseSingleExample_defaults", lambda a: flat(raw.ParseSingleExample(serialized=a, dense_defaults=[c(3, tf.int64), c([[1.0, 2.0]])], num_sparse=1, sparse_keys=["s"], dense_keys=["n", "x"], sparse_types=[tf.string], dense_shapes=[[], [1, 2]])), np.array(b"", object))

csv = lambda a, defaults, **kw: list(raw.DecodeCSV(records=a, record_defaults=defaults, **kw))
ALL = lambda: [c([0.5]), c([7], tf.int32), c([b"none"]), c([2], tf.int64), c([1.5], tf.float64)]
case("DecodeCSV", lambda a: csv(a, ALL()), np.array([b"1.25,2,three,4,5e3", b",,,,", b"-1,-2,\"a,\"\"b\"\"\",3,0"], object))
case("DecodeCSV_grid", lambda a: csv(a, [c([b""]), c([0])]), np.array([[b"x,1", b"y,2"], [b"z,3", b"\"\",4"]], object))
case("DecodeCSV_delimiter", lambda a: csv(a, [c([b""]), c([b""])], field_delim=";", use_quote_delim=False), np.array([b"a\"b;\"c\"", b"1,2;3"], object))
case("DecodeCSV_na", lambda a: csv(a, [c([1.0]), c([b"d"])], na_value="NA"), np.array([b"NA,NA", b"2,x"], object))
case("DecodeCSV_columns", lambda a: csv(a, [c([0]), c([b""])], select_cols=[1, 3]), np.array([b"a,1,b,c,d", b"a,2,b,q"], object))
case("DecodeCSV_line_end", lambda a: csv(a, [c([b""]), c([b""])]), np.array([b"a,b\n"], object), error=True)
case("DecodeCSV_quoted_line_end", lambda a: csv(a, [c([b""]), c([b""])]), np.array([b"a,\"b\r\nc\""], object))
case("DecodeCSV_required", lambda a: csv(a, [c([], tf.int32), c([b""])]), np.array([b"1,b"], object))
for name, bad in (("few", b"1"), ("many", b"1,2,3"), ("number", b"x,y"), ("missing", b",y"), ("quote", b"1,\"y"), ("inside", b"1,y\"z"), ("behind", b"1,\"y\"z")):
    case("DecodeCSV_bad_" + name, lambda a: csv(a, [c([], tf.int32), c([b""])]), np.array([bad], object), error=True)

RAW = np.array([[bytes(range(8)), bytes(range(8, 16))]], object)
for t in (tf.uint8, tf.int8, tf.uint16, tf.int32, tf.int64, tf.float32, tf.float64, tf.float16):
    case("DecodeRaw_" + t.name, lambda a, t=t: [raw.DecodeRaw(input_bytes=a, out_type=t) if False else raw.DecodeRaw(bytes=a, out_type=t), raw.DecodeRaw(bytes=a, out_type=t, little_endian=False)], RAW)
case("DecodeRaw_bool", lambda a: raw.DecodeRaw(bytes=a, out_type=tf.bool), np.array([b"\x00\x01\x01"], object))
case("DecodeRaw_empty", lambda a: raw.DecodeRaw(bytes=a, out_type=tf.int32), np.array([b"", b""], object))
case("DecodeRaw_lengths", lambda a: raw.DecodeRaw(bytes=a, out_type=tf.uint8), np.array([b"ab", b"c"], object), error=True)
case("DecodeRaw_multiple", lambda a: raw.DecodeRaw(bytes=a, out_type=tf.int32), np.array([b"abc"], object), error=True)
case("DecodePaddedRaw", lambda a: [raw.DecodePaddedRaw(input_bytes=a, fixed_length=c(4), out_type=tf.uint16), raw.DecodePaddedRaw(input_bytes=a, fixed_length=c(4), out_type=tf.uint16, little_endian=False)], np.array([b"abcdef", b"xy", b""], object))
