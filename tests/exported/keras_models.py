"""Models of Keras: its applications, layers and operations, and small nets of KerasHub. make(name) gives a model and what to
feed it: an array, a list of them, or a dict by name."""

import keras
import numpy as np
from keras import layers, ops

MAKERS = {}


def model(name):
    def note(maker):
        MAKERS[name] = maker
        return maker
    return note


def names():
    return list(MAKERS)


def make(name):
    return MAKERS[name]()


def rng():
    return np.random.default_rng(7)


def normal(*shape):
    return rng().normal(size=shape).astype("float32")


def image(size, batch=1):
    return rng().uniform(0, 255, (batch, size, size, 3)).astype("float32")


def ids(count, length, batch=2):
    return rng().integers(1, count, (batch, length)).astype("int32")


def words():
    return np.array([["the quick brown Fox"], ["jumped, over THE lazy dog!"]])


# ---- Applications

def application(name, size=128, **options):
    MAKERS[f"applications/{name}"] = lambda: (
        getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), **options), image(size))


for each in ("Xception", "ResNet50", "ResNet50V2", "InceptionV3", "InceptionResNetV2", "MobileNet", "MobileNetV2", "MobileNetV3Small",
             "MobileNetV3Large", "DenseNet121", "EfficientNetB0", "EfficientNetV2B0", "ConvNeXtTiny"):
    application(each)
application("VGG16", classes=10)
application("NASNetMobile", 224)


# ---- Layers one after the other

def sequence(name, feed, of_layers):
    """of_layers: a function that makes them."""
    MAKERS[f"layers/{name}"] = lambda: (
        keras.Sequential([keras.Input(feed.shape[1:], dtype=str(feed.dtype)), *of_layers(layers)]), feed)


STEPS = normal(2, 12, 6)
MASKED = np.where(np.arange(10) < np.array([[6], [10]]), ids(20, 10), 0).astype("int32")
sequence("lstm", STEPS, lambda k: [k.LSTM(8, return_sequences=True), k.LSTM(5)])
sequence("gru", STEPS, lambda k: [k.GRU(8, return_sequences=True), k.GRU(5, reset_after=False)])
sequence("bidirectional", STEPS, lambda k: [k.Bidirectional(k.LSTM(8, return_sequences=True)), k.Bidirectional(k.GRU(4))])
sequence("simple_rnn", STEPS, lambda k: [k.SimpleRNN(8)])
sequence("lstm_unrolled", STEPS, lambda k: [k.LSTM(8, unroll=True)])
sequence("lstm_masked", MASKED, lambda k: [k.Embedding(20, 6, mask_zero=True), k.LSTM(8)])
sequence("lstm_backwards", STEPS, lambda k: [k.LSTM(8, go_backwards=True, activation="relu", use_bias=False)])
sequence("stacked_cells", STEPS, lambda k: [k.RNN([k.LSTMCell(5), k.GRUCell(4)])])
sequence("conv_lstm", normal(1, 4, 10, 10, 3),
         lambda k: [k.ConvLSTM2D(4, 3, padding="same", return_sequences=True), k.ConvLSTM2D(2, 3)])
sequence("time_distributed", normal(2, 4, 10, 10, 3),
         lambda k: [k.TimeDistributed(k.Conv2D(4, 3)), k.TimeDistributed(k.Flatten()), k.TimeDistributed(k.Dense(3))])
sequence("conv1d", STEPS, lambda k: [
    k.Conv1D(8, 5, padding="causal", dilation_rate=2, activation="gelu"), k.MaxPooling1D(2), k.SeparableConv1D(8, 3),
    k.Conv1DTranspose(4, 3, strides=2, padding="same"), k.AveragePooling1D(2, padding="same"), k.GlobalMaxPooling1D()])
sequence("conv2d", normal(2, 16, 16, 4), lambda k: [
    k.Conv2D(8, 3, groups=2, padding="same"), k.LeakyReLU(), k.DepthwiseConv2D(3, depth_multiplier=2, strides=2),
    k.SeparableConv2D(6, 3, dilation_rate=2, padding="same"),
    k.Conv2DTranspose(4, 3, strides=2, padding="same", output_padding=1), k.UpSampling2D(2, interpolation="bilinear"),
    k.ZeroPadding2D(((1, 2), (0, 1))), k.Cropping2D(1), k.GlobalAveragePooling2D()])
sequence("conv3d", normal(2, 8, 8, 8, 3), lambda k: [
    k.Conv3D(8, 3, padding="same"), k.BatchNormalization(), k.ELU(), k.MaxPooling3D(2),
    k.Conv3DTranspose(4, 3, strides=2, padding="same"), k.AveragePooling3D(2), k.UpSampling3D(2), k.GlobalMaxPooling3D()])
sequence("norms", normal(2, 6, 6, 8), lambda k: [
    k.GroupNormalization(4), k.LayerNormalization(axis=[1, 2]), k.UnitNormalization(), k.SpectralNormalization(k.Conv2D(8, 1)),
    k.RMSNormalization(), k.PReLU(shared_axes=[1, 2])])
for each in ("relu", "relu6", "elu", "selu", "gelu", "silu", "softplus", "softsign", "tanh", "sigmoid", "exponential", "hard_sigmoid",
             "hard_silu", "mish", "log_softmax", "softmax", "celu", "glu", "hard_shrink", "hard_tanh", "log_sigmoid", "soft_shrink",
             "sparse_plus", "squareplus", "tanh_shrink", "sparsemax", "sparse_sigmoid"):
    sequence(each, normal(3, 8), lambda k, each=each: [k.Dense(12), k.Activation(each)])


# ---- Layers of several inputs, and those that look at text, tables and pictures

@model("layers/attention")
def attention():
    q, v = keras.Input((7, 16)), keras.Input((9, 16))
    outputs = [layers.Attention(use_scale=True)([q, v]), layers.AdditiveAttention()([q, v]), layers.MultiHeadAttention(4, 8)(q, v),
               layers.GroupQueryAttention(8, 4, 2)(q, v), layers.MultiHeadAttention(2, 8)(q, q, use_causal_mask=True)]
    return keras.Model([q, v], outputs), [normal(2, 7, 16), normal(2, 9, 16)]


@model("layers/attention_of_images")
def attention_of_images():
    x = keras.Input((4, 5, 16))
    return keras.Model(x, layers.MultiHeadAttention(4, 8, attention_axes=(1, 2))(x, x)), normal(2, 4, 5, 16)


@model("layers/merge")
def merge():
    a, b = keras.Input((6,)), keras.Input((6,))
    outputs = [layer([a, b]) for layer in (layers.Add(), layers.Subtract(), layers.Multiply(), layers.Average(), layers.Maximum(),
                                           layers.Minimum(), layers.Concatenate(), layers.Dot(axes=1, normalize=True))]
    return keras.Model([a, b], outputs), [normal(3, 6), normal(3, 6)]


@model("layers/sequence_to_sequence")
def sequence_to_sequence():
    a, b = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    encoded, *state = layers.LSTM(16, return_state=True, return_sequences=True)(layers.Embedding(50, 16, mask_zero=True)(a))
    decoded = layers.LSTM(16, return_sequences=True)(layers.Embedding(50, 16, mask_zero=True)(b), initial_state=state)
    joined = layers.Concatenate()([decoded, layers.Attention()([decoded, encoded])])
    return keras.Model([a, b], layers.Dense(50, activation="softmax")(joined)), [ids(50, 9), ids(50, 7)]


def vectorised(**options):
    layer = layers.TextVectorization(**options)
    layer.adapt(words().reshape(-1))
    return layer


@model("layers/text_embedded")
def text_embedded():
    x = keras.Input((1,), dtype="string")
    numbers = vectorised(max_tokens=30, output_sequence_length=8)(x)
    return keras.Model(x, layers.GlobalAveragePooling1D()(layers.Embedding(30, 6)(numbers))), words()


@model("layers/text_ngrams")
def text_ngrams():
    x = keras.Input((1,), dtype="string")
    return keras.Model(x, vectorised(ngrams=2, output_mode="tf_idf")(x)), words()


@model("layers/text_characters")
def text_characters():
    x = keras.Input((1,), dtype="string")
    return keras.Model(x, vectorised(split="character", output_mode="int")(x)), words()


@model("layers/string_lookup")
def string_lookup():
    x = keras.Input((3,), dtype="string")
    numbers = layers.StringLookup(vocabulary=["a", "b", "c"])(x)
    outputs = [numbers, layers.StringLookup(vocabulary=["a", "b", "c"], output_mode="multi_hot")(x),
               layers.StringLookup(vocabulary=["a", "b"], num_oov_indices=3)(x),
               layers.StringLookup(vocabulary=["a", "b", "c"], invert=True)(numbers)]
    return keras.Model(x, outputs), np.array([["a", "c", "zz"], ["b", "", "q"]])


@model("layers/integer_lookup")
def integer_lookup():
    x = keras.Input((3,), dtype="int64")
    known = [10, 20, 30]
    outputs = [layers.IntegerLookup(vocabulary=known)(x), layers.IntegerLookup(vocabulary=known, output_mode="count")(x)]
    return keras.Model(x, outputs), np.array([[10, 30, 7], [20, 0, 10]], "int64")


@model("layers/hashing")
def hashing():
    text, number = keras.Input((1,), dtype="string"), keras.Input((1,), dtype="int64")
    outputs = [layers.Hashing(17)(text), layers.Hashing(17, salt=[3, 5])(text), layers.Hashing(13)(number)]
    return keras.Model([text, number], outputs), [np.array([["a"], ["bcd"]]), np.array([[4], [5]], "int64")]


@model("layers/crossing")
def crossing():
    text, number = keras.Input((1,), dtype="string"), keras.Input((1,), dtype="int64")
    outputs = [layers.HashedCrossing(11)((text, number)), layers.HashedCrossing(11, output_mode="one_hot")((text, number))]
    return keras.Model([text, number], outputs), [np.array([["a"], ["bcd"]]), np.array([[4], [5]], "int64")]


@model("layers/structured_data")
def structured_data():
    x, number = keras.Input((1,)), keras.Input((1,), dtype="int64")
    norm = layers.Normalization()
    norm.adapt(normal(20, 1))
    outputs = [norm(x), layers.Discretization(bin_boundaries=[-1., 0., 1.])(x),
               layers.CategoryEncoding(5, output_mode="one_hot")(number),
               layers.Discretization(bin_boundaries=[0.], output_mode="one_hot")(x)]
    return keras.Model([x, number], outputs), [normal(3, 1), np.array([[4], [0], [2]], "int64")]


@model("layers/images")
def images():
    x = keras.Input((20, 24, 3))
    sized = layers.Resizing
    outputs = [layer(x) for layer in (
        layers.Rescaling(1 / 127.5, -1), sized(13, 15), sized(30, 31, interpolation="bicubic"), sized(9, 9, interpolation="nearest"),
        sized(10, 18, crop_to_aspect_ratio=True), sized(10, 18, pad_to_aspect_ratio=True), sized(12, 12, interpolation="lanczos3"),
        sized(7, 7, interpolation="area"), layers.CenterCrop(9, 10), layers.UpSampling2D(3))]
    return keras.Model(x, outputs), rng().uniform(0, 255, (2, 20, 24, 3)).astype("float32")


@model("layers/augmentation")
def augmentation():
    """Random layers, which do nothing in inference but crop."""
    x = keras.Input((20, 24, 3))
    y = x
    for layer in (layers.RandomFlip(), layers.RandomRotation(0.1), layers.RandomZoom(0.1), layers.RandomContrast(0.1),
                  layers.RandomBrightness(0.1), layers.RandomTranslation(0.1, 0.1), layers.RandomCrop(16, 16),
                  layers.GaussianNoise(0.1), layers.Dropout(0.2), layers.SpatialDropout2D(0.2), layers.AlphaDropout(0.1)):
        y = layer(y)
    return keras.Model(x, y), rng().uniform(0, 255, (2, 20, 24, 3)).astype("float32")


@model("layers/audio")
def audio():
    x = keras.Input((4000,))
    outputs = [layers.MelSpectrogram(fft_length=256, sequence_stride=128, sampling_rate=8000)(x),
               layers.STFTSpectrogram(frame_length=200, frame_step=100, fft_length=256)(ops.expand_dims(x, 2))]
    return keras.Model(x, outputs), normal(2, 4000)


@model("layers/reshapes")
def reshapes():
    x = keras.Input((4, 6))
    outputs = [layers.Reshape((3, -1))(x), layers.Permute((2, 1))(x), layers.RepeatVector(3)(layers.Flatten()(x)),
               layers.ZeroPadding1D(2)(x), layers.Cropping1D(1)(x), layers.UpSampling1D(2)(x), layers.Masking()(x),
               layers.EinsumDense("abc,cd->abd", output_shape=(None, 5))(x),
               layers.Bidirectional(layers.LSTM(3), merge_mode="ave")(x)]
    return keras.Model(x, outputs), normal(2, 4, 6)


@model("layers/dicts")
def dicts():
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    return keras.Model({"a": a, "b": b}, {"s": layers.Add()([a, b]), "d": layers.Dense(3)(a)}), {"a": normal(2, 4), "b": normal(2, 4)}


# ---- Operations of keras.ops

@model("ops/mathematics")
def mathematics():
    x = keras.Input((8,))
    p = ops.abs(x) + 0.1
    numbers, places = ops.top_k(x, 3)
    outputs = [
        ops.erf(x), ops.cumsum(x, axis=1), ops.cumprod(x, axis=1), ops.logsumexp(x, axis=1), numbers, places, ops.sort(x, axis=1),
        ops.argsort(x, axis=1), ops.argmax(x, axis=1), ops.var(x, axis=1), ops.std(x, axis=1), ops.median(x, axis=1),
        ops.quantile(x, 0.3, axis=1), ops.logaddexp(x, p), ops.arctan2(x, p), ops.sinh(x), ops.floor(x), ops.round(x), ops.mod(x, p),
        ops.floor_divide(x, p), ops.one_hot(ops.argmax(x, axis=1), 8), ops.where(x > 0, x, p), ops.roll(x, 2, axis=1),
        ops.flip(x, axis=1), ops.diff(x, axis=1), ops.triu(ops.matmul(ops.transpose(x), x)), ops.expm1(x), ops.log1p(p),
        ops.rsqrt(p), ops.power(p, 1.7), ops.isnan(x), ops.nan_to_num(ops.log(x)), ops.clip(x, -0.5, 0.5),
        ops.digitize(x, np.array([-1., 0., 1.], "float32")), ops.erfinv(ops.tanh(x)), ops.count_nonzero(x, axis=1),
        ops.searchsorted(np.arange(5.).astype("float32"), ops.reshape(x, (-1,))),
        ops.take_along_axis(x, ops.argsort(x, axis=1), axis=1)]
    return keras.Model(x, outputs), normal(4, 8)


@model("ops/linear_algebra")
def linear_algebra():
    x = keras.Input((4, 4))
    square = ops.matmul(x, ops.transpose(x, (0, 2, 1))) + 4 * ops.eye(4)
    outputs = [ops.cholesky(square), ops.inv(square), ops.det(square), ops.solve(square, x), ops.norm(x, axis=(1, 2)), ops.qr(x)[1],
               ops.einsum("bij,bjk->bik", x, square), ops.trace(x, axis1=1, axis2=2), ops.diagonal(x, axis1=1, axis2=2), ops.tril(x),
               ops.slogdet(square)[1], ops.eigh(square)[0], ops.svd(x)[1]]
    return keras.Model(x, outputs), normal(2, 4, 4)


@model("ops/images")
def images_by_operations():
    x = keras.Input((12, 14, 3))
    turned = np.array([[1, .1, 0, 0, 1, .2, 0, 0]], "float32").repeat(2, 0)
    places = ops.convert_to_tensor(np.array([[1.2, 3.4], [2.2, 5.1]], "float32"))
    outputs = [
        ops.image.rgb_to_grayscale(x), ops.image.rgb_to_hsv(x), ops.image.hsv_to_rgb(x), ops.image.extract_patches(x, 4),
        ops.image.affine_transform(x, turned), ops.image.gaussian_blur(x),
        ops.image.pad_images(x, 1, 2, target_height=16, target_width=17),
        ops.image.crop_images(x, 1, 2, target_height=8, target_width=7), ops.image.resize(x, (6, 6), antialias=True),
        ops.image.map_coordinates(ops.mean(x, axis=(0, 3)), places, order=1)]
    return keras.Model(x, outputs), rng().uniform(0, 1, (2, 12, 14, 3)).astype("float32")


@model("ops/fourier")
def fourier():
    x = keras.Input((16,))
    halves, both = ops.rfft(x), ops.fft((x, ops.zeros_like(x)))
    return keras.Model(x, [*halves, ops.irfft(halves), *both, ops.stft(x, 8, 4, 8)[0]]), normal(2, 16)


@model("ops/control_flow")
def control_flow():
    x = keras.Input(batch_shape=(4, 5))
    rows = np.array([0, 0, 1, 2], "int32")
    outputs = [
        ops.segment_sum(x, rows, 3), ops.segment_max(x, rows, 3), ops.slice_update(x, (1, 1), ops.ones((2, 2))),
        ops.scatter(np.array([[1], [3]], "int32"), ops.slice(x, (0, 0), (2, 5)), (6, 5)),
        ops.while_loop(lambda a: ops.sum(a) < 100, lambda a: (a + 1,), (x,))[0], ops.map(lambda row: row * ops.sum(row), x),
        ops.fori_loop(0, 3, lambda k, y: y + 1, x), ops.unstack(x, 5, axis=1)[2]]
    return keras.Model(x, outputs), normal(4, 5)


# ---- Nets

@model("nets/unet")
def unet():
    x = keras.Input((None, None, 3))
    y, skips = x, []
    for count in (8, 16, 32):
        y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(count, 3, padding="same", use_bias=False)(y)))
        skips.append(y)
        y = layers.MaxPooling2D()(y)
    for count, skip in zip((32, 16, 8), reversed(skips)):
        y = layers.Concatenate()([layers.Conv2DTranspose(count, 2, strides=2)(y), skip])
        y = layers.Conv2D(count, 3, padding="same", activation="relu")(y)
    return keras.Model(x, layers.Conv2D(2, 1, activation="sigmoid")(y)), image(64)


@model("nets/transformer")
def transformer():
    x = keras.Input((50, 4))
    y = layers.Dense(32)(x)
    for _ in range(2):
        y = layers.LayerNormalization(epsilon=1e-6)(y + layers.MultiHeadAttention(4, 8, dropout=0.1)(y, y))
        y = layers.LayerNormalization()(y + layers.Conv1D(32, 1)(layers.Conv1D(64, 1, activation="relu")(y)))
    return keras.Model(x, layers.Dense(3)(layers.GlobalAveragePooling1D()(y))), normal(2, 50, 4)


@model("nets/wavenet")
def wavenet():
    x = keras.Input((None, 1))
    y, total = layers.Conv1D(16, 2, padding="causal")(x), 0
    for far in (1, 2, 4, 8):
        sides = [layers.Conv1D(16, 2, padding="causal", dilation_rate=far, activation=a)(y) for a in ("tanh", "sigmoid")]
        z = layers.Conv1D(16, 1)(sides[0] * sides[1])
        total, y = total + z, y + z
    return keras.Model(x, layers.Conv1D(4, 1)(layers.ReLU()(total))), normal(2, 40, 1)


def narrow(policy):
    def maker():
        keras.mixed_precision.set_global_policy(policy)
        x = keras.Input((32, 32, 3))
        y = layers.GlobalAveragePooling2D()(layers.BatchNormalization()(layers.Conv2D(8, 3, activation="relu")(x)))
        return keras.Model(x, layers.Dense(4, dtype="float32")(y)), normal(2, 32, 32, 3)
    return maker


def quantised(mode):
    def maker():
        x = keras.Input((32,))
        net = keras.Model(x, layers.Dense(8)(layers.Dense(64, activation="relu")(x)))
        net.quantize(mode)
        return net, normal(4, 32)
    return maker


for each in ("mixed_float16", "mixed_bfloat16"):
    MAKERS[f"nets/{each}"] = narrow(each)
for each in ("int8", "int4"):
    MAKERS[f"nets/quantised_{each}"] = quantised(each)
