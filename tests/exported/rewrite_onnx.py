#!/usr/bin/env python3
"""Changes an ONNX model as ONNX Runtime's tools do: rewrite_onnx.py HOW FOLDER OUT reads FOLDER/model.onnx and its feeds, one
.npy for each input, and writes OUT/model.onnx. HOW is a key of WAYS."""

import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.optimizer import optimize_model

U8, I8, I16, U16 = QuantType.QUInt8, QuantType.QInt8, QuantType.QInt16, QuantType.QUInt16


class OneFeed(CalibrationDataReader):
    def __init__(self, folder):
        inputs = onnx.load(folder / "model.onnx", load_external_data=False).graph.input
        self.feeds = iter([{each.name: np.load(folder / f"{each.name}.npy") for each in inputs}])

    def get_next(self):
        return next(self.feeds, None)


def prepared(folder, out):
    """The model with the shapes that quantisers want, as far as they can be told."""
    path = out / "prepared.onnx"
    try:
        quant_pre_process(str(folder / "model.onnx"), str(path), skip_symbolic_shape=True)
    except Exception:  # of any kind; the quantisers do with less
        shutil.copy(folder / "model.onnx", path)
    return str(path)


def static(form, activations, weights, columns):
    def rewrite(folder, out):
        quantize_static(prepared(folder, out), str(out / "model.onnx"), OneFeed(folder), quant_format=form,
                        per_channel=columns, activation_type=activations, weight_type=weights)
    return rewrite


def dynamic(weights, columns):
    return lambda folder, out: quantize_dynamic(prepared(folder, out), str(out / "model.onnx"), per_channel=columns,
                                                weight_type=weights)


def packed(bits, symmetric):
    def rewrite(folder, out):
        # At level 4 ONNX Runtime would round what the weights are applied to.
        how = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=symmetric, accuracy_level=1, bits=bits,
                                           op_types_to_quantize=("MatMul", "Gather"))
        quantizer = MatMulNBitsQuantizer(onnx.load(folder / "model.onnx"), algo_config=how)
        quantizer.process()
        onnx.save(quantizer.model.model, out / "model.onnx")
    return rewrite


def optimised(folder, out):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(out / "model.onnx")
    onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])


def fused(kind, half):
    def rewrite(folder, out):
        model = optimize_model(str(folder / "model.onnx"), model_type=kind, num_heads=0, hidden_size=0, opt_level=0)
        if half:
            model.convert_float_to_float16(keep_io_types=True)
        model.save_model_to_file(str(out / "model.onnx"))
    return rewrite


def halves(folder, out):
    onnx.save(convert_float_to_float16(onnx.load(folder / "model.onnx"), keep_io_types=True), out / "model.onnx")


QDQ, OPS = QuantFormat.QDQ, QuantFormat.QOperator
WAYS = {
    "optimised": optimised, "halves": halves,
    "dynamic_i8": dynamic(I8, False), "dynamic_u8_columns": dynamic(U8, True),
    "qdq_u8": static(QDQ, U8, I8, False), "qdq_u8_columns": static(QDQ, U8, I8, True), "qdq_i8_columns": static(QDQ, I8, I8, True),
    "qdq_i16": static(QDQ, I16, I8, False), "qdq_u16_columns": static(QDQ, U16, I8, True),
    "ops_u8": static(OPS, U8, I8, False), "ops_u8_u8_columns": static(OPS, U8, U8, True),
    "packed_4": packed(4, False), "packed_4_symmetric": packed(4, True), "packed_8": packed(8, False),
    **{f"fused_{kind}": fused(kind, False) for kind in ("bert", "gpt2", "vit", "bart")},
    **{f"fused_{kind}_halves": fused(kind, True) for kind in ("bert", "gpt2", "vit", "bart")},
}


def main():
    how, folder, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    WAYS[how](folder, out)


if __name__ == "__main__":
    main()
