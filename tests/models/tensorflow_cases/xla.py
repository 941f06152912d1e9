"""Ops of XLA, which TensorFlow runs within functions that it compiles as a whole."""
from recorder import *
from tensorflow.compiler.tf2xla.ops import gen_xla_ops


def compiled(build): return lambda *a: tf.function(build, jit_compile=True, autograph=False)(*a)
def xla(name, build, *feeds, **how): case(name, compiled(build), *feeds, sized=True, **how)


def varint(n):
    out = b""
    while n > 127: out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def message(**fields):
    """Dimension numbers: f1=3 is one number, f2=[0, 1] a packed list."""
    out = b""
    for key, value in fields.items():
        number = int(key[1:])
        if isinstance(value, list):
            packed = b"".join(varint(v) for v in value)
            if value: out += varint(number << 3 | 2) + varint(len(packed)) + packed
        else: out += varint(number << 3) + varint(value)
    return out


def function(build, *types):
    return tf.function(build, input_signature=[tf.TensorSpec([], t) for t in types], autograph=False).get_concrete_function()


def dot(a, b, summed, batch=([], []), to=tf.float32):
    return gen_xla_ops.xla_dot_v2(lhs=a, rhs=b, dimension_numbers=message(f1=list(summed[0]), f2=list(summed[1]), f3=list(batch[0]), f4=list(batch[1])), precision_config=b"", preferred_element_type=to)


A = f32(2, 3, 4)
xla("XlaDotV2", lambda a, b: [dot(a, b, ([2], [0])), dot(a, b, ([1], [1]))], A, f32(4, 3))
xla("XlaDotV2_batch", lambda a, b: [dot(a, b, ([2], [2]), ([0], [0])), dot(a, b, ([1], [1]), ([0], [0])), dot(a, b, ([1, 2], [1, 2]), ([0], [0]))], A, f32(2, 3, 4))
xla("XlaDotV2_moved", lambda a, b: [dot(a, b, ([3], [3]), ([0, 2], [0, 2])), dot(a, b, ([1, 3], [1, 3]), ([0], [0]))], f32(2, 3, 2, 4), f32(2, 3, 2, 4))
xla("XlaDotV2_outer", lambda a, b: [dot(a, b, ([], [])), dot(a, b, ([0], [0]))], f32(3), f32(3))
xla("XlaDotV2_types", lambda a, b: [dot(a, b, ([1], [0]), to=tf.int32)], i32(2, 3).astype(np.int8), i32(3, 2).astype(np.int8))
xla("XlaDot", lambda a, b: gen_xla_ops.xla_dot(lhs=a, rhs=b, dimension_numbers=message(f1=[2], f2=[0]), precision_config=b""), A, f32(4, 2))

NHWC = dict(f3=2, f4=3, f6=[0, 1], f7=0, f8=3, f9=0, f10=3, f11=[1, 2], f12=[1, 2])
NCHW = dict(f3=1, f4=0, f6=[2, 3], f7=0, f8=1, f9=0, f10=1, f11=[2, 3], f12=[2, 3])


def conv(a, b, axes=NHWC, strides=(1, 1), padding=((0, 0), (0, 0)), lhs=(1, 1), rhs=(1, 1), groups=1, batch_groups=1):
    return gen_xla_ops.xla_conv_v2(lhs=a, rhs=b, window_strides=c(strides), padding=c(padding), lhs_dilation=c(lhs), rhs_dilation=c(rhs), feature_group_count=c(groups),
                         dimension_numbers=message(**axes), precision_config=b"", preferred_element_type=tf.float32, batch_group_count=batch_groups)


X = f32(2, 6, 5, 4)
xla("XlaConvV2", lambda a, b: [conv(a, b), conv(a, b, strides=(2, 1), padding=((1, 1), (0, 2))), conv(a, b, rhs=(2, 1)), conv(a, b, padding=((-1, 0), (2, -1)))], X, f32(3, 2, 4, 3))
xla("XlaConvV2_nchw", lambda a, b: conv(a, b, NCHW, padding=((1, 1), (1, 1))), f32(1, 3, 5, 4), f32(2, 3, 3, 2))
xla("XlaConvV2_groups", lambda a, b: [conv(a, b, groups=2), conv(a, b, groups=2, lhs=(2, 2), padding=((1, 1), (1, 2)))], X, f32(3, 2, 2, 6))
xla("XlaConvV2_depthwise", lambda a, b: conv(a, b, groups=4), X, f32(2, 2, 1, 8))
xla("XlaConvV2_transposed", lambda a, b: [conv(a, b, lhs=(2, 2), padding=((1, 2), (2, 2))), conv(a, b, lhs=(2, 1), rhs=(2, 1), padding=((5, 6), (-1, 0))), conv(a, b, lhs=(2, 2), strides=(3, 2), padding=((1, 1), (0, 1)))], X, f32(3, 2, 4, 3))
xla("XlaConvV2_batches", lambda a, b: conv(a, b, batch_groups=2), f32(4, 4, 3, 2), f32(2, 2, 2, 6))
xla("XlaConv", lambda a, b: gen_xla_ops.xla_conv(lhs=a, rhs=b, window_strides=c([2]), padding=c([[1, 1]]), lhs_dilation=c([1]), rhs_dilation=c([1]), feature_group_count=c(1),
     dimension_numbers=message(f3=1, f4=2, f6=[0], f7=0, f8=2, f9=0, f10=2, f11=[1], f12=[1]), precision_config=b""), f32(2, 7, 3), f32(3, 3, 2))

ADD, MAX, MIN, MUL = (function(f, tf.float32, tf.float32) for f in (tf.add, tf.maximum, tf.minimum, tf.multiply))
SECOND = function(lambda x, y: y, tf.float32, tf.float32)
SQUARES = function(lambda x, y: tf.sqrt(x * x + y * y), tf.float32, tf.float32)


def reduce(a, init, axes, body): return gen_xla_ops.xla_reduce(input=a, init_value=c(init), dimensions_to_reduce=axes, reducer=body)


xla("XlaReduce", lambda a: [reduce(a, 0.0, [1], ADD), reduce(a, -np.inf, [0, 2], MAX), reduce(a, np.inf, [2], MIN), reduce(a, 1.0, [0, 1, 2], MUL), reduce(a, 2.5, [1], ADD), reduce(a, 0.5, [0], MAX)], A)
xla("XlaReduce_body", lambda a: [reduce(a, 0.0, [1], SQUARES), reduce(a, 0.0, [0, 2], SQUARES)], A)
xla("XlaReduce_bool", lambda a: [gen_xla_ops.xla_reduce(input=a, init_value=c(False), dimensions_to_reduce=[1], reducer=function(tf.logical_or, tf.bool, tf.bool)),
     gen_xla_ops.xla_reduce(input=a, init_value=c(True), dimensions_to_reduce=[0], reducer=function(tf.logical_and, tf.bool, tf.bool))], boolean(3, 4))


def pick(better):
    def body(a, i, b, k):
        first = tf.logical_or(better(a, b), tf.math.not_equal(a, a))
        earlier = tf.logical_or(first, tf.logical_and(tf.equal(a, b), tf.less(i, k)))
        return tf.where(first, a, b), tf.where(earlier, i, k)
    return function(body, tf.float32, tf.int32, tf.float32, tf.int32)


def picks(a, axis, better, init):
    count = tf.broadcast_to(tf.reshape(tf.range(a.shape[axis]), [-1 if i == axis else 1 for i in range(a.shape.rank)]), a.shape)
    return list(gen_xla_ops.xla_variadic_reduce_v2(inputs=[a, count], init_values=[c(init), c(0)], dimensions_to_reduce=[axis], reducer=pick(better)))


TIES = np.array([[1, 5, 5, 2], [3, 3, 1, 3], [-np.inf, np.nan, 2, 9]], np.float32)
xla("XlaVariadicReduceV2", lambda a: picks(a, 1, tf.greater, -np.inf) + picks(a, 0, tf.less, np.inf), TIES)
xla("XlaVariadicReduceV2_sums", lambda a, b: list(gen_xla_ops.xla_variadic_reduce_v2(inputs=[a, b], init_values=[c(0.0), c(1.0)], dimensions_to_reduce=[1],
     reducer=function(lambda a, b, x, y: (a + x, b * y), *[tf.float32] * 4))), f32(3, 5), f32(3, 5))
xla("XlaVariadicReduce", lambda a, b: list(gen_xla_ops.xla_variadic_reduce(input=[a, b], init_value=[c(0.0), c(0.0)], dimensions_to_reduce=[0],
     reducer=function(lambda a, b, x, y: (tf.maximum(a, x), b + y), *[tf.float32] * 4))), f32(3, 5), f32(3, 5))


def window(a, init, size, body, strides=None, base=None, dilation=None, padding=None):
    n = len(size)
    return gen_xla_ops.xla_reduce_window(input=a, init_value=c(init), window_dimensions=c(size), window_strides=c(strides or [1] * n), base_dilations=c(base or [1] * n),
                               window_dilations=c(dilation or [1] * n), padding=c(padding or [[0, 0]] * n), computation=body)


xla("XlaReduceWindow", lambda a: [window(a, -np.inf, [1, 2, 2, 1], MAX, [1, 2, 2, 1]), window(a, 0.0, [1, 3, 2, 1], ADD, [1, 1, 2, 1], padding=[[0, 0], [1, 1], [0, 1], [0, 0]]),
     window(a, np.inf, [1, 2, 1, 1], MIN, dilation=[1, 2, 1, 1]), window(a, 1.0, [1, 2, 2, 1], MUL), window(a, 0.0, [2, 1, 1, 3], ADD)], X)
xla("XlaReduceWindow_nchw", lambda a: [window(a, -np.inf, [1, 1, 2, 2], MAX, [1, 1, 2, 2]), window(a, 0.25, [1, 1, 2, 2], ADD)], f32(1, 2, 4, 6))
xla("XlaReduceWindow_running", lambda a: [window(a, 0.0, [1, 5], ADD, padding=[[0, 0], [4, 0]]), window(a, 1.0, [3, 1], MUL, padding=[[2, 0], [0, 0]]), window(a, 0.0, [1, 5], ADD, padding=[[0, 0], [0, 4]]),
     window(a, -np.inf, [1, 5], MAX, padding=[[0, 0], [4, 0]])], f32(3, 5))
xla("XlaReduceWindow_gaps", lambda a: [window(a, 0.0, [2, 2], ADD, base=[1, 2]), window(a, 0.0, [2, 2], SQUARES, [1, 2])], f32(3, 5))
xla("XlaReduceWindow_i32", lambda a: gen_xla_ops.xla_reduce_window(input=a, init_value=c(0), window_dimensions=c([2, 3]), window_strides=c([1, 1]), base_dilations=c([1, 1]), window_dilations=c([1, 1]),
     padding=c([[0, 0], [1, 1]]), computation=function(tf.add, tf.int32, tf.int32)), i32(3, 5))


def gather(a, i, sizes, **axes): return gen_xla_ops.xla_gather(operand=a, start_indices=i, slice_sizes=c(sizes), dimension_numbers=message(**axes), indices_are_sorted=False)


AT = np.array([[0, 2], [5, 1], [-3, 9]], np.int32)
xla("XlaGather", lambda a, i: [gather(a, i[:, :1], [1, 4], f1=[1], f2=[0], f3=[0], f4=1), gather(a, i[:, 0], [3, 1], f1=[0], f2=[1], f3=[1], f4=1), gather(a, i, [1, 1], f2=[0, 1], f3=[0, 1], f4=1),
     gather(a, i, [2, 3], f1=[1, 2], f3=[0, 1], f4=1), gather(a, i, [2, 3], f1=[0, 1], f3=[1, 0], f4=1), gather(a, tf.transpose(i), [1, 2], f1=[1], f2=[0], f3=[0, 1], f4=0),
     gather(a, i[0], [2, 2], f1=[0, 1], f3=[0, 1], f4=0), gather(a, i[:, :1], [1, 2], f1=[0, 1], f3=[0], f4=1)], f32(3, 4), AT)
xla("XlaGather_batches", lambda a, i: gather(a, i, [1, 1, 4], f1=[2], f2=[1], f3=[1], f4=2, f5=[0], f6=[0]), f32(2, 3, 4), np.array([[[2], [0]], [[1], [7]]], np.int32))


def scatter(a, i, u, body, **axes): return gen_xla_ops.xla_scatter(operand=a, scatter_indices=i, updates=u, update_computation=body, dimension_numbers=message(**axes), indices_are_sorted=False)


ROWS = dict(f1=[1], f2=[0], f3=[0], f4=1)
xla("XlaScatter", lambda a, i, u: [scatter(a, i, u, f, **ROWS) for f in (SECOND, ADD, MIN, MAX, MUL)], f32(4, 3), np.array([[2], [0], [9], [-1]], np.int32), f32(4, 3))
xla("XlaScatter_sums", lambda a, i, u: scatter(a, i, u, ADD, **ROWS), f32(4, 3), np.array([[2], [2], [4], [2]], np.int32), f32(4, 3))
xla("XlaScatter_windows", lambda a, i, u: [scatter(a, i, u, ADD, f1=[1, 2], f3=[0, 1], f4=1), scatter(a, tf.constant([[1, 1], [2, 0]]), u, SECOND, f1=[1, 2], f3=[1, 0], f4=1)], f32(4, 5), np.array([[0, 1], [3, 3]], np.int32), f32(2, 2, 2))
xla("XlaScatter_columns", lambda a, i, u: scatter(a, i, u, ADD, f1=[0], f2=[1], f3=[1], f4=1), f32(3, 4), np.array([[1], [3]], np.int32), f32(3, 2))


def sort(values, axis, body): return list(gen_xla_ops.xla_variadic_sort(inputs=values, dimension=c(axis), comparator=body, is_stable=True))


LESS = function(tf.less, tf.float32, tf.float32)
xla("XlaVariadicSort", lambda a, b: sort([a], 1, LESS) + sort([a, b], 0, function(lambda a, b, x, y: tf.greater(a, b), tf.float32, tf.float32, tf.int32, tf.int32)), f32(4, 5), i32(4, 5))
xla("XlaVariadicSort_keys", lambda a, b: sort([a, b], 1, function(lambda a, b, x, y: tf.logical_or(tf.less(a, b), tf.logical_and(tf.equal(a, b), tf.less(x, y))), tf.int32, tf.int32, tf.float32, tf.float32)),
    i32(3, 8, lo=0, hi=3), f32(3, 8))
xla("XlaVariadicSort_computed", lambda a: sort([a], 1, function(lambda a, b: tf.less(tf.abs(a), tf.abs(b)), tf.float32, tf.float32)), f32(3, 6))
xla("XlaSort", lambda a: gen_xla_ops.xla_sort(input=a), f32(3, 6))
xla("XlaKeyValueSort", lambda a, b: list(gen_xla_ops.xla_key_value_sort(keys=a, values=b)), f32(7), i32(7))

PADS = lambda a, low, high, inside: gen_xla_ops.xla_pad(input=a, padding_value=c(7.5), padding_low=c(low), padding_high=c(high), padding_interior=c(inside))
xla("XlaPad", lambda a: [PADS(a, [1, 0], [0, 2], [0, 0]), PADS(a, [-1, 1], [1, -2], [0, 0]), PADS(a, [0, 1], [0, 1], [2, 1]), PADS(a, [-2, 0], [-1, 0], [1, 0])], f32(3, 4))
xla("XlaEinsum", lambda a, b: gen_xla_ops.xla_einsum(a=a, b=b, equation="abc,cd->abd"), A, f32(4, 2))
xla("XlaBroadcastHelper", lambda a, b: [tf.add(*gen_xla_ops.xla_broadcast_helper(lhs=a, rhs=b, broadcast_dims=c([1]))), tf.add(*gen_xla_ops.xla_broadcast_helper(lhs=b, rhs=a, broadcast_dims=c([0])))], f32(3, 3), f32(3))
xla("XlaOptimizationBarrier", lambda a, b: list(gen_xla_ops.xla_optimization_barrier(input=[a, b])), f32(3), i32(2))
xla("XlaReducePrecision", lambda a: [gen_xla_ops.xla_reduce_precision(operand=a, exponent_bits=8, mantissa_bits=7), gen_xla_ops.xla_reduce_precision(operand=a, exponent_bits=5, mantissa_bits=10)], f32(9))
case("XlaSetBound", lambda a: gen_xla_ops.xla_set_bound(input=a, bound=c(5)), np.int32(3), reference=lambda a: a)
case("XlaSharding", lambda a: gen_xla_ops.xla_sharding(input=a), f32(3), reference=lambda a: a)
xla("XlaDynamicSlice_xla", lambda a, i: gen_xla_ops.xla_dynamic_slice(input=a, start_indices=i, size_indices=c([2, 2])), f32(4, 5), np.array([3, 1], np.int32))
V3 = tf.TensorSpec([3])
DOUBLE, NEGATIVE = (tf.function(f, input_signature=[V3]).get_concrete_function() for f in (lambda x: x * 2, lambda x: -x))
for n, p in enumerate((True, False)):
    case("XlaIf_%d" % n, lambda p, a: list(gen_xla_ops.xla_if(cond=p, inputs=[a], then_branch=DOUBLE, else_branch=NEGATIVE, Tout=[tf.float32])), np.bool_(p), f32(3), sized=True, reference=lambda p, a: tf.where(p, a * 2, -a))
case("XlaWhile", lambda a: list(gen_xla_ops.xla_while(input=[a], cond=tf.function(lambda x: tf.reduce_sum(x) < 50, input_signature=[V3]).get_concrete_function(),
     body=tf.function(lambda x: x * 2 + 1, input_signature=[V3]).get_concrete_function())), f32(3, lo=1), sized=True,
     reference=lambda a: tf.while_loop(lambda x: tf.reduce_sum(x) < 50, lambda x: [x * 2 + 1], [a]))
