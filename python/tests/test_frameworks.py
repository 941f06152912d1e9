"""Tensors of PyTorch and JAX in and out, where these are installed (tools/nightly installs them)."""
import numpy as np
import oncilla
import pytest
from conftest import one_op


def test_pytorch():
    torch = pytest.importorskip("torch")
    with one_op("Neg", shape=(None, None)) as model:
        x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
        tensor = oncilla.Tensor.of(x)
        assert np.asarray(tensor).ctypes.data == x.data_ptr()
        # Dense, with other strides, and one that is trained.
        for given in (x, x.t(), torch.nn.Parameter(x).detach()):
            y = model.run({"x:0": given}, outputs="y:0")["y:0"]
            assert y.tolist() == (-given).tolist()
        # Back without a copy, and without a warning, since nobody else has the array.
        y = model.run({"x:0": x}, outputs="y:0")["y:0"]
        back = torch.from_numpy(y)
        back += 1
        assert back.data_ptr() == y.ctypes.data and y[1, 2] == -4
        assert torch.from_dlpack(y).tolist() == y.tolist()
        assert torch.from_dlpack(tensor).tolist() == x.tolist()
        # PyTorch itself refuses tensors that require gradients.
        with pytest.raises((BufferError, RuntimeError), match="grad"):
            model.run({"x:0": torch.ones(2, 1, requires_grad=True)}, outputs="y:0")
    with one_op("Neg", "bfloat16") as model:
        x = torch.tensor([1.5, -2], dtype=torch.bfloat16)
        y = model.run({"x:0": x}, outputs="y:0", keep=False)["y:0"]
        assert y.astype(np.float32).tolist() == [-1.5, 2]


def test_jax():
    jax = pytest.importorskip("jax")
    with one_op("Neg", shape=(None, None)) as model:
        x = jax.numpy.arange(6, dtype="float32").reshape(2, 3)
        y = model.run({"x:0": x}, outputs="y:0")["y:0"]
        assert y.tolist() == (-x).tolist()
        assert jax.numpy.asarray(y).tolist() == y.tolist()
        assert jax.dlpack.from_dlpack(oncilla.Tensor.of(y)).tolist() == y.tolist()
