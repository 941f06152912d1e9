#!/usr/bin/env python3
"""Throughput by the number of workers, on a local cluster: Serve's requests and Data's rows a second.

    PYTHONPATH=build/release/python:integrations/ray bench.py [--workers 1 2] [--requests 200] [--size 224] [--batch 1]

Each worker has one processor and one thread. The client, Serve's proxy and Ray's own processes share the machine with them, so
what counts is the ratio, on a machine with more processors than workers.
"""
import argparse
import concurrent.futures
import os
import pathlib
import statistics
import time

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import numpy as np
import oncilla_ray
import ray
from ray import serve

MODEL = str(pathlib.Path(__file__).resolve().parents[2] / "testdata/quickstart/efficientnet_lite0")


def serve_rate(workers, images, batch):
    """Requests a second, from more callers than workers have rows under way."""
    handle = serve.run(oncilla_ray.deployment(MODEL, num_replicas=workers, num_cpus=1, max_batch_size=batch), name="bench",
                       route_prefix=None)
    client = oncilla_ray.Client(handle)
    with concurrent.futures.ThreadPoolExecutor(2 * workers * batch + 2) as pool:
        list(pool.map(lambda image: client(image=image), images[:4 * workers * batch]))
        began = time.perf_counter()
        list(pool.map(lambda image: client(image=image), images))
        took = time.perf_counter() - began
    serve.delete("bench")
    return len(images) / took


class Timed(oncilla_ray.Predictor):
    """Says when each batch was computed: the time in which actors start is not theirs."""

    def __call__(self, batch):
        began = time.time()
        result = super().__call__(batch)
        rows = len(next(iter(batch.values())))
        return {**result, "began": np.full(rows, began), "ended": np.full(rows, time.time())}


def data_rate(workers, images):
    """Rows a second between the first batch's begin and the last one's end."""
    data = ray.data.from_numpy(np.concatenate(images)).rename_columns({"data": "image"}).repartition(8 * workers)
    rows = data.map_batches(Timed, fn_constructor_args=(MODEL,), fn_constructor_kwargs={"outputs": ["label"]}, concurrency=workers,
                            num_cpus=1, batch_size=4).take_all()
    return len(rows) / (max(r["ended"] for r in rows) - min(r["began"] for r in rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    random = np.random.default_rng(0)
    images = [random.integers(0, 256, (1, given.size, given.size, 3), np.uint8) for _ in range(given.requests)]
    ray.init(num_cpus=max(given.workers) + 2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    print(f"{os.cpu_count()} processors, EfficientNet-Lite0 on pictures of {given.size}x{given.size}, batches of {given.batch}")
    for name, rate in [("Serve, requests/s", lambda w: serve_rate(w, images, given.batch)),
                       ("Data, rows/s", lambda w: data_rate(w, images))]:
        figures = {w: [] for w in given.workers}
        for _ in range(given.rounds):  # interleaved: the machine has other work, too
            for workers in given.workers:
                figures[workers].append(rate(workers))
        for workers, values in figures.items():
            ratio = statistics.median(v / f for v, f in zip(values, figures[given.workers[0]]))
            print(f"{name}: {workers} worker{'s'[:workers != 1]} {statistics.median(values):7.1f} "
                  f"({min(values):.1f} to {max(values):.1f}), {ratio:.2f} times", flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
