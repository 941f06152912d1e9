"""What a case is, and how it is recorded.

case(NAME, OP, inputs, outputs, options) is a subgraph of one op, with a signature of its name. LiteRT's own kernels
(none of its delegates) run it alone; what was fed and what came out are kept beside it as constants that nothing
reads: feed:NAME and expect:NAME, by the signature's names, and
again:NAME for what a second run gives where the first leaves a state. Where LiteRT refuses, a constant error holds its message.
A constant steps says by how many integers a result may differ, where LiteRT computes in float what it rounds; a constant
part, of which part of the largest number floats may, where rounded numbers are their inputs. Without them integers are
exact. All cases of a family are the subgraphs of one file, so that it is as small as their tensors."""

import zlib

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

TYPES = {np.dtype(k): v for k, v in {
    np.float32: 0, np.float16: 1, np.int32: 2, np.uint8: 3, np.int64: 4, np.bool_: 6, np.int16: 7, np.int8: 9,
    np.float64: 10, np.uint32: 15, np.uint16: 16}.items()}


class Given:
    """A constant input; `fed` inputs are arrays as they are. q is (scale or scales, zero point or points, axis). `block`
    stores only the blocks of a matrix that are not all zeros, (1, 1) for single elements; `nibbles` stores integers of four
    bits, two a byte, with `scales` for each block of a row instead of q."""

    def __init__(self, value, q=None, variable=False, block=None, nibbles=False, scales=None):
        self.value, self.q, self.variable, self.block, self.nibbles = np.asarray(value), q, variable, block, nibbles
        self.scales = scales


class Fed:
    def __init__(self, value, q=None, open_axes=()):
        self.value, self.q, self.open_axes = np.asarray(value), q, open_axes


class Out:
    """An output: its type, and the shape that the file states."""

    def __init__(self, dtype=np.float32, shape=(), q=None):
        self.dtype, self.shape, self.q = np.dtype(dtype), shape, q


class Op:
    def __init__(self, name, inputs, outputs, options=None, custom=None):
        self.name, self.inputs, self.outputs, self.options, self.custom = name, inputs, outputs, options, custom
        self.version = 1


class State:
    def begin(self):
        self.buffers, self.subgraphs, self.codes, self.signatures = [schema.BufferT()], [], [], []
        self.names = set()


state = State()


def random(seed, shape, low=-1.0, high=1.0, dtype=np.float32):
    rng = np.random.default_rng(zlib.crc32(str(seed).encode()))
    if np.dtype(dtype).kind == "f":
        return rng.uniform(low, high, shape).astype(dtype)
    return rng.integers(int(low), int(high) + 1, shape).astype(dtype)


def options(kind, **fields):
    """The table of options `kind` with these fields, by their names in the schema's Python."""
    table = getattr(schema, kind + "T")()
    for name, value in fields.items():
        if not hasattr(table, name):
            raise KeyError(f"{kind} has no {name}")
        setattr(table, name, value)
    return table


class Maker:
    """One subgraph, with the buffers and codes of one model."""

    def __init__(self, model, graph=None):
        self.model, self.graph = model, graph or schema.SubGraphT()
        if graph is not None:
            return
        self.graph.tensors, self.graph.inputs, self.graph.outputs, self.graph.operators = [], [], [], []

    def tensor(self, name, shape, dtype, data=None, q=None, variable=False, signature=None):
        tensor = schema.TensorT()
        tensor.name, tensor.type = name, 5 if dtype == "string" else TYPES[np.dtype(dtype)]
        tensor.shape = np.array(shape, np.int32)
        tensor.hasRank, tensor.isVariable, tensor.buffer = True, variable, 0
        if signature is not None:
            tensor.shapeSignature = np.array(signature, np.int32)
        if q is not None:
            scale, zero, *axis = q
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = np.atleast_1d(np.array(scale, np.float32))
            tensor.quantization.zeroPoint = np.atleast_1d(np.array(zero, np.int64))
            tensor.quantization.quantizedDimension = axis[0] if axis else 0
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data, np.uint8)
            self.model.buffers.append(buffer)
            tensor.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(self, name, value, q=None):
        value = np.array(value, order="C")
        if value.dtype.kind in "OSU":
            return self.strings(name, value)
        return self.tensor(name, value.shape, value.dtype, value.tobytes(), q)

    def nibbles(self, name, value, q, scales=None):
        flat = np.append(value.ravel(), np.zeros(value.size % 2, np.int8)).astype(np.uint8) & 15
        index = self.tensor(name, value.shape, np.int8, (flat[::2] | flat[1::2] << 4).tobytes(), q)
        self.graph.tensors[index].type = 17  # INT4
        if scales is not None:
            blocks = schema.BlockwiseQuantizationT()
            blocks.scales = self.tensor(name + "/scales", scales.shape, scales.dtype, scales.tobytes())
            blocks.zeroPoints, blocks.blockSize = -1, value.shape[-1] // scales.shape[-1]
            quantization = schema.QuantizationParametersT()
            quantization.detailsType, quantization.details = 2, blocks
            self.graph.tensors[index].quantization = quantization
        return index

    def sparse(self, name, value, block):
        """Rows of blocks dense, the blocks of a row listed, the inside of a block dense."""
        rows, columns = value.shape[0] // block[0], value.shape[1] // block[1]
        stored, segments, indices = [], [0], []
        for row in range(rows):
            for column in range(columns):
                part = value[row * block[0]:(row + 1) * block[0], column * block[1]:(column + 1) * block[1]]
                if part.any():
                    stored.append(part.ravel())
                    indices.append(column)
            segments.append(len(indices))
        blocked = block != (1, 1)
        index = self.tensor(name, value.shape, value.dtype, np.concatenate(stored).tobytes())
        sparsity = schema.SparsityParametersT()
        sparsity.traversalOrder = np.arange(4 if blocked else 2, dtype=np.int32)
        sparsity.blockMap = np.array([0, 1] if blocked else [], np.int32)
        sparsity.dimMetadata = [self.level(rows), self.level(None, segments, indices)]
        sparsity.dimMetadata += [self.level(size) for size in block] if blocked else []
        self.graph.tensors[index].sparsity = sparsity
        return index

    @staticmethod
    def level(size, segments=None, indices=None):
        made = schema.DimensionMetadataT()
        made.format, made.denseSize = (0, size) if size is not None else (1, 0)
        if size is None:
            made.arraySegmentsType, made.arraySegments = schema.SparseIndexVector.Int32Vector, schema.Int32VectorT()
            made.arraySegments.values = np.array(segments, np.int32)
            made.arrayIndicesType, made.arrayIndices = schema.SparseIndexVector.Uint8Vector, schema.Uint8VectorT()
            made.arrayIndices.values = np.array(indices, np.uint8)
        return made

    def strings(self, name, value):
        """Their number, where each begins, the end of all, and the bytes."""
        texts = [t if isinstance(t, bytes) else t.encode() for t in value.ravel()]
        head = 4 * (len(texts) + 2)
        ends = np.cumsum([head] + [len(t) for t in texts])
        return self.tensor(name, value.shape, "string", np.array([len(texts), *ends], np.int32).tobytes() + b"".join(texts))

    def text(self, name, text):
        return self.strings(name, np.array([text], object))

    def code(self, op):
        code = schema.OperatorCodeT()
        if op.custom is not None:
            code.builtinCode, code.customCode = 32, op.name
        else:
            code.builtinCode = getattr(schema.BuiltinOperator, op.name)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), op.version
        for i, known in enumerate(self.model.codes):
            if (known.builtinCode, known.customCode, known.version) == (code.builtinCode, code.customCode, code.version):
                return i
        self.model.codes.append(code)
        return len(self.model.codes) - 1

    def op(self, op, inputs, outputs):
        made = schema.OperatorT()
        made.opcodeIndex = self.code(op)
        made.inputs, made.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
        if op.options is not None:
            made.builtinOptions = op.options
            made.builtinOptionsType = getattr(schema.BuiltinOptions, type(op.options).__name__[:-1])
        if op.custom is not None:
            made.customOptions = np.frombuffer(op.custom, np.uint8)
        self.graph.operators.append(made)


def build(model, name, op, answers=None, error=None, again=(), steps=0, part=0):
    maker, feeds, inputs = Maker(model), [], []
    for i, given in enumerate(op.inputs):
        if given is None:
            inputs.append(-1)
        elif isinstance(given, Given):
            if given.variable:
                inputs.append(maker.tensor(f"{name}/state{i}", given.value.shape, given.value.dtype, None, given.q, True))
            elif given.nibbles:
                inputs.append(maker.nibbles(f"{name}/constant{i}", given.value, given.q, given.scales))
            elif given.block:
                inputs.append(maker.sparse(f"{name}/constant{i}", given.value, given.block))
            else:
                inputs.append(maker.constant(f"{name}/constant{i}", given.value, given.q))
        else:
            fed = given if isinstance(given, Fed) else Fed(given)
            signature = [-1 if a in fed.open_axes else n for a, n in enumerate(fed.value.shape)] if fed.open_axes else None
            index = maker.tensor(f"{name}/in{len(feeds)}", fed.value.shape, fed.value.dtype, None, fed.q, False, signature)
            inputs.append(index)
            maker.graph.inputs.append(index)
            feeds.append(fed.value)
    outputs = [maker.tensor(f"{name}/out{i}", out.shape, out.dtype, None, out.q) for i, out in enumerate(op.outputs)]
    maker.graph.outputs = list(outputs)
    maker.op(op, inputs, outputs)
    if answers is not None or error is not None:
        for i, value in enumerate(feeds):
            maker.constant(f"feed:in{i}", value)
        for i, value in enumerate(answers or []):
            maker.constant(f"expect:out{i}", value)
        for i, value in enumerate(again):
            maker.constant(f"again:out{i}", value)
    if error is not None:
        maker.text("error", error)
    if steps:
        maker.constant("steps", np.int32(steps))
    if part:
        maker.constant("part", np.float32(part))
    maker.graph.name = name
    model.subgraphs.append(maker.graph)
    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = name, len(model.subgraphs) - 1
    signature.inputs, signature.outputs = [], []
    for side, indices, prefix in ((signature.inputs, maker.graph.inputs, "in"), (signature.outputs, outputs, "out")):
        for i, index in enumerate(indices):
            named = schema.TensorMapT()
            named.name, named.tensorIndex = f"{prefix}{i}", index
            side.append(named)
    model.signatures.append(signature)
    return feeds


def packed(model):
    out = schema.ModelT()
    out.version, out.operatorCodes, out.subgraphs, out.buffers = 3, model.codes, model.subgraphs, model.buffers
    out.signatureDefs = model.signatures
    return packed_model(out)


def packed_model(out):
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(out.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def run(data, feeds, times=1, kernels=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
    interpreter = Interpreter(model_content=data, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    for _ in range(times):
        for detail, value in zip(interpreter.get_input_details(), feeds):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def case(name, op, inputs, outputs, table=None, custom=None, refused=False, reference=False, steps=0, part=0, once=False):
    kernels = OpResolverType.BUILTIN_REF if reference else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    if name in state.names:
        raise KeyError(f"two cases {name}")
    state.names.add(name)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    made = Op(op, inputs, outputs, table, custom)
    for made.version in range(1, 8):  # what LiteRT knows of an op, newer ones for more of its forms
        alone = State()
        alone.begin()
        feeds = build(alone, name, made)
        try:
            answers, error = run(packed(alone), feeds, 1, kernels), None
        except (RuntimeError, ValueError) as failure:
            answers, error = None, str(failure)
        if error is None or "Didn't find op" not in error:
            break
    if (error is not None) != refused:
        raise RuntimeError(f"{name}: " + (error or "LiteRT does not refuse it"))
    if answers is not None:
        for out, answer in zip(outputs, answers):
            out.shape = answer.shape
    keeps = not once and any(isinstance(given, Given) and given.variable for given in inputs)
    build(state, name, made, answers, error, run(packed(alone), feeds, 2) if keeps else (), steps, part)


def known(name, op, inputs, outputs, custom, answers, version=1):
    """A case of a custom op that LiteRT does not have, with the answers that are given."""
    if name in state.names:
        raise KeyError(f"two cases {name}")
    state.names.add(name)
    made = Op(op, inputs, outputs, custom=custom)
    made.version = version
    for out, answer in zip(outputs, answers):
        out.shape = answer.shape
    build(state, name, made, answers)


def write(path):
    with open(path, "wb") as file:
        file.write(packed(state))
    print(path, len(state.subgraphs), "cases")
