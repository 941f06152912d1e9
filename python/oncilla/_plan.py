"""Where the nodes of a model run, and how much memory they take."""
from __future__ import annotations

import collections
import dataclasses
import re
from typing import Any

from . import _html

# "name (Op): /job:..device:CPU:0  reason", a line for each node.
_LINE = re.compile(r"(?P<name>.*) \((?P<op>[^()]*)\): (?P<device>\S*) *(?P<reason>.*)")


@dataclasses.dataclass(frozen=True)
class PlacedNode:
    """A node of the model: where it runs ("CPU:0"), and why."""

    name: str
    op: str
    device: str
    reason: str


@dataclasses.dataclass(frozen=True)
class PlanMemory:
    """The memory of a run on a device for one set of shapes, in bytes, and the node at its peak."""

    device: str
    arena_bytes: int
    peak_bytes: int
    peak_node: str
    peak_op: str


@dataclasses.dataclass(frozen=True)
class Plan:
    """What Model.plan() returns. `nodes` are in the order of the graph, after its optimisation; `memory` has an entry for each
    device and set of shapes that was run or prepared; `weight_bytes` is by device."""

    nodes: tuple[PlacedNode, ...]
    memory: tuple[PlanMemory, ...]
    weight_bytes: dict[str, int]

    @property
    def devices(self) -> dict[str, int]:
        """How many nodes run on each device."""
        return dict(collections.Counter(node.device for node in self.nodes))

    @property
    def peak_bytes(self) -> int:
        """The most bytes that a run takes for intermediate values, over all known shapes; 0 where none is known."""
        return max((memory.peak_bytes for memory in self.memory), default=0)

    def __str__(self) -> str:
        lines = [f"{device}: {count} nodes, weights {_html.size(self.weight_bytes.get(device, 0))}"
                 for device, count in self.devices.items()]
        lines += [f"{m.device}: peak {_html.size(m.peak_bytes)} at {m.peak_node} ({m.peak_op})" for m in self.memory]
        lines += [f"  {node.name} ({node.op}): {node.device}  {node.reason}" for node in self.nodes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _html.plan(self)


def _short(device: str) -> str:
    return device.rpartition("device:")[2]


def read_plan(placement: str, memory: dict[str, Any]) -> Plan:
    """A plan from the library's text and its memory report on the model."""
    nodes = []
    for line in placement.splitlines():
        found = _LINE.fullmatch(line)
        if found:
            nodes.append(PlacedNode(found["name"], found["op"], _short(found["device"]), found["reason"]))
    plans: list[PlanMemory] = []
    weights: collections.Counter[str] = collections.Counter()
    for constant in memory["constants"]:
        weights[_short(constant["device"])] += constant["bytes"]
    for plan in memory["plans"]:
        plans += [PlanMemory(_short(d["device"]), d["arena_bytes"], d["peak_bytes"], d.get("peak_node", ""), d.get("peak_op", ""))
                  for d in plan["devices"]]
    return Plan(tuple(nodes), tuple(plans), dict(weights))
