"""Recurrent layers; their states are zero in a first run."""
import numpy as np
from tflite_recorder import Given, Out, case, options, random

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
