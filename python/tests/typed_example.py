"""A program as users write it, checked by mypy --strict (test_sessions.py)."""
from __future__ import annotations

import asyncio
import sys

import numpy as np
import oncilla


def classify(path: str, image: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> list[str]:
    with oncilla.Session(device="cpu", memory_limit=1_000_000_000) as session:
        model: oncilla.Model = session.load(path)
        spec: oncilla.TensorSpec = model.inputs["image"]
        assert spec.shape is None or len(spec.shape) == 4
        result: oncilla.Result = model.run({"image": image}, outputs=["label"], timeout=60.0)
        labels: list[str] = result["label"].reshape(-1).tolist()
        plan: oncilla.Plan = model.plan()
        print(plan.peak_bytes, plan.devices, result.report)
        return labels


async def both(model: oncilla.Model, image: object) -> tuple[oncilla.Result, oncilla.Result]:
    first, second = model.run_async({"image": image}), model.run_async({"image": image})
    return await first, await second


def main() -> None:
    image = np.zeros((1, 8, 8, 3), np.uint8)
    try:
        print(classify(sys.argv[1], image))
        with oncilla.load(sys.argv[1], device="cpu") as model:
            print(len(asyncio.run(both(model, image))))
            step: oncilla.Callable = model.callable(outputs=["logits"])
            print(step(image).shape)
    except oncilla.Error as error:
        sys.exit(f"{error.code} {error.node} {error.device}: {error}")


if __name__ == "__main__":
    main()
