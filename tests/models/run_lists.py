"""Models of lists of tensors, for make_run_models.py."""
from run_recorder import tf, f32, record, sig


def lists():
    raw = tf.raw_ops

    class M(tf.Module):
        # One list behind the other, of which the first goes on being what it was.
        @sig(a=([None, 2], tf.float32), b=([None, 2], tf.float32))
        def join(self, a, b):
            first, second = (raw.TensorListFromTensor(tensor=t, element_shape=[2]) for t in (a, b))
            both = raw.TensorListConcatLists(input_a=first, input_b=second, element_dtype=tf.float32)
            stack = lambda l: raw.TensorListStack(input_handle=l, element_shape=[2], element_dtype=tf.float32)
            return {"both": stack(both), "first": stack(first), "length": raw.TensorListLength(input_handle=both)}

    m = M()
    record("lists", m, {"join": m.join}, [("join", {"a": f32(3, 2), "b": f32(2, 2)}), ("join", {"a": f32(0, 2), "b": f32(1, 2)}), ("join", {"a": f32(2, 2), "b": f32(0, 2)})])
