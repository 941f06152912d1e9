"""Random numbers of distributions with parameters, from stateless seeds."""
from recorder import *

SEEDS = (np.array([3, 5], np.int32), np.array([-7, 2 ** 40], np.int64))
ALPHA = np.array([[0.01, 0.5, 1.0], [1.5, 4.0, 300.0]])
RATES = np.array([0.0, 0.3, 3.0, 9.99, 10.0, 25.0, 1e4])
for d in "float32 float64".split():
    for k, seed in enumerate(SEEDS):
        case("StatelessRandomGammaV2_%s_%d" % (d, k), lambda s, a: raw.StatelessRandomGammaV2(shape=c([5, 2, 3]), seed=s, alpha=a), seed, ALPHA.astype(d))
        case("StatelessRandomPoisson_%s_%d" % (d, k), lambda s, a, d=d: raw.StatelessRandomPoisson(shape=c([6, 7]), seed=s, lam=a, dtype=tf.as_dtype(d)), seed, RATES.astype(d))
    case("StatelessRandomGammaV3_" + d, lambda s, a: (lambda k: raw.StatelessRandomGammaV3(shape=c([4, 2, 3]), key=k[0], counter=k[1], alg=c(1), alpha=a))(raw.StatelessRandomGetKeyCounter(seed=s)), SEEDS[0], ALPHA.astype(d))
    case("StatelessRandomGammaV2_scalar_" + d, lambda s, a: raw.StatelessRandomGammaV2(shape=c([9], tf.int64), seed=s, alpha=a), SEEDS[0], np.array(2.5, d))
case("StatelessRandomGammaV2_shape", lambda s, a: raw.StatelessRandomGammaV2(shape=c([5, 2]), seed=s, alpha=a), SEEDS[0], ALPHA.astype(np.float32), error=True)
case("StatelessRandomGammaV2_none", lambda s, a: raw.StatelessRandomGammaV2(shape=c([0, 2, 3]), seed=s, alpha=a), SEEDS[0], ALPHA.astype(np.float32))
for d in "int32 int64 float16".split():
    case("StatelessRandomPoisson_%s" % d, lambda s, a, d=d: raw.StatelessRandomPoisson(shape=c([6, 7]), seed=s, lam=a, dtype=tf.as_dtype(d)), SEEDS[0], RATES.astype(np.float32))
case("StatelessRandomPoisson_i32_rates", lambda s, a: raw.StatelessRandomPoisson(shape=c([6, 3]), seed=s, lam=a, dtype=tf.int64), SEEDS[0], np.array([1, 20, 300], np.int32))
COUNTS, PROBS = np.array([0, 1, 5, 40, 1000, 1e6]), np.array([[0.0, 0.2, 0.5, 0.3, 0.02, 0.4], [1.0, 0.8, 0.51, 0.7, 0.995, 0.6]])
for d in "float32 float64".split():
    for u in "int32 int64 float32 float64".split():
        case("StatelessRandomBinomial_%s_%s" % (d, u), lambda s, n, p, u=u: raw.StatelessRandomBinomial(shape=c([7, 2, 6]), seed=s, counts=n, probs=p, dtype=tf.as_dtype(u)), SEEDS[0 if u[0] == "i" else 1], COUNTS.astype(d), PROBS.astype(d))
case("StatelessRandomBinomial_one", lambda s, n, p: raw.StatelessRandomBinomial(shape=c([20]), seed=s, counts=n, probs=p, dtype=tf.int64), SEEDS[0], np.float64(12), np.float64(0.25))
case("StatelessRandomBinomial_shape", lambda s, n, p: raw.StatelessRandomBinomial(shape=c([7, 6]), seed=s, counts=n, probs=p, dtype=tf.int64), SEEDS[0], COUNTS, PROBS, error=True)
BOUNDS = np.array([[-1, -3, 0.5, 2, -np.inf, -np.inf, -0.1, -8], [2, 3, 1, np.inf, -2, 0.5, 0.1, -7]])
for d in "float16 float32 float64".split():
    for k, seed in enumerate(SEEDS):
        case("StatelessParameterizedTruncatedNormal_%s_%d" % (d, k), lambda s, m, v, a, b: raw.StatelessParameterizedTruncatedNormal(shape=c([7, 8]), seed=s, means=m, stddevs=v, minvals=a, maxvals=b), seed, np.array(0.25, d), np.linspace(0.5, 1.5, 8).astype(d), *BOUNDS.astype(d))
    case("StatelessParameterizedTruncatedNormal_wide_" + d, lambda s, m, a, b: raw.StatelessParameterizedTruncatedNormal(shape=c([5, 2, 8], tf.int64), seed=s, means=m, stddevs=tf.ones_like(m), minvals=a, maxvals=b), SEEDS[0], np.array([[0], [1]], d), *BOUNDS.astype(d))
case("StatelessParameterizedTruncatedNormal_one", lambda s, m: raw.StatelessParameterizedTruncatedNormal(shape=c([20]), seed=s, means=m, stddevs=c(1.0), minvals=c(-1.0), maxvals=c(2.0)), SEEDS[0], np.float32(0))
case("StatelessParameterizedTruncatedNormal_none", lambda s, m: raw.StatelessParameterizedTruncatedNormal(shape=c([0, 3]), seed=s, means=m, stddevs=c(1.0), minvals=c(-1.0), maxvals=c(2.0)), SEEDS[0], np.zeros(3, np.float32))
for name, v, a in (("deviation", 0, -1), ("bounds", 1, 2), ("infinite", 1, -np.inf)):
    case("StatelessParameterizedTruncatedNormal_" + name, lambda s, m, v, a, high: raw.StatelessParameterizedTruncatedNormal(shape=c([2]), seed=s, means=m, stddevs=v, minvals=a, maxvals=high), SEEDS[0], np.float32(0), np.float32(v), np.float32(a), np.float32(np.inf if name == "infinite" else 2), error=True)
case("StatelessParameterizedTruncatedNormal_shape", lambda s, m: raw.StatelessParameterizedTruncatedNormal(shape=c([3, 2]), seed=s, means=m, stddevs=c(1.0), minvals=c(-1.0), maxvals=c(2.0)), SEEDS[0], np.zeros(3, np.float32), error=True)
