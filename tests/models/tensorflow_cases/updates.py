"""Parts of tensors replaced, at places and of sizes that runs decide."""
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from recorder import *


def update(x, part, start):
    return gen_xla_ops.xla_dynamic_update_slice(x, part, start)


case("XlaDynamicUpdateSlice", lambda x, part: update(x, part, c([1, 1])), f32(3, 4), f32(2, 2))
case("XlaDynamicUpdateSlice_fed", lambda x, part, start: update(x, part, start), f32(3, 4, 2), f32(2, 1, 2), np.array([0, 2, 0], np.int64))
case("XlaDynamicUpdateSlice_cut", lambda x, part, start: update(x, part, start), i32(3, 4), i32(2, 3), np.array([2, -1], np.int32))
case("XlaDynamicUpdateSlice_large", lambda x, part, start: update(x, part, start), i32(3, 2), i32(2, 3), np.array([0, 0], np.int32), error=True)
case("XlaDynamicUpdateSlice_one", lambda x, part: update(x, part, tf.zeros([1], tf.int32)), f32(5), f32(5))


def part_of(x, start, sizes):
    return gen_xla_ops.xla_dynamic_slice(x, start, tf.constant(sizes, start.dtype))


case("XlaDynamicSlice", lambda x: part_of(x, c([1, 1]), [2, 2]), f32(3, 4))
case("XlaDynamicSlice_fed", lambda x, start: part_of(x, start, [2, 1, 2]), f32(3, 4, 2), np.array([0, 2, 0], np.int64))
case("XlaDynamicSlice_cut", lambda x, start: part_of(x, start, [2, 3]), i32(3, 4), np.array([2, -1], np.int32))
case("XlaDynamicSlice_whole", lambda x, start: part_of(x, start, [5]), f32(5), np.array([3], np.int32))
case("XlaDynamicSlice_large", lambda x, start: part_of(x, start, [4, 1]), i32(3, 2), np.array([0, 0], np.int32), error=True)
