"""Data's map_batches: a model in each actor, columns in and columns out."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import oncilla

from ._worker import Worker


class Predictor:
    """For `dataset.map_batches(Predictor, fn_constructor_args=(path,), compute=ray.data.ActorPoolStrategy(size=..),
    num_cpus=.., batch_size=..)`.

    Each actor loads the model once, within what it reserves (`num_cpus`, `num_gpus`), as a Serve replica does. `inputs` maps
    inputs of the model to columns, `outputs` outputs to columns (or names those that are wanted); without, they are called
    the same. `keep` are columns that are passed through, or True for all. A column whose rows differ in shape is run in
    batches of equal shapes; a model that takes no batches runs row by row.
    """

    def __init__(self, path: str, *, inputs: Mapping[str, str] | None = None,
                 outputs: Mapping[str, str] | Sequence[str] | None = None, keep: bool | Sequence[str] = (), **options: Any) -> None:
        wanted = list(outputs) if outputs is not None else None
        self._worker = Worker(path, outputs=wanted, **options)
        # Rows are joined where the model has a batch axis, whatever their number; Data chose that.
        self._worker.joins = all(_is_open(spec) for spec in self._worker.inputs.values())
        unknown = (inputs or {}).keys() - self._worker.inputs.keys()
        if unknown:
            raise ValueError(f"'{path}' has no input {', '.join(map(repr, sorted(unknown)))}; it has "
                             f"{', '.join(self._worker.inputs)}")
        self._inputs = {name: (inputs or {}).get(name, name) for name in self._worker.inputs}
        self._outputs = dict(outputs) if isinstance(outputs, Mapping) else {name: name for name in self._worker.outputs}
        self._keep = keep

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, Any]:
        if not isinstance(batch, Mapping) or not all(isinstance(c, np.ndarray) for c in batch.values()):
            raise TypeError(f"a batch is a dict of NumPy arrays (batch_format='numpy'), not {type(batch).__name__}")
        missing = [column for column in self._inputs.values() if column not in batch]
        if missing:
            raise ValueError(f"the dataset has no column {', '.join(map(repr, missing))}; it has {', '.join(batch)}")
        columns = {name: batch[column] for name, column in self._inputs.items()}
        results = self._run(columns)
        kept = batch.keys() if self._keep is True else self._keep or ()
        return {**{column: batch[column] for column in kept}, **{self._outputs[name]: value for name, value in results.items()}}

    def _run(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        worker = self._worker
        rows = len(next(iter(columns.values()))) if columns else 0
        whole = {name: _dense(column, worker.inputs[name]) for name, column in columns.items()}
        if worker.joins and rows > 0 and all(array is not None for array in whole.values()):
            result = worker.run(worker.arrays_of(whole))
            if all(array.ndim > 0 and len(array) == rows for array in result.values()):
                return result
            raise ValueError(f"'{_shapes(result)}' has not as many rows as the batch ({rows}): the model's outputs have no "
                             "batch axis")
        return self._run_rows(columns, rows)

    def _run_rows(self, columns: dict[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
        worker = self._worker
        requests = []
        for row in range(rows):
            # Where the model has a batch axis, a row is a batch of one.
            cells = {name: np.asarray(column[row]) for name, column in columns.items()}
            requests.append({name: cell[None] if worker.joins else cell for name, cell in cells.items()})
        answers = worker.run_many(requests)
        for row, answer in enumerate(answers):
            if isinstance(answer, Exception):
                raise oncilla.InvalidArgumentError(f"row {row} of a batch: {answer}") from answer
        first = (lambda a: a[0]) if worker.joins else (lambda a: a)
        return {name: _stacked([first(answer[name]) for answer in answers]) for name in worker.outputs}


def _is_open(spec: oncilla.TensorSpec) -> bool:
    return spec.kind == "tensor" and (spec.shape is None or (bool(spec.shape) and spec.shape[0] is None))


def _shapes(arrays: Mapping[str, np.ndarray]) -> str:
    return ", ".join(f"{name}{list(array.shape)}" for name, array in arrays.items())


def _dense(column: np.ndarray, spec: oncilla.TensorSpec) -> np.ndarray | None:
    """A column as one array. Data gives an array of objects where rows are lists or differ in shape; None for the latter."""
    if column.dtype != object or spec.dtype == "string":
        return column
    cells = [np.asarray(cell) for cell in column]
    return np.stack(cells) if cells and len({(cell.shape, cell.dtype) for cell in cells}) == 1 else None


def _stacked(cells: list[np.ndarray]) -> np.ndarray:
    """Rows as one array, or as one of objects where they differ in shape."""
    if len({cell.shape for cell in cells}) <= 1:
        return np.stack(cells) if cells else np.empty((0,))
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column
