"""A net on a device as a picture: a bar for each launch, its time and its roof; a self-contained SVG."""

import html

COLOURS = {"core": "#3b6ea5", "memory": "#c98a2b", "cache": "#7a9a3a", "launch": "#a0a0a0"}
ROOF = "#222222"
LEFT, TOP, HEIGHT, BOTTOM = 64, 96, 300, 46


def steps(most):
    """Round numbers up to `most`, about five of them."""
    step = next(s * 10.0 ** e for e in range(-9, 9) for s in (1, 2, 5) if most <= 6 * s * 10.0 ** e)
    return [i * step for i in range(int(most / step) + 1)]


def label(seconds):
    return f"{seconds * 1e3:g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:g} us"


def svg(name, net):
    """Height is time. The dark part of a bar is the time that the device's peak and memory allow at best."""
    rows = net["rows"]
    bar = max(3, min(18, 1100 // max(1, len(rows))))
    width = max(760, LEFT + bar * len(rows) + 24)
    most = max((row["time_s"] for row in rows), default=1e-6)
    scale = HEIGHT / most
    base = TOP + HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{base + BOTTOM}" '
           f'viewBox="0 0 {width} {base + BOTTOM}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{base + BOTTOM}" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="24" font-size="16" fill="#111111">{html.escape(name)} on {net["device"]}</text>',
           f'<text x="{LEFT}" y="43" fill="#444444">{net["launches"]} launches, {net["time_s"] * 1e3:.3g} ms by the model, '
           f'{100 * net["share_of_peak"]:.0f} % of peak; the roof is {net["roof_s"] * 1e3:.3g} ms</text>']
    longest = sorted(rows, key=lambda row: -row["time_s"])[:3]
    words = ", ".join(f'{row["node"][-40:]} {label(round(row["time_s"], 7))}' for row in longest)
    out.append(f'<text x="{LEFT}" y="61" fill="#444444">the longest: {html.escape(words)}</text>')
    at = LEFT
    for what, colour in [*COLOURS.items(), ("roof", ROOF)]:
        words = {"core": "bound by the core", "memory": "by memory", "cache": "by the cache", "launch": "by launching",
                 "roof": "what the roof allows"}[what]
        out.append(f'<rect x="{at}" y="72" width="11" height="11" fill="{colour}"/>'
                   f'<text x="{at + 16}" y="82" fill="#444444">{words}</text>')
        at += 30 + 7 * len(words)
    for value in steps(most):
        y = base - value * scale
        out.append(f'<line x1="{LEFT - 4}" y1="{y:.1f}" x2="{width - 16}" y2="{y:.1f}" stroke="#dddddd"/>'
                   f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#444444">{label(value)}</text>')
    for i, row in enumerate(rows):
        x, tall, roof = LEFT + i * bar, row["time_s"] * scale, min(row["roof_s"], row["time_s"]) * scale
        title = (f'{row["node"]} ({row["op"]}): {row["source"]}:{row["kernel"]} {row["tile"] or ""}, '
                 f'{label(round(row["time_s"], 8))}, {100 * row["share_of_peak"]:.0f} % of peak, bound by {row["bound"]}')
        out.append(f'<g><title>{html.escape(title)}</title>'
                   f'<rect x="{x}" y="{base - tall:.1f}" width="{bar - 1}" height="{tall:.1f}" fill="{COLOURS[row["bound"]]}"/>'
                   f'<rect x="{x}" y="{base - roof:.1f}" width="{bar - 1}" height="{roof:.1f}" fill="{ROOF}"/></g>')
    out.append(f'<line x1="{LEFT}" y1="{base}" x2="{width - 16}" y2="{base}" stroke="#444444"/>'
               f'<text x="{LEFT}" y="{base + 22}" fill="#444444">launches in the order of the plan; height is time</text></svg>')
    return "\n".join(out) + "\n"
