"""Data's map_batches on a cluster: a model in each of two actors, also when one is killed in mid-load."""
import os
import signal
import time

import numpy as np
import oncilla_ray
import pytest
import ray
from conftest import QUICKSTART, pictures


class Noted(oncilla_ray.Predictor):
    """Tells which process computed a row, and lets one of them be killed once."""

    def __init__(self, *arguments, kill="", **options):
        super().__init__(*arguments, **options)
        self.kill, self.batches = kill, 0

    def __call__(self, batch):
        self.batches += 1
        if self.kill and self.batches == 2:
            try:  # the first that comes here, and only that
                os.close(os.open(self.kill, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        time.sleep(0.05)
        rows = len(batch["image"])
        return {**super().__call__(batch), "pid": np.full(rows, os.getpid())}


@pytest.mark.parametrize("killed", [pytest.param(False, marks=pytest.mark.slow), True])
def test_rows_are_as_without_ray(cluster, direct, tmp_path, killed):
    images = np.concatenate(pictures(48))
    data = ray.data.from_numpy(images).rename_columns({"data": "image"})
    kill = str(tmp_path / "killed") if killed else ""
    result = data.repartition(12).map_batches(
        Noted, fn_constructor_args=(QUICKSTART,), fn_constructor_kwargs={"outputs": ["logits", "label"], "keep": True, "kill": kill},
        batch_size=4, compute=ray.data.ActorPoolStrategy(size=2), num_cpus=1)
    rows = result.take_all()
    assert len(rows) == 48 and os.path.exists(kill or "/")
    assert len({row["pid"] for row in rows}) >= 2
    wanted = direct(image=np.stack([row["image"] for row in rows]))
    assert np.allclose(np.stack([row["logits"] for row in rows]), wanted["logits"], atol=1e-3)
    assert [row["label"][0] for row in rows] == wanted["label"][:, 0].tolist()
    # None is lost, and none is there twice.
    assert sorted(row["image"].tobytes() for row in rows) == sorted(image.tobytes() for image in images)
