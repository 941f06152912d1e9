"""Where the nodes of a model run."""
from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Plan:
    text: str
    data: Any


def read_plan(text: str, data: Any) -> Plan:
    return Plan(text, data)
