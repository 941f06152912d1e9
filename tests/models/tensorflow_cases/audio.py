"""Sound: WAV files, spectrograms, cepstra."""
import struct
from recorder import *


def wav(channels, samples, rate=16000, bits=16, kind=1, extension=b"", before=b"", after=b"", cut=0):
    data = state.rng.integers(-32768, 32768, (samples, channels)).astype("<i2").tobytes()
    head = struct.pack("<HHIIHH", kind, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits) + extension
    body = b"WAVE" + b"fmt " + struct.pack("<I", len(head)) + head + before + b"data" + struct.pack("<I", len(data)) + data[:len(data) - cut] + after
    return np.array(b"RIFF" + struct.pack("<I", len(body)) + body, object)


def decode(name, data, error=False, **kw):
    case("DecodeWav_" + name, lambda a: list(raw.DecodeWav(contents=a, **kw)), data, error=error)


LIST = b"LIST" + struct.pack("<I", 6) + b"abcdef"
decode("mono", wav(1, 30))
decode("stereo", wav(2, 17, 44100))
decode("extension", wav(1, 9, extension=b"\0\0"))
decode("chunks", wav(2, 9, before=LIST, after=LIST))
decode("fewer", wav(2, 12), desired_samples=5, desired_channels=1)
decode("more", wav(2, 12), desired_samples=20, desired_channels=4)
decode("none", wav(1, 0))
decode("nothing", np.array(b"nothing", object), error=True)
decode("empty", np.array(b"", object), error=True)
decode("short", wav(1, 30, cut=7), error=True)
decode("bits", wav(1, 30, bits=8), error=True)
decode("float", wav(1, 30, kind=3), error=True)
decode("format", wav(1, 30, extension=b"abcd"), error=True)
decode("no_data", np.array(wav(1, 3).item()[:36], object), error=True)
for name, x in (("mono", f32(20, 1, lo=-1.2, hi=1.2)), ("stereo", f32(11, 2, lo=-1, hi=1)), ("ties", (np.arange(-8, 9, dtype=np.float32) / 2 / 32768)[:, None]), ("edges", np.float32([[1, -1, 0.99999, np.inf, -np.inf, 0.99998]])), ("none", f32(0, 1))):
    case("EncodeWav_" + name, lambda a: raw.EncodeWav(audio=a, sample_rate=c(8000)), x)
case("EncodeWav_rate", lambda a, r: raw.EncodeWav(audio=a, sample_rate=r), f32(3, 1), np.int32(0), error=True)
case("EncodeWav_channels", lambda a, r: raw.EncodeWav(audio=a, sample_rate=r), f32(3, 0), np.int32(8000), error=True)

tone = lambda n, *hertz: sum(np.sin(2 * np.pi * np.arange(n) * h / 16000) for h in hertz).astype(np.float32)[:, None]
for window, stride in ((400, 160), (512, 512), (2, 1), (30, 7), (9, 20)):
    for squared in (False, True):
        case("AudioSpectrogram_%d_%d_%d" % (window, stride, squared), lambda a, w=window, s=stride, q=squared: raw.AudioSpectrogram(input=a, window_size=w, stride=s, magnitude_squared=q), (f32(60, 2) if window < 100 else f32(1300, 1)))
case("AudioSpectrogram_tone", lambda a: raw.AudioSpectrogram(input=a, window_size=480, stride=320, magnitude_squared=True), tone(1600, 440, 3000))
case("AudioSpectrogram_short", lambda a: raw.AudioSpectrogram(input=a, window_size=64, stride=8), f32(63, 2))
spectrum = lambda *shape: np.square(f32(*shape, lo=0, hi=3))
case("Mfcc", lambda a: raw.Mfcc(spectrogram=a, sample_rate=c(16000)), spectrum(1, 5, 257))
case("Mfcc_settings", lambda a, r: raw.Mfcc(spectrogram=a, sample_rate=r, upper_frequency_limit=7600.0, lower_frequency_limit=80.0, filterbank_channel_count=20, dct_coefficient_count=20), spectrum(2, 4, 129), np.int32(16000))
case("Mfcc_narrow", lambda a: raw.Mfcc(spectrogram=a, sample_rate=c(16000), filterbank_channel_count=40, dct_coefficient_count=8), spectrum(1, 3, 33))
case("Mfcc_silence", lambda a: raw.Mfcc(spectrogram=a, sample_rate=c(16000)), np.zeros((1, 2, 257), np.float32))
case("Mfcc_rate", lambda a, r: raw.Mfcc(spectrogram=a, sample_rate=r), spectrum(1, 2, 257), np.int32(0), error=True)
case("Speech", lambda a: (lambda w: raw.Mfcc(spectrogram=raw.AudioSpectrogram(input=w[0], window_size=480, stride=160, magnitude_squared=True), sample_rate=w[1], dct_coefficient_count=40))(raw.DecodeWav(contents=a, desired_channels=1, desired_samples=2000)), wav(1, 1800))
