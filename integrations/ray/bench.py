#!/usr/bin/env python3
"""Throughput by the number of workers, on a local cluster of Ray's: Serve and Data.

    PYTHONPATH=build/release/python:integrations/ray bench.py [--workers 1 2] [--requests 80] [--rows 4] [--size 224]

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


def serve_rate(workers, requests):
    """Rows a second, from twice as many callers as there are workers."""
    handle = serve.run(oncilla_ray.deployment(MODEL, num_replicas=workers, num_cpus=1), name="bench", route_prefix=None)
    client = oncilla_ray.Client(handle, timeout=300)
    with concurrent.futures.ThreadPoolExecutor(2 * workers + 1) as pool:
        list(pool.map(lambda image: client(image=image), requests[:6 * workers]))
        began = time.perf_counter()
        list(pool.map(lambda image: client(image=image), requests))
        took = time.perf_counter() - began
    serve.delete("bench")
    return sum(map(len, requests)) / took


class Timed(oncilla_ray.Predictor):
    """Adds to each batch when and by which process it was computed. The model has run once before the first batch."""

    def __init__(self, path, example, **options):
        super().__init__(path, **options)
        super().__call__({"image": example})

    def __call__(self, batch):
        began = time.time()
        result = super().__call__(batch)
        rows = len(batch["image"])
        return {**result, "pid": np.full(rows, os.getpid()), "began": np.full(rows, began), "ended": np.full(rows, time.time())}


def data_rate(workers, requests):
    """Rows a second while all actors work, since they do not start and end together."""
    data = ray.data.from_numpy(np.concatenate(requests)).rename_columns({"data": "image"}).repartition(8 * workers)
    rows = data.map_batches(Timed, fn_constructor_args=(MODEL, requests[0]), fn_constructor_kwargs={"outputs": ["label"]},
                            compute=ray.data.ActorPoolStrategy(size=workers), num_cpus=1, batch_size=len(requests[0])).take_all()
    by_worker = {}
    for row in rows:
        by_worker.setdefault(row["pid"], []).append(row)
    begin = max(min(row["began"] for row in own) for own in by_worker.values())
    end = min(max(row["ended"] for row in own) for own in by_worker.values())
    assert len(by_worker) == workers and end > begin, "not all actors worked at the same time: give more --requests"
    return sum(begin < row["ended"] <= end for row in rows) / (end - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--requests", type=int, default=80)
    parser.add_argument("--rows", type=int, default=4, help="pictures of a request, and of a batch of Data's")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    random = np.random.default_rng(0)
    requests = [random.integers(0, 256, (given.rows, given.size, given.size, 3), np.uint8) for _ in range(given.requests)]
    ray.init(num_cpus=max(given.workers) + 2, include_dashboard=False, log_to_driver=False)
    serve.start(proxy_location="Disabled")  # callers have handles, and the proxy would take processor time
    ray.data.DataContext.get_current().enable_progress_bars = False
    print(f"{os.cpu_count()} processors, EfficientNet-Lite0, {given.rows} pictures of {given.size}x{given.size} a request")
    for name, rate in [("Serve, pictures/s", serve_rate), ("Data, pictures/s", data_rate)]:
        figures = {w: [] for w in given.workers}
        for _ in range(given.rounds):  # interleaved, since other programs may use the machine
            for workers in given.workers:
                figures[workers].append(rate(workers, requests))
        for workers, values in figures.items():
            ratio = statistics.median(v / f for v, f in zip(values, figures[given.workers[0]]))
            print(f"{name}: {workers} worker{'s'[:workers != 1]} {statistics.median(values):7.1f} "
                  f"({min(values):.1f} to {max(values):.1f}), {ratio:.2f} times as the median of the rounds", flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
