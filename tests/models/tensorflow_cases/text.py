"""Strings: joining, cutting, counting, hashing, patterns, n-grams, Unicode, numbers as text."""
from recorder import *


def s(*texts):
    return np.array(texts, object)


WORDS = s(b"hello world", b"", b"  a b  c ", b"one", "gr\u00fc\u00dfe \u4e2d\u6587 \U0001f600".encode(), b"tab\tnew\nline")
GRID = np.array([[b"a", b"b", b"c"], [b"d", b"", b"f"]], object)

case("StringJoin", lambda a, b: [raw.StringJoin(inputs=[a, b]), raw.StringJoin(inputs=[a, b, a], separator=", ")], s(b"x", b"y"), s(b"1", b""))
case("StringJoin_scalar", lambda a, b: [raw.StringJoin(inputs=[c("<"), a, c(">")]), raw.StringJoin(inputs=[b, b], separator="-")], GRID, np.array(b"q", object))
case("StringJoin_shapes", lambda a, b: raw.StringJoin(inputs=[a, b]), s(b"x", b"y"), s(b"1", b"2", b"3"), error=True)
for axes in ([0], [1], [0, 1], [1, 0], [-1], []):
    name = "_".join(map(str, axes)).replace("-", "m")
    case("ReduceJoin_" + name, lambda a, axes=axes: [raw.ReduceJoin(inputs=a, reduction_indices=c(axes, tf.int32), separator="+"),
                                                     raw.ReduceJoin(inputs=a, reduction_indices=c(axes, tf.int32), keep_dims=True)], GRID)
case("ReduceJoin_cube", lambda a: [raw.ReduceJoin(inputs=a, reduction_indices=c([0, 2])), raw.ReduceJoin(inputs=a, reduction_indices=c([2, 0])), raw.ReduceJoin(inputs=a, reduction_indices=c([1]))],
     np.array([[[b"%d%d%d" % (i, j, k) for k in range(2)] for j in range(3)] for i in range(2)], object))
case("ReduceJoin_fed_axes", lambda a, i: raw.ReduceJoin(inputs=a, reduction_indices=i), GRID, np.array([1], np.int32))
case("ReduceJoin_range", lambda a, i: raw.ReduceJoin(inputs=a, reduction_indices=i), GRID, np.array([2], np.int32), error=True)
case("UnsortedSegmentJoin", lambda a, i: raw.UnsortedSegmentJoin(inputs=a, segment_ids=i, num_segments=c(4), separator=":"), s(b"a", b"b", b"c", b"d"), np.array([2, 0, 2, 0], np.int32))
case("UnsortedSegmentJoin_rows", lambda a, i: raw.UnsortedSegmentJoin(inputs=a, segment_ids=i, num_segments=c(2, tf.int64)), GRID, np.array([1, 1], np.int64))
case("UnsortedSegmentJoin_range", lambda a, i: raw.UnsortedSegmentJoin(inputs=a, segment_ids=i, num_segments=c(2)), s(b"a", b"b"), np.array([0, 2], np.int32), error=True)
for sep in (b"", b" ", b"l", b"o w", b","):
    for most in (-1, 0, 1, 2):
        case("StringSplitV2_%s_%d" % (sep.decode().replace(" ", "s").replace(",", "c"), most + 1),
             lambda a, sep=sep, most=most: list(raw.StringSplitV2(input=a, sep=c(sep), maxsplit=most)), WORDS)
case("StringSplitV2_many", lambda a: list(raw.StringSplitV2(input=a, sep=c("<>"))), s(b"1<>2<>3", b"<><>", b"<>4<>5<><>6<>"))
case("StringSplitV2_fed_sep", lambda a, b: list(raw.StringSplitV2(input=a, sep=b)), WORDS, np.array(b"e", object))
case("StringSplitV2_empty", lambda a: list(raw.StringSplitV2(input=a, sep=c(" "))), np.array([], object))
for sep in (b" ", b"", b"lo "):
    for skip in (True, False):
        case("StringSplit_%s_%d" % (sep.decode().replace(" ", "s"), skip), lambda a, sep=sep, skip=skip: list(raw.StringSplit(input=a, delimiter=c(sep), skip_empty=skip)), WORDS)
case("StringLower", lambda a: [raw.StringLower(input=a), raw.StringUpper(input=a)], s(b"Hello WORLD 9", "\u00c4\u00d6 x".encode(), b""))
case("StringLower_utf8", lambda a: [raw.StringLower(input=a, encoding="utf-8"), raw.StringUpper(input=a, encoding="utf-8")], s(b"Hello WORLD 9", b""))
case("StringLength", lambda a: [raw.StringLength(input=a), raw.StringLength(input=a, unit="UTF8_CHAR")], WORDS)
case("StringLength_grid", lambda a: raw.StringLength(input=a), GRID)
case("Substr", lambda a: [raw.Substr(input=a, pos=c(p), len=c(n)) for p, n in ((0, 2), (1, 1), (-2, 1), (-3, 9), (3, 0))], s(b"abcdef", b"xyz"))
case("Substr_broadcast", lambda a, p, n: raw.Substr(input=a, pos=p, len=n), GRID, np.array([[0], [0]], np.int32), np.array([[1], [2]], np.int32))
case("Substr_scalar", lambda a, p, n: raw.Substr(input=a, pos=p, len=n), np.array(b"thirteen", object), np.array([1, 5, 7], np.int64), np.array([3, 2, 1], np.int64))
case("Substr_utf8", lambda a: [raw.Substr(input=a, pos=c(p), len=c(n), unit="UTF8_CHAR") for p, n in ((2, 4), (0, 1), (-3, 2), (-8, 4), (4, 99))], WORDS[4:5])
case("Substr_range", lambda a: raw.Substr(input=a, pos=c(4), len=c(1)), s(b"abc"), error=True)
case("Substr_range_utf8", lambda a: raw.Substr(input=a, pos=c(-4), len=c(1), unit="UTF8_CHAR"), s(b"abc"), error=True)
case("StringStrip", lambda a: raw.StringStrip(input=a), s(b"  x y ", b"\t\n\v\f\r q\r\n", b"   ", b""))
case("StringFormat", lambda a, b: raw.StringFormat(inputs=[a, b], template="a %s and %s!"), i32(3, 4), np.float32(0.1))
case("StringFormat_long", lambda a: [raw.StringFormat(inputs=[a], template="{}", placeholder="{}", summarize=n) for n in (1, 2, -1)], i32(5, 2, 6))
case("StringFormat_floats", lambda a, b: raw.StringFormat(inputs=[a, b], template="%s|%s", summarize=9), np.array([1, 0.1, 1 / 3, 1e-9, 3e20, np.inf, -np.inf, np.nan, 123456789.0], np.float32),
     np.array([1, 0.1, 1 / 3, 1e-9, 3e200, 123456789.0], np.float64))
case("StringFormat_kinds", lambda a, b: raw.StringFormat(inputs=[a, b], template="%s|%s"), s(b"x", b"y"), boolean(3))
case("StringFormat_plain", lambda a: raw.StringJoin(inputs=[raw.StringFormat(inputs=[], template="just text"), a]), np.array(b"!", object))
V = np.array([0, 1, -1.5, 1 / 3, 1e-7, 123456.789, 1e20, np.inf, np.nan], np.float32)
case("AsString", lambda a: [raw.AsString(input=a), raw.AsString(input=a, precision=2), raw.AsString(input=a, scientific=True), raw.AsString(input=a, shortest=True), raw.AsString(input=a, shortest=True, precision=3),
                            raw.AsString(input=a, width=12, fill="0"), raw.AsString(input=a, width=9, fill="-", precision=1), raw.AsString(input=a, fill="+"), raw.AsString(input=a, width=10, fill=" ")], V)
case("AsString_f64", lambda a: [raw.AsString(input=a), raw.AsString(input=a, shortest=True, precision=15)], V.astype(np.float64))
case("AsString_f16", lambda a: raw.AsString(input=a), V[:4].astype(np.float16))
for t in (np.int8, np.uint8, np.int16, np.int32, np.int64):
    case("AsString_" + np.dtype(t).name, lambda a: [raw.AsString(input=a), raw.AsString(input=a, width=6), raw.AsString(input=a, width=6, fill="0"), raw.AsString(input=a, width=6, fill="-")], np.array([0, 7, 100, np.iinfo(t).min, np.iinfo(t).max], t))
case("AsString_bool", lambda a: raw.AsString(input=a), boolean(4))
case("StringToNumber", lambda a: [raw.StringToNumber(string_tensor=a), raw.StringToNumber(string_tensor=a, out_type=tf.float64)], s(b"1.5", b" -2e3 ", b"inf", b"nan", b"0", b"1e-40", b".5"))
for t in (tf.int32, tf.int64):
    case("StringToNumber_" + t.name, lambda a, t=t: raw.StringToNumber(string_tensor=a, out_type=t), s(b"15", b" -7 ", b"2147483647", b"-2147483648"))
    case("StringToNumber_bad_" + t.name, lambda a, t=t: raw.StringToNumber(string_tensor=a, out_type=t), s(b"99999999999999999999"), error=True)
case("StringToNumber_bad", lambda a: raw.StringToNumber(string_tensor=a), s(b"one"), error=True)
HASHED = s(*[(b"0123456789abcdefghijklmnopqrstuvwxyz" * 9)[:n] for n in (0, 1, 3, 4, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200, 300)])
for n in (1, 10, 1000003, 2**62):
    case("StringToHashBucketFast_%d" % n, lambda a, n=n: raw.StringToHashBucketFast(input=a, num_buckets=n), HASHED)
    case("StringToHashBucketStrong_%d" % n, lambda a, n=n: raw.StringToHashBucketStrong(input=a, num_buckets=n, key=[123, 2**40 + 5]), HASHED)
    case("StringToHashBucket_%d" % n, lambda a, n=n: raw.StringToHashBucket(string_tensor=a, num_buckets=n), HASHED)
case("RegexReplace", lambda a: [raw.RegexReplace(input=a, pattern=c(p), rewrite=c(r), replace_global=g) for p, r in (("[aeiou]", "<\\0>"), ("(\\w)(\\w)", "\\2\\1"), ("^", "> "), ("\\s+", " "), ("x*", "-")) for g in (True, False)], WORDS)
case("RegexReplace_fed", lambda a, p, r: raw.RegexReplace(input=a, pattern=p, rewrite=r), WORDS, np.array(b"l+", object), np.array(b"L", object))
case("RegexReplace_bad", lambda a, p: raw.RegexReplace(input=a, pattern=p, rewrite=c("x")), WORDS, np.array(b"(", object), error=True)
case("StaticRegexReplace", lambda a: [raw.StaticRegexReplace(input=a, pattern="[!\"#$%&()\\*\\+,-\\./:;<=>?@\\[\\\\\\]^_`{|}~']", rewrite=""), raw.StaticRegexReplace(input=a, pattern="\\p{L}", rewrite="L", replace_global=False)],
     s(b"What, is (this)?", b"a_b-c!", "\u00e4\u4e2d".encode()))
case("RegexFullMatch", lambda a: [raw.RegexFullMatch(input=a, pattern=c(p)) for p in ("hello.*", "\\w*", "", "(?i)ONE")], WORDS)
case("RegexFullMatch_bad", lambda a, p: raw.RegexFullMatch(input=a, pattern=p), WORDS, np.array(b"*a", object), error=True)
case("StaticRegexFullMatch", lambda a: [raw.StaticRegexFullMatch(input=a, pattern=p) for p in ("s3://.*", "[a-z ]+")], WORDS)
for k, (widths, pad, short, left, right) in enumerate([([1], 0, False, "", ""), ([2], -1, False, "<", ">"), ([3, 2], 0, False, "", ""), ([3], 1, False, "<", ">"), ([5], 0, True, "", ""), ([2, 4], -1, True, "L", "R"), ([6], 1, True, "<", ">"), ([2], 7, False, "", "")]):
    case("StringNGrams_%d" % k, lambda a, i, widths=widths, pad=pad, short=short, left=left, right=right: list(raw.StringNGrams(data=a, data_splits=i, separator="|", ngram_widths=widths, left_pad=left, right_pad=right, pad_width=pad, preserve_short_sequences=short)),
         s(b"a", b"b", b"c", b"d", b"e", b"f"), np.array([0, 4, 4, 5, 6], np.int64))
case("StringNGrams_i32", lambda a, i: list(raw.StringNGrams(data=a, data_splits=i, separator=" ", ngram_widths=[2], left_pad="", right_pad="", pad_width=0, preserve_short_sequences=False)), s(b"a", b"b", b"c"), np.array([0, 3], np.int32))
case("StringNGrams_splits", lambda a, i: list(raw.StringNGrams(data=a, data_splits=i, separator=" ", ngram_widths=[2], left_pad="", right_pad="", pad_width=0, preserve_short_sequences=False)), s(b"a", b"b", b"c"), np.array([0, 2], np.int64), error=True)
BROKEN = s(b"ok", b"a\xc3(b", b"\xe2\x82", b"\xe2\x28\xa1z", b"\xf0\x90\x28\xbcq", b"\xed\xa0\x80", b"\xc0\xafx", b"\xff\xfe", b"\x80", b"x\x01\x1fy\x7f", b"\xf4\x90\x80\x80", "\u00e9\U0001f600".encode())
for errors in ("replace", "ignore"):
    for control in (False, True):
        case("UnicodeDecode_%s_%d" % (errors, control), lambda a, errors=errors, control=control: list(raw.UnicodeDecodeWithOffsets(input=a, input_encoding="UTF-8", errors=errors, replace_control_characters=control)), BROKEN)
        case("UnicodeTranscode_%s_%d" % (errors, control), lambda a, errors=errors, control=control: [raw.UnicodeTranscode(input=a, input_encoding="UTF-8", output_encoding=e, errors=errors, replacement_char=0x25A1, replace_control_characters=control)
                                                                                                     for e in ("UTF-8", "UTF-16-BE", "UTF-32-BE")], BROKEN)
case("UnicodeDecode_plain", lambda a: list(raw.UnicodeDecode(input=a, input_encoding="UTF-8", Tsplits=tf.int32, replacement_char=33)), BROKEN)
case("UnicodeDecode_strict", lambda a: list(raw.UnicodeDecode(input=a, input_encoding="UTF-8", errors="strict")), BROKEN, error=True)
for enc in ("UTF-16-BE", "UTF-32-BE", "UTF-16-LE", "US-ASCII", "ISO-8859-1"):
    text = "a\u00e9\u4e2d\U0001f600".encode(enc.lower().replace("be", "be")) if enc.startswith("UTF") else b"a\xe9b"
    case("UnicodeDecode_" + enc, lambda a, enc=enc: list(raw.UnicodeDecodeWithOffsets(input=a, input_encoding=enc)), s(text, text[:2], b""))
for errors in ("replace", "ignore"):
    case("UnicodeEncode_" + errors, lambda a, i, errors=errors: [raw.UnicodeEncode(input_values=a, input_splits=i, output_encoding=e, errors=errors) for e in ("UTF-8", "UTF-16-BE", "UTF-32-BE")],
         np.array([97, 0xE9, 0x4E2D, 0x1F600, 0xD800, 0x110000, 0x7FF, 0x800, 0xFFFF], np.int32), np.array([0, 1, 1, 4, 6, 9], np.int64))
case("UnicodeEncode_strict", lambda a, i: raw.UnicodeEncode(input_values=a, input_splits=i, output_encoding="UTF-8", errors="strict"), np.array([97, 0xD800], np.int32), np.array([0, 2], np.int32), error=True)
case("EncodeBase64", lambda a: [raw.EncodeBase64(input=a), raw.EncodeBase64(input=a, pad=True)], s(b"", b"f", b"fo", b"foo", b"\xff\xfe\xfd\xfc", b"hello world"))
case("DecodeBase64", lambda a: raw.DecodeBase64(input=a), s(b"", b"Zg", b"Zg==", b"Zm8", b"Zm9v", b"__79_A", b"aGVsbG8gd29ybGQ="))
case("DecodeBase64_bad", lambda a: raw.DecodeBase64(input=a), s(b"Z"), error=True)
case("DecodeBase64_letters", lambda a: raw.DecodeBase64(input=a), s(b"Zm+v"), error=True)
LETTERS = np.array(["Stra\u00dfe \u01c4 \u01c5 \ufb03", "\u039f\u0394\u039f\u03a3 \u03a3 \u03a3\u03a3", "a\u03a3. \u03a3a a.\u03a3 a'\u03a3", "\u0130I\u0131i \u1e9e", "\u0416\u0436 \u10d0\u1c90 \u13a0\uab70 \U00010400\U0001e900", "plain ASCII", "", "caf\u00e9\u0301 \u0149\u0390"], object)
LETTERS = np.array([s.encode() for s in LETTERS] + [b"A\xff\xc3B\xe2\x82C", b"\xed\xa0\x80Z"], object)
for op in "StringLower StringUpper".split(): case(op + "_letters", lambda x, op=op: getattr(raw, op)(input=x, encoding="utf-8"), LETTERS)
case("UnicodeScript", lambda x: raw.UnicodeScript(input=x), np.array([[0x41, 0x416, 0x5d0, 0x4e00, 0x20, 0x301], [-1, 0x10ffff, 0x110000, 0xd800, 0x1f600, 0x10480], [0, 0xe9, 0x3b1, 0xac00, 0x3042, 0x30a2]], np.int32))
case("UnicodeScript_all", lambda: raw.UnicodeScript(input=tf.range(0, 0x110000, 97)))
for op in "Lower Upper".split():
    case("String%s_all" % op, lambda op=op: getattr(raw, "String" + op)(input=raw.UnicodeEncode(input_values=tf.range(1, 12111), input_splits=tf.range(0, 12111, 173, tf.int64), output_encoding="UTF-8"), encoding="utf-8"))
