"""Random numbers with seeds: the same bits as TensorFlow's. Shapes are fed, so that nothing is folded."""
from recorder import *

SHAPE = np.array([3, 7], np.int32)
BIG = np.array([5000], np.int32)
SEEDS = [(1, 0), (0, 2), (87654321, 5), (-3, 2**40 + 9)]
for k, (seed, seed2) in enumerate(SEEDS):
    kw = dict(seed=seed, seed2=seed2)
    for t in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
        wide = lambda x, t=t: tf.cast(x, tf.float32) if t == tf.bfloat16 else x
        for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
            case("%s_%s_%d" % (op, t.name, k), lambda s, op=op, t=t, kw=kw, wide=wide: wide(getattr(raw, op)(shape=s, dtype=t, **kw)), SHAPE)
    for t in (np.int32, np.int64):
        case("RandomUniformInt_%s_%d" % (np.dtype(t).name, k), lambda s, a, b, kw=kw: raw.RandomUniformInt(shape=s, minval=a, maxval=b, **kw), SHAPE, np.array(-5, t), np.array(1000, t))
        case("RandomUniformInt_wide_%s_%d" % (np.dtype(t).name, k), lambda s, a, b, kw=kw: raw.RandomUniformInt(shape=s, minval=a, maxval=b, **kw), SHAPE, np.array(np.iinfo(t).min, t), np.array(np.iinfo(t).max, t))
    case("RandomShuffle_%d" % k, lambda a, kw=kw: raw.RandomShuffle(value=a, **kw), np.arange(11, dtype=np.int32))
    case("RandomShuffle_rows_%d" % k, lambda a, kw=kw: raw.RandomShuffle(value=a, **kw), f32(6, 3))
    case("Multinomial_%d" % k, lambda a, n, kw=kw: [raw.Multinomial(logits=a, num_samples=n, **kw), raw.Multinomial(logits=a, num_samples=n, output_dtype=tf.int32, **kw)], f32(3, 5), np.int32(7))
case("RandomUniform_big", lambda s: raw.RandomUniform(shape=s, dtype=tf.float32, seed=3, seed2=4), BIG)
case("TruncatedNormal_big", lambda s: raw.TruncatedNormal(shape=s, dtype=tf.float32, seed=3, seed2=4), BIG)
case("RandomUniform_none", lambda s: raw.RandomUniform(shape=s, dtype=tf.float32, seed=3, seed2=4), np.array([0, 3], np.int64))
case("RandomUniform_one", lambda s: raw.RandomUniform(shape=s, dtype=tf.float32, seed=3, seed2=4), np.array([], np.int32))
case("RandomUniformInt_bounds", lambda s, a, b: raw.RandomUniformInt(shape=s, minval=a, maxval=b, seed=1), SHAPE, np.int32(3), np.int32(3), error=True)
case("RandomShuffle_one", lambda a: raw.RandomShuffle(value=a, seed=1), f32(1, 3))
case("RandomShuffle_none", lambda a: raw.RandomShuffle(value=a, seed=1), f32(0, 3))
case("Multinomial_infinite", lambda a, n: raw.Multinomial(logits=a, num_samples=n, seed=5), np.array([[-np.inf, 0, np.nan, 1, -np.inf]], np.float32), np.int32(9))
case("Multinomial_many", lambda a, n: raw.Multinomial(logits=a, num_samples=n, seed=5), f32(1, 40), np.int32(50))
for k, seed in enumerate([(1, 2), (0, 0), (-7, 2**31 - 1)]):
    for t in (np.int32, np.int64):
        S = np.array(seed, t)
        name = "%s_%d" % (np.dtype(t).name, k)
        case("StatelessRandomGetKeyCounter_" + name, lambda s: list(raw.StatelessRandomGetKeyCounter(seed=s)), S)
        case("StatelessRandomGetKeyCounterAlg_" + name, lambda s: list(raw.StatelessRandomGetKeyCounterAlg(seed=s)), S)
        for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
            case("%s_%s" % (op, name), lambda n, s, op=op: [getattr(raw, op)(shape=n, seed=s), getattr(raw, op)(shape=n, seed=s, dtype=tf.float64), getattr(raw, op)(shape=n, seed=s, dtype=tf.float16)], SHAPE, S)
            case("%sV2_%s" % (op, name), lambda n, s, op=op: getattr(raw, op + "V2")(shape=n, key=raw.StatelessRandomGetKeyCounter(seed=s).key, counter=raw.StatelessRandomGetKeyCounter(seed=s).counter, alg=c(1)), SHAPE, S)
        case("StatelessRandomUniformInt_" + name, lambda n, s: [raw.StatelessRandomUniformInt(shape=n, seed=s, minval=c(-5, d), maxval=c(17, d)) for d in (tf.int32, tf.int64)], SHAPE, S)
        case("StatelessRandomUniformIntV2_" + name, lambda n, s: [raw.StatelessRandomUniformIntV2(shape=n, key=raw.StatelessRandomGetKeyCounter(seed=s).key, counter=raw.StatelessRandomGetKeyCounter(seed=s).counter, alg=c(3), minval=c(5, d), maxval=c(17, d))
                                                                 for d in (tf.int32, tf.int64)], SHAPE, S)
        case("StatelessRandomUniformFullInt_" + name, lambda n, s: [raw.StatelessRandomUniformFullInt(shape=n, seed=s, dtype=d) for d in (tf.int32, tf.int64, tf.uint32, tf.uint64)], SHAPE, S)
        case("StatelessRandomUniformFullIntV2_" + name, lambda n, s: [raw.StatelessRandomUniformFullIntV2(shape=n, key=raw.StatelessRandomGetKeyCounter(seed=s).key, counter=raw.StatelessRandomGetKeyCounter(seed=s).counter, alg=raw.StatelessRandomGetAlg(), dtype=d)
                                                                     for d in (tf.int32, tf.int64, tf.uint32, tf.uint64)], SHAPE, S)
        case("StatelessMultinomial_" + name, lambda a, n, s: raw.StatelessMultinomial(logits=a, num_samples=n, seed=s), f32(2, 5), np.int32(6), S)
case("StatelessTruncatedNormal_big", lambda n, s: raw.StatelessTruncatedNormal(shape=n, seed=s), BIG, np.array([3, 4], np.int32))
