"""Complex numbers between real inputs and outputs, and Fourier transforms."""
from recorder import *


def parts(z):
    return [raw.Real(input=z, Tout=tf.float64 if z.dtype == tf.complex128 else tf.float32), raw.Imag(input=z, Tout=tf.float64 if z.dtype == tf.complex128 else tf.float32)]


C = lambda a, b: raw.Complex(real=a, imag=b)
A, B = f32(3, 4), f32(3, 4)
case("Complex", lambda a, b: parts(C(a, b)), A, B)
case("Complex_broadcast", lambda a, b: parts(C(a, b)), f32(3, 1), f32(4))
case("Complex_f64", lambda a, b: parts(raw.Complex(real=a, imag=b, Tout=tf.complex128)), A.astype(np.float64), B.astype(np.float64))
case("ComplexAbs", lambda a, b: [raw.ComplexAbs(x=C(a, b)), raw.Angle(input=C(a, b))] + parts(raw.Conj(input=C(a, b))), A, B)
case("Angle_edges", lambda a, b: [raw.Angle(input=C(a, b)), raw.ComplexAbs(x=C(a, b))], np.array([0, 1, -1, 0, 0, -2], np.float32), np.array([0, 0, 0, 1, -1, -3], np.float32))
for op in "Add AddV2 Sub Mul RealDiv Div".split(): case("%s_complex" % op, lambda a, b, d, op=op: parts(getattr(raw, op)(x=C(a, b), y=C(d, a))), A, B, f32(3, 4))
case("Mul_complex_broadcast", lambda a, b: parts(C(a, a) * C(b, b)), f32(3, 1), f32(2, 1, 4))
for op in "Neg Square Exp".split(): case("%s_complex" % op, lambda a, b, op=op: parts(getattr(raw, op)(x=C(a, b))), A, B)
case("Cast_complex", lambda a: parts(tf.cast(a, tf.complex64)) + [tf.cast(tf.cast(a, tf.complex64), tf.float32)] + parts(tf.cast(tf.cast(a, tf.complex64), tf.complex128)), A)
case("Identity_complex", lambda a, b: parts(raw.Identity(input=tf.stop_gradient(C(a, b)))), A, B)
case("Reshape_complex", lambda a, b: parts(tf.reshape(C(a, b), [2, -1])) + parts(tf.reshape(C(a, b), [tf.shape(C(a, b))[1], 3])), A, B)
case("Transpose_complex", lambda a, b: parts(tf.transpose(C(a, b), [2, 0, 1])), f32(2, 3, 4), f32(2, 3, 4))
case("ExpandDims_complex", lambda a, b: parts(tf.expand_dims(C(a, b), -1)) + parts(tf.expand_dims(C(a, b), 1)), A, B)
case("ConcatV2_complex", lambda a, b: parts(tf.concat([C(a, b), C(b, a)], -1)) + parts(tf.concat([C(a, b), C(b, a)], 0)), A, B)
case("StridedSlice_complex", lambda a, b: parts(C(a, b)[:, 1:3]) + parts(C(a, b)[..., 1]) + parts(C(a, b)[1, ..., ::2]) + parts(C(a, b)[0]), f32(2, 3, 4), f32(2, 3, 4))
for n in (1, 2, 3, 5, 8, 12, 31, 64):
    case("FFT_%d" % n, lambda a, b, n=n: parts(raw.FFT(input=C(tf.reshape(a, [2, n]), tf.reshape(b, [2, n])))) + parts(raw.IFFT(input=C(tf.reshape(a, [2, n]), tf.reshape(b, [2, n])))), f32(2, n), f32(2, n))
    case("RFFT_%d" % n, lambda a, n=n: parts(raw.RFFT(input=a, fft_length=c([n]))), f32(3, n))
    case("IRFFT_%d" % n, lambda a, b, n=n: raw.IRFFT(input=C(a, b), fft_length=c([n])), f32(3, n // 2 + 1), f32(3, n // 2 + 1))
case("FFT_f64", lambda a, b: parts(raw.FFT(input=raw.Complex(real=tf.reshape(a, [2, 9]), imag=tf.reshape(b, [2, 9]), Tout=tf.complex128))), f32(2, 9).astype(np.float64), f32(2, 9).astype(np.float64))
case("RFFT_cut", lambda a: parts(raw.RFFT(input=a, fft_length=c([6]))), f32(2, 9))
case("RFFT_short", lambda a: parts(raw.RFFT(input=a, fft_length=c([16]))), f32(2, 9), error=True)
case("RFFT_f64", lambda a: parts(raw.RFFT(input=a, fft_length=c([9]), Tcomplex=tf.complex128)), f32(2, 9).astype(np.float64))
case("RFFT_power", lambda a: tf.square(tf.abs(tf.signal.rfft(a, [512]))), f32(4, 400))
case("IRFFT_cut", lambda a, b: raw.IRFFT(input=C(a, b), fft_length=c([6])), f32(2, 9), f32(2, 9))
case("IRFFT_short", lambda a, b: raw.IRFFT(input=C(a, b), fft_length=c([20])), f32(2, 9), f32(2, 9), error=True)
for k, shape in ((2, (3, 4)), (3, (2, 3, 4))):
    fixed = (2,) + shape
    for op in ("FFT", "IFFT"): case("%s%dD" % (op, k), lambda a, b, op=op, k=k, fixed=fixed: parts(getattr(raw, "%s%dD" % (op, k))(input=C(tf.reshape(a, fixed), tf.reshape(b, fixed)))), f32(*fixed), f32(*fixed))
    for j, length in enumerate((list(shape), [shape[0]] + [n - 1 for n in shape[1:]], [n - 1 for n in shape])):
        case("RFFT%dD_%d" % (k, j), lambda a, k=k, length=length: parts(getattr(raw, "RFFT%dD" % k)(input=a, fft_length=c(length))), f32(*fixed))
        bins = fixed[:-1] + (fixed[-1] // 2 + 1,)
        case("IRFFT%dD_%d" % (k, j), lambda a, b, k=k, length=length: getattr(raw, "IRFFT%dD" % k)(input=C(a, b), fft_length=c(length)), f32(*bins), f32(*bins))
case("Stft", lambda a: tf.abs(tf.signal.stft(tf.reshape(a, [2, 100]), 32, 16, 32)), f32(2, 100))
# Lengths that are computed from sizes which the model leaves open, or which only the run knows.
for kind in (1, 2, 3, 4): case("Dct_%d" % kind, lambda a, kind=kind: tf.signal.dct(a, type=kind), f32(3, 6))
case("Dct_back", lambda a: [tf.signal.idct(a), tf.signal.idct(a, type=3)], f32(2, 5))
kept = lambda a, m: tf.boolean_mask(a, m, axis=1)
for kind in (1, 2, 4): case("Dct_kept_%d" % kind, lambda a, m, kind=kind: tf.signal.dct(kept(a, m), type=kind), f32(3, 6), np.array([1, 0, 1, 1, 1, 0], bool))
case("Dct_kept_back", lambda a, m: tf.signal.idct(kept(a, m)), f32(2, 6), np.array([1, 0, 1, 1, 1, 1], bool))
for count, mask in ((4, [1, 0, 1, 1, 1, 0]), (5, [1, 1, 1, 1, 1, 0]), (1, [0, 0, 1, 0, 0, 0])):
    case("RFFT_kept_%d" % count, lambda a, m: parts(raw.RFFT(input=kept(a, m), fft_length=tf.shape(kept(a, m))[1:])), f32(3, 6), np.array(mask, bool))
    case("IRFFT_kept_%d" % count, lambda a, b, m: raw.IRFFT(input=C(a, b), fft_length=tf.reshape(tf.reduce_sum(tf.cast(m, tf.int32)), [1])), f32(3, 4), f32(3, 4), np.array(mask, bool))
case("RFFT_kept_short", lambda a, m: parts(raw.RFFT(input=a, fft_length=tf.shape(m)[:1] + tf.reduce_sum(tf.cast(m, tf.int32)))), f32(3, 6), np.array([1, 1, 0, 1, 1, 1], bool), error=True)
for k in (2, 3):
    lengths = lambda m, k=k: tf.concat([tf.fill([k - 1], 2), tf.reshape(tf.reduce_sum(tf.cast(m, tf.int32)), [1])], 0)
    case("RFFT%dD_kept" % k, lambda a, m, k=k, lengths=lengths: parts(getattr(raw, "RFFT%dD" % k)(input=a, fft_length=lengths(m))), f32(2, 3, 3, 5), np.array([1, 1, 0, 1, 1], bool))
    case("IRFFT%dD_kept" % k, lambda a, b, m, k=k, lengths=lengths: getattr(raw, "IRFFT%dD" % k)(input=C(a, b), fft_length=lengths(m)), f32(2, 3, 3, 4), f32(2, 3, 3, 4), np.array([1, 1, 0, 1, 1], bool))
# Transforms of so many points that they take two steps.
case("RFFT_long", lambda a: parts(raw.RFFT(input=a, fft_length=c([1056]))), f32(2, 1056))
case("IRFFT_long", lambda a, b: raw.IRFFT(input=C(a, b), fft_length=c([1024])), f32(2, 513), f32(2, 513))
case("FFT_long", lambda a, b: parts(raw.FFT(input=C(tf.reshape(a, [2, 1100]), tf.reshape(b, [2, 1100])))) + parts(raw.IFFT(input=C(tf.reshape(a, [2, 1100]), tf.reshape(b, [2, 1100])))), f32(2, 1100), f32(2, 1100))
case("RFFT2D_long", lambda a: parts(raw.RFFT2D(input=a, fft_length=c([1024, 3]))), f32(2, 1024, 3))
