"""XlaCallModule: StableHLO modules as JAX exports them (0.4.35), which this family alone needs to be written."""
from recorder import *
import jax, jax.numpy as jnp
from jax import export, lax
from jax._src.export import _export
from jax._src.interpreters import mlir
from jaxlib.mlir import ir, passmanager
from tensorflow.compiler.tf2xla.ops import gen_xla_ops


def module(f, specs):
    """The module without the places in this file, and the types of its results."""
    e = export.export(jax.jit(f), platforms=["cpu"])(*specs)
    with mlir.make_ir_context():
        m = ir.Module.parse(e.mlir_module())
        passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(m.operation)
        return _export._module_to_bytecode(m), e.out_avals, e.calling_convention_version


def hlo(name, f, *feeds, open=None, error=False):
    feeds = [np.asarray(x) for x in feeds]
    scope = export.SymbolicScope()
    shapes = [x.shape if open is None else export.symbolic_shape(open[i], scope=scope) for i, x in enumerate(feeds)]
    text, outs, version = module(f, [jax.ShapeDtypeStruct(s, x.dtype) for s, x in zip(shapes, feeds)])
    sizes = lambda s: [d if isinstance(d, int) else None for d in s]
    case(name, lambda *a: list(gen_xla_ops.xla_call_module(args=a, version=version, module=text, Sout=[sizes(o.shape) for o in outs], Tout=[tf.as_dtype(o.dtype) for o in outs],
         dim_args_spec=[], platforms=["CPU"], function_list=[], has_token_input_output=False, disabled_checks=[])), *feeds, sized=open is None, error=error)


W1, W2 = f32(8, 16), f32(16, 4)
X = f32(1, 6, 7, 3)
hlo("Mlp", lambda x: jax.nn.softmax(jnp.maximum(x @ W1, 0) @ W2), f32(3, 8))
hlo("Activations", lambda x: (jax.nn.gelu(x), jax.nn.silu(x), jax.nn.relu6(x), lax.erf(x), jax.nn.softplus(x)), f32(3, 8))
hlo("Unary", lambda x: (jnp.cbrt(x), jnp.round(x * 3), lax.round(x * 2), jnp.sign(x), jnp.log1p(jnp.abs(x)), jnp.expm1(x), jnp.sinh(x), jnp.arctan(x), lax.erf_inv(jnp.clip(x, -.9, .9)), jnp.tan(x), jnp.exp2(x), lax.is_finite(x / 0)), f32(3, 4))
hlo("Integers", lambda x: (x >> 1, x << 3, lax.shift_right_logical(-x, np.int32(3)), lax.shift_right_arithmetic(-x, np.int32(40)), lax.clz(x), lax.population_count(x), x ^ 3, ~x, x % 7, x // (x % 3), lax.rem(x, np.int32(5)), x & 12 | 1), i32(3, 5, lo=-900, hi=900))
hlo("Truth", lambda x: (x > 0) ^ (x < 1) | ~(x == 0.5) & (x >= -1), f32(3, 4))
hlo("Types", lambda x: (x.astype(jnp.uint8), x.astype(jnp.float16), (x > 3).astype(jnp.float32), lax.bitcast_convert_type(x, jnp.float32), lax.bitcast_convert_type(x, jnp.uint8)), i32(4, lo=0, hi=200))
hlo("TotalOrder", lambda x, y: (lax.lt_to_p.bind(x, y), lax.le_to_p.bind(x, y)), np.array([np.nan, -0.0, 0, 1, -np.inf], np.float32), np.array([np.inf, 0, -0.0, np.nan, -5], np.float32))
hlo("Conv", lambda x, w: lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), X, f32(3, 2, 3, 4))
hlo("Conv_transposed", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), X, f32(3, 3, 3, 2))
hlo("Conv_gradient", jax.grad(lambda x, w: jnp.sum(lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2), argnums=(0, 1)), f32(2, 5, 6, 2), f32(3, 3, 2, 3))
hlo("Pools", lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), lax.reduce_window(x, 0., lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")), X)
hlo("Attention", lambda q, k: jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((4, 4))), jnp.einsum("bthd,bshd->bhts", q, k), -1e9)), k), f32(2, 4, 2, 3), f32(2, 4, 2, 3))
hlo("Reductions", lambda x: (jnp.var(x, 1), jnp.any(x > 1, 0), jnp.all(x < 2), jnp.prod(x, 0), jax.nn.logsumexp(x, 1), jnp.max(x), jnp.cumsum(x, 1), lax.cummax(x, 0)), f32(3, 5))
hlo("Arg", lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), np.array([[1, 5, 5], [3, np.nan, 1], [-np.inf, 2, 9]], np.float32))
hlo("Fold", lambda x: lax.reduce(x, np.int32(0), lax.bitwise_xor, (1,)), i32(3, 7))
hlo("Sort", lambda x: (jnp.sort(x), jnp.argsort(x)), np.array([3, np.nan, -0.0, 0.0, -np.inf, 2, np.inf, np.nan, 2], np.float32))
hlo("Sort_keys", lambda x, y: lax.sort((x, y), num_keys=2), i32(2, 7, lo=0, hi=3), f32(2, 7))
hlo("TopK", lambda x: lax.top_k(x, 3), f32(2, 7))
hlo("Gather", lambda x, i: (x[i], jnp.take(x, i, axis=1), x[i, 1]), f32(5, 5), np.array([0, 4, -2, 7], np.int32))
hlo("Gather_batch", jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (3,))), f32(3, 6), np.array([0, 2, 9], np.int32))
hlo("Scatter", lambda x, i: (x.at[i].add(1.5), x.at[i, 1].multiply(3.), x.at[:, i].min(0.5), x.at[0].set(2.)), f32(5, 5), np.array([0, 4, 2, 7], np.int32))
hlo("Slices", lambda x, i: (lax.dynamic_update_slice(x, lax.dynamic_slice(x, (i, 0), (2, 4)) * 2, (0, i)), x[1:-1:2, ::-1], lax.pad(x, 0.5, ((1, 2, 1), (-1, 0, 0)))), f32(5, 6), np.int32(3))
hlo("Loop", lambda x: lax.scan(lambda h, t: (jnp.tanh(h @ W1[:, :8] + t), h.sum()), x[0], x), f32(3, 2, 8))
hlo("Nested", lambda x: lax.fori_loop(0, 3, lambda i, c: lax.while_loop(lambda d: jnp.max(d) < 10. * (i + 1), lambda d: d * 1.5 + 1, jnp.abs(c)), x), f32(4))
hlo("Branch", lambda x, i: (lax.switch(i, [lambda y: y + 1, lambda y: y * 2, lambda y: -y], x), lax.cond(x[0] > 9, lambda y: y, lambda y: y - 1, x)), f32(4), np.int32(1))
hlo("Random", lambda x: x + jax.random.normal(jax.random.PRNGKey(0), (4,)), f32(4))
hlo("Open", lambda x: (jnp.reshape(jax.nn.softmax(x @ W1), (-1,)), jnp.zeros((x.shape[0], 4)) + x.shape[0], jnp.concatenate([x, x], 0), jnp.arange(x.shape[0])), f32(3, 8), open=["b, 8"])
hlo("Open_arg", lambda x: (jnp.argmax(x, 0), x[:, 1], jnp.tril(jnp.ones((x.shape[0], x.shape[0])))), f32(3, 4), open=["b, 4"])
hlo("Fourier", lambda x: (jnp.abs(jnp.fft.rfft(x)), jnp.fft.fft2(x).real, jnp.fft.irfft(jnp.fft.rfft(x) * 2.0, n=6), jnp.fft.irfft2(jnp.fft.rfft2(x) * 2.0), jnp.fft.ifft(x).imag), f32(2, 4, 6))
hlo("Complex", lambda x, y: (lambda z, w: tuple(p(v) for v in (z * w, z / w, z + w[::-1], jnp.exp(z), jnp.conj(z) - w) for p in (jnp.real, jnp.imag)) + (jnp.abs(z),))(lax.complex(x, y), lax.complex(y + 3, x)), f32(5), f32(5))
hlo("Relu6", lambda x: (jnp.minimum(jnp.maximum(x * 5, 0), 6), jnp.clip(x * 5, 0, 6)), f32(9))
hlo("Open_sums", lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 0)), f32(3, 4), open=["b, 4"])
hlo("Scatter_start", lambda x: x.at[0:2, 1:3].set(7.0), f32(3, 4))
hlo("Open_sizes_that_differ", lambda a, b: a + b, f32(5, 3), f32(1, 3), open=["n, 3", "n, 3"], error=True)
