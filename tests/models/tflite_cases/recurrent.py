"""Recurrent layers; their states are zero in a first run."""
import numpy as np
from tflite_recorder import Fed, Given, Out, case, options, random

STEPS, BATCH, WIDTH, UNITS = 4, 2, 3, 5


def weights(name, *shape):
    return Given(random(name, shape, -0.8, 0.8))


def lstm(time_major, peepholes, scale=1.0):
    shape = [STEPS, BATCH, WIDTH] if time_major else [BATCH, STEPS, WIDTH]
    none = [None] * 3
    return [random("x", shape) * np.float32(scale), *(weights(f"w{i}", UNITS, WIDTH) for i in range(4)),
            *(weights(f"r{i}", UNITS, UNITS) for i in range(4)), *([weights(f"p{i}", UNITS) for i in range(3)] if peepholes else none),
            *(weights(f"b{i}", UNITS) for i in range(4)), None, None,
            Given(np.zeros([BATCH, UNITS], np.float32), variable=True), Given(np.zeros([BATCH, UNITS], np.float32), variable=True)]


def table(time_major, clip=0.0):
    return options("UnidirectionalSequenceLSTMOptions", fusedActivationFunction=4, cellClip=clip, timeMajor=time_major)


case("lstm", "UNIDIRECTIONAL_SEQUENCE_LSTM", lstm(True, False), Out(), table(True))
case("lstm_batch_major", "UNIDIRECTIONAL_SEQUENCE_LSTM", lstm(False, False), Out(), table(False))
case("lstm_peepholes", "UNIDIRECTIONAL_SEQUENCE_LSTM", lstm(False, True), Out(), table(False))
case("lstm_clip", "UNIDIRECTIONAL_SEQUENCE_LSTM", lstm(False, False, 3), Out(), table(False, 0.4))


def rnn(shape):
    return [random("x", shape), weights("w", UNITS, WIDTH), weights("r", UNITS, UNITS), weights("b", UNITS),
            Given(np.zeros([BATCH, UNITS], np.float32), variable=True)]


for activation, name in ((1, "relu"), (4, "tanh")):
    case(f"rnn_{name}", "UNIDIRECTIONAL_SEQUENCE_RNN", rnn([BATCH, STEPS, WIDTH]), Out(),
         options("SequenceRNNOptions", timeMajor=False, fusedActivationFunction=activation))
case("rnn_time_major", "UNIDIRECTIONAL_SEQUENCE_RNN", rnn([STEPS, BATCH, WIDTH]), Out(),
     options("SequenceRNNOptions", timeMajor=True, fusedActivationFunction=4))
case("rnn_step", "RNN", rnn([BATCH, WIDTH]), Out(), options("RNNOptions", fusedActivationFunction=4))


def stored(name, shape, dtype=np.int8):
    info = np.iinfo(dtype)
    return random(name, shape, info.min + 1, info.max, dtype)


# Weights of bytes: LiteRT rounds what they are multiplied with to bytes at each step, the engine does not.
def bytes_of(given):
    small = given is None or given.variable or given.value.ndim < 2
    return given if small else Given(np.round(given.value * 127 / 0.8).astype(np.int8), (0.8 / 127, 0))


def hybrid(inputs):
    return [inputs[0]] + [bytes_of(given) for given in inputs[1:]]


case("lstm_hybrid", "UNIDIRECTIONAL_SEQUENCE_LSTM", hybrid(lstm(True, False)), Out(), table(True), part=2e-2)
case("rnn_hybrid", "UNIDIRECTIONAL_SEQUENCE_RNN", hybrid(rnn([BATCH, STEPS, WIDTH])), Out(),
     options("SequenceRNNOptions", timeMajor=False, fusedActivationFunction=4), part=2e-2)

FILTERS, MEMORY = 12, 4
for rank in (1, 2):
    units = FILTERS // rank
    state = Given(np.zeros([BATCH, FILTERS * MEMORY], np.float32), variable=True)
    for bias in (True, False):
        inputs = [random("svdf", [BATCH, WIDTH]), weights("sf", FILTERS, WIDTH), weights("st", FILTERS, MEMORY), weights("sb", units) if bias else None, state]
        svdf = options("SVDFOptions", rank=rank, fusedActivationFunction=1 if bias else 0)
        case(f"svdf_{rank}{'' if bias else '_no_bias'}", "SVDF", inputs, Out(), svdf)
    for asymmetric in (False, True):
        case(f"svdf_hybrid_{rank}{'_asymmetric' if asymmetric else ''}", "SVDF", hybrid(inputs), Out(),
             options("SVDFOptions", rank=rank, asymmetricQuantizeInputs=asymmetric), part=4e-3)
    case(f"svdf_i8_{rank}", "SVDF",
         [Fed(stored("svdf8", [BATCH, WIDTH]), (0.02, 5)), Given(stored("sf8", [FILTERS, WIDTH]), (0.01, 0)),
          Given(stored("st8", [FILTERS, MEMORY], np.int16), (0.0001, 0)), Given(random("sb8", [units], -90000, 90000, np.int32), (0.0001 * 0.0005, 0)),
          Given(np.zeros([BATCH, FILTERS * MEMORY], np.int16), (0.0005, 0), variable=True)],
         Out(np.int8, q=(0.05, -128)), options("SVDFOptions", rank=rank, fusedActivationFunction=1))


def state(units=UNITS):
    return Given(np.zeros([BATCH, units], np.float32), variable=True)


def direction(name, units=UNITS):
    """Weights, recurrent weights, no peepholes, biases, no projection."""
    return [*(weights(f"{name}w{i}", units, WIDTH) for i in range(4)), *(weights(f"{name}r{i}", units, units) for i in range(4)), None, None, None,
            *(weights(f"{name}b{i}", units) for i in range(4)), None, None]


# Where the batch comes first, LiteRT's LSTM answers a second run differently each time it is asked: that is not recorded.
for time_major in (True, False):
    for merge in (True, False):
        x = random("x", [STEPS, BATCH, WIDTH] if time_major else [BATCH, STEPS, WIDTH])
        label = f"{'time' if time_major else 'batch'}_{'merged' if merge else 'apart'}"
        outs = [Out()] if merge else [Out(), Out()]
        none = [None] * 9
        case(f"bidirectional_lstm_{label}", "BIDIRECTIONAL_SEQUENCE_LSTM", [x, *direction("f"), *direction("k"), *(state() for _ in range(4)), *none], outs,
             options("BidirectionalSequenceLSTMOptions", fusedActivationFunction=4, mergeOutputs=merge, timeMajor=time_major), once=not time_major)
        pair = [g for name in "fk" for g in (weights(name + "w", UNITS, WIDTH), weights(name + "r", UNITS, UNITS), weights(name + "b", UNITS), state())]
        case(f"bidirectional_rnn_{label}", "BIDIRECTIONAL_SEQUENCE_RNN", [x, *pair, None, None, None], outs,
             options("BidirectionalSequenceRNNOptions", fusedActivationFunction=4, mergeOutputs=merge, timeMajor=time_major))
