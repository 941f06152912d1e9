"""Models, plans and results as HTML, for notebooks. Plain tables with inline styles: notebooks drop scripts and style sheets."""
from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._model import _Declared
    from ._plan import Plan
    from ._spec import TensorSpec

_COLOURS = ("#4878a8", "#d98032", "#5f9e5f", "#b05050", "#8067a8", "#7f7f7f")
_CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:top;border:0;max-width:340px;overflow-wrap:anywhere"
_MOST_BARS = 10
_MOST_NODES = 12
_MOST_TEXT = 120


def size(count: float) -> str:
    """Bytes with a unit."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"


def _text(value: object) -> str:
    text = str(value)
    return html.escape(text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 2] + "..")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = "".join(f"<th style='{_CELL};font-weight:600;color:#777'>{_text(cell)}</th>" for cell in head)
    body = "".join("<tr style='background:none'>" + "".join(f"<td style='{_CELL}'>{cell}</td>" for cell in row) + "</tr>"
                   for row in rows)
    return f"<table style='border-collapse:collapse;border:0;font-size:13px;margin:4px 0 8px'><tr>{cells}</tr>{body}</table>"


def _bar(share: float, colour: str = _COLOURS[0]) -> str:
    width = max(0.0, min(1.0, share)) * 200
    return (f"<span style='display:inline-block;height:10px;width:{width:.0f}px;min-width:1px;background:{colour};"
            "border-radius:2px'></span>")


def _title(text: str) -> str:
    return f"<div style='font-weight:600;margin-top:4px'>{_text(text)}</div>"


def _shape(spec: TensorSpec) -> str:
    if spec.shape is None:
        return "any"
    return f"[{', '.join('?' if n is None else str(n) for n in spec.shape)}]"


def _specs(side: str, specs: Mapping[str, TensorSpec]) -> list[list[str]]:
    kinds = {"tensor": ""}
    return [[side if i == 0 else "", f"<code>{_text(spec.name)}</code>",
             _text((kinds.get(spec.kind, spec.kind + " of ")) + spec.dtype), _text(_shape(spec))]
            for i, spec in enumerate(specs.values())]


def signature(of: _Declared) -> str:
    rows = _specs("inputs", of.inputs) + _specs("outputs", of.outputs)
    return _title(f"Signature {of.key}" if of.key else "Signature") + _table(("", "name", "type", "shape"), rows)


def plan(of: Plan) -> str:
    """Nodes per device as bars, memory, and the nodes that are not on the device of most nodes."""
    devices = of.devices
    total = sum(devices.values()) or 1
    rows = []
    for i, (device, count) in enumerate(sorted(devices.items(), key=lambda item: -item[1])):
        peak = max((m.peak_bytes for m in of.memory if m.device == device), default=None)
        rows.append([_text(device), _bar(count / total, _COLOURS[i % len(_COLOURS)]) + f" {count} nodes",
                     size(of.weight_bytes.get(device, 0)), "not known yet" if peak is None else size(peak)])
    text = _title("Placement") + _table(("device", "", "weights", "peak of a run"), rows)
    if len(devices) > 1:
        most = max(devices, key=lambda device: devices[device])
        others = [node for node in of.nodes if node.device != most]
        rows = [[f"<code>{_text(node.name)}</code>", _text(node.op), _text(node.device), _text(node.reason)]
                for node in others[:_MOST_NODES]]
        if len(others) > _MOST_NODES:
            rows.append([f"and {len(others) - _MOST_NODES} more", "", "", ""])
        text += _table(("node", "op", "runs on", "because"), rows)
    return text


def model(signatures: Mapping[str, _Declared], of: Plan | None) -> str:
    text = "".join(signature(one) for one in signatures.values()) or _title("A model without signatures")
    return f"<div>{text}{plan(of) if of is not None else ''}</div>"


def _value(value: Any) -> str:
    """A few numbers as bars, strings unchanged, more numbers as their range."""
    if not isinstance(value, np.ndarray):
        if isinstance(value, list):
            return f"{len(value)} elements"
        return _text(value)
    if value.size == 0:
        return "empty"
    if value.dtype == object:
        shown = ", ".join(_text(item) for item in value.reshape(-1)[:_MOST_BARS].tolist())
        return shown + (" .." if value.size > _MOST_BARS else "")
    if value.dtype.kind not in "biuf" or value.size > _MOST_BARS:
        if value.dtype.kind not in "biuf":
            return _text(np.array2string(value, threshold=_MOST_BARS))
        numbers = value.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        wrong = value.size - finite.size
        low, high = (finite.min(), finite.max()) if finite.size else (np.nan, np.nan)
        return _text(f"{low:.4g} to {high:.4g}") + (f", <b>{wrong} not finite</b>" if wrong else "")
    largest = float(np.nanmax(np.abs(value.astype(np.float64)), initial=0)) or 1.0
    lines = []
    for item in value.reshape(-1).tolist():
        share = abs(float(item)) / largest if np.isfinite(item) else 0.0
        lines.append(f"{_bar(share, _COLOURS[0 if item >= 0 else 3])} {_text(f'{item:.4g}')}")
    return "<br>".join(lines)


def result(of: Any) -> str:
    rows = []
    for name, value in of.items():
        dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
        kind = "string" if dtype == np.dtype(object) else str(dtype) if dtype is not None else type(value).__name__
        rows.append([f"<code>{_text(name)}</code>", _text(kind), _text(list(shape) if shape is not None else ""), _value(value)])
    report = f"<div style='color:#777;font-size:12px'>{_text(of.report)}</div>" if of.report else ""
    return f"<div>{_table(('output', 'type', 'shape', 'values'), rows)}{report}</div>"
