"""The ratios as a drawing: a band for each net, a line in it for each engine, which starts at the reference's time and
ends at the engine's; SVG without anything from outside."""
import html
import math

from . import report
from .report import nets_of

COLOURS = {"oncilla": "#1b5fbf", "oncilla-opencl": "#6fa8dc", "ort": "#555555", "ov": "#8e5bb5", "litert": "#2f9e6e", "mnn": "#d4872a",
           "ncnn": "#c74b6b", "tf": "#8a8f3a"}
LEFT, RIGHT, TOP, PLOT, LANE, GAP, LEAST = 216, 90, 166, 640, 15, 13, 40
TICKS = (0.125, 0.25, 0.5, 0.71, 1, 1.41, 2, 4, 8, 16)


def span(ratios):
    """The ends of the axis: ticks around all ratios, 0.5 to 2 at least."""
    low, high = min([0.5, *ratios]), max([2, *ratios])
    return max([t for t in TICKS if t <= low], default=TICKS[0]), min([t for t in TICKS if t >= high], default=TICKS[-1])


def bands(rows):
    """Nets with what is drawn of each: the reference's row and the measured rows of the others."""
    out = []
    for net in nets_of(rows):
        measured = [row for row in rows if row["net"] == net and row.get("ratio") is not None]
        reference = next((row for row in measured if row["engine"] == row["reference"]), None)
        others = [row for row in measured if row is not reference]
        if others: out.append((net, reference, others))
    return out


def word(x, y, text, **style):
    attributes = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in style.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{attributes}>{html.escape(text)}</text>'


def lane(row, y, at, title):
    """One engine's line, its dot, the quarter points of its rounds, and the number."""
    colour, ratio = COLOURS.get(row["engine"], "#000000"), row["ratio"]
    ours = row["engine"].startswith("oncilla")
    words = f'{title}: {row["ratio"]:.3f}, half of the rounds {row["ratio_low"]:.3f} to {row["ratio_high"]:.3f}, best {row["ms"]} ms'
    fill = colour if row["agrees"] else "#ffffff"  # a hollow dot: another answer
    right = ratio >= 1
    x = at(ratio)
    beyond = max(x + 9, at(row["ratio_high"]) + 6) if right else min(x - 9, at(row["ratio_low"]) - 6)
    return "".join([
        f"<g><title>{html.escape(words)}</title>",
        f'<line x1="{at(1):.1f}" y1="{y}" x2="{x:.1f}" y2="{y}" stroke="{colour}" stroke-width="{4 if ours else 2}"/>',
        f'<line x1="{at(row["ratio_low"]):.1f}" y1="{y}" x2="{at(row["ratio_high"]):.1f}" y2="{y}" stroke="{colour}" '
        f'stroke-width="7" stroke-opacity="0.3"/>',
        f'<circle cx="{x:.1f}" cy="{y}" r="{5 if ours else 4}" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>',
        word(beyond, y + 4, f"{ratio:.2f}", text_anchor="start" if right else "end", fill=colour, font_size=11,
             font_weight="bold" if ours else "normal"), "</g>"])


def key(engines, titles, y):
    """The legend."""
    out, x = [], LEFT
    for name in engines:
        out.append(f'<circle cx="{x + 5}" cy="{y - 4}" r="5" fill="{COLOURS.get(name, "#000000")}"/>')
        out.append(word(x + 15, y, titles[name], fill="#333333"))
        x += 36 + 7.4 * len(titles[name])
    out.append(word(LEFT, y + 18, "pale: half of the rounds; hollow: the answer differs from the reference's", fill="#777777", font_size=11))
    return out


def tall(others):
    """The height of a net's band, which holds two lines of words at least."""
    return max(LEAST, len(others) * LANE + GAP)


def svg(made, titles):
    drawn = bands(made["rows"])
    low, most = span([row["ratio"] for _, _, others in drawn for row in others])
    scale = PLOT / math.log(most / low)
    at = lambda ratio: LEFT + scale * math.log(min(max(ratio, low), most) / low)
    height = TOP + sum(tall(others) for _, _, others in drawn) + 48
    width = LEFT + PLOT + RIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           'font-family="sans-serif" font-size="12">', f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           word(20, 28, "Time of a run, as a ratio to the reference's in the same round", font_size=17, fill="#111111")]
    for i, words in enumerate(report.machine_words(made["machine"])):
        out.append(word(20, 48 + 16 * i, words, fill="#555555"))
    shown = [name for name in titles if any(row["engine"] == name for _, _, others in drawn for row in others)]
    out += key(shown, titles, 106)
    base = height - 40
    for tick in TICKS:
        if not low <= tick <= most: continue
        colour = "#333333" if tick == 1 else "#dddddd"
        out.append(f'<line x1="{at(tick):.1f}" y1="{TOP - 14}" x2="{at(tick):.1f}" y2="{base}" stroke="{colour}"/>')
        for y in (TOP - 20, base + 16): out.append(word(at(tick), y, f"{tick:g}", text_anchor="middle", fill="#555555"))
    out.append(word(at(1) - 10, base + 33, "faster", text_anchor="end", fill="#555555"))
    out.append(word(at(1) + 10, base + 33, "slower", fill="#555555"))
    y = TOP
    for i, (net, reference, others) in enumerate(drawn):
        high = tall(others)
        if i % 2 == 0: out.append(f'<rect x="12" y="{y}" width="{width - 24}" height="{high}" fill="#000000" fill-opacity="0.035"/>')
        said = f'{titles.get(others[0]["reference"], others[0]["reference"])} {reference["ms"]:.3g} ms' if reference else ""
        out.append(word(20, y + high / 2 - 2, net, fill="#111111", font_size=13))
        out.append(word(20, y + high / 2 + 13, said, fill="#777777", font_size=11))
        first = y + (high - LANE * (len(others) - 1)) / 2
        for k, row in enumerate(others): out.append(lane(row, first + LANE * k, at, titles[row["engine"]]))
        y += high
    return "\n".join(out) + "\n</svg>\n"
