#!/usr/bin/env python3
"""A server under load for a while: no answer may be lost or wrong, and its memory may not grow. Meanwhile models are
loaded and unloaded, new versions come by polling, and clients go away in mid-request.
    server/tests/soak.py [--minutes 10] [--clients 6]
The server is ONCILLA_SERVER (build/release/oncilla_server unless set). Memory is measured when a tenth of the time is
over and at the end, each as the median of its samples; more than 2 % between them fails."""

import argparse
import pathlib
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time

import numpy as np
import psutil
import tritonclient.grpc as grpc
import tritonclient.http as http

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models  # noqa: E402
from conftest import Server  # noqa: E402

MOST_GROWTH = 0.02


class Client(threading.Thread):
    """Sends requests of changing models and sizes, one after the other, until the end."""

    def __init__(self, server, number, end):
        super().__init__()
        self.server, self.number, self.end = server, number, end
        self.answers, self.failures = 0, []

    def run(self):
        kind = (http, grpc)[self.number % 2]
        random = np.random.default_rng(self.number)
        with kind.InferenceServerClient(self.server.http if kind is http else self.server.grpc) as client:
            while time.time() < self.end:
                try:
                    self.once(kind, client, random)
                    self.answers += 1
                except Exception as failure:  # noqa: BLE001: any is one too many
                    self.failures.append(repr(failure))

    def once(self, kind, client, random):
        model = ("affine", "batched")[random.integers(2)]
        # A few sizes: plans are kept for 32 shapes.
        x = random.standard_normal((int(random.integers(1, 9)), 3)).astype(np.float32)
        given = kind.InferInput("x", x.shape, "FP32")
        given.set_data_from_numpy(x)
        y = client.infer(model, [given]).as_numpy("y")
        if not np.array_equal(y, x * np.float32(2) + np.float32(1)):
            raise AssertionError(f"wrong answer of {model} for {x.shape}")


class Changes(threading.Thread):
    """Changes the repository until the end: loads and unloads on request, and versions that come and go."""

    def __init__(self, server, folder, end):
        super().__init__()
        self.server, self.folder, self.end = server, folder, end
        self.loads, self.versions, self.gone, self.failures = 0, 0, 0, []

    def run(self):
        try:
            with http.InferenceServerClient(self.server.http) as client, \
                    grpc.InferenceServerClient(self.server.grpc) as rpc:
                while time.time() < self.end:
                    self.once((client, rpc)[self.loads % 2])
        except Exception as failure:  # noqa: BLE001: any is one too many
            self.failures.append(repr(failure))

    def once(self, client):
        client.unload_model("ratio")
        client.load_model("ratio")
        assert client.is_model_ready("ratio")
        self.loads += 1
        self.leave()
        if self.loads % 10 == 0:
            version = 2 + self.versions % 2
            models.affine(self.folder, "affine", version)
            if self.versions > 0:
                shutil.rmtree(self.folder / "affine" / str(5 - version))
            self.versions += 1
        time.sleep(0.2)

    def leave(self):
        """A client that sends half a request, and one that does not wait for its answer."""
        host, port = self.server.http.split(":")
        for length in (1000, 2):
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                connection.sendall(b"POST /v2/models/batched/infer HTTP/1.1\r\nContent-Length: %d\r\n\r\n{}" % length)
            self.gone += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=6)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = models.repository(folder)
        server = Server(root, "--access-log", "off", "--poll", "1")
        process = psutil.Process(server.process.pid)
        begin, end = time.time(), time.time() + 60 * arguments.minutes
        clients = [Client(server, number, end) for number in range(arguments.clients)]
        for client in clients:
            client.start()
        changes = Changes(server, root, end)
        changes.start()
        samples = []
        while time.time() < end:
            samples.append(((time.time() - begin) / (end - begin), process.memory_info().rss))
            time.sleep(min(1, (end - begin) / 100))
        for client in clients:
            client.join()
        changes.join()
        code = server.stop()
    early = statistics.median(rss for at, rss in samples if 0.1 <= at < 0.2)
    late = statistics.median(rss for at, rss in samples if at >= 0.9)
    failures = [failure for client in [*clients, changes] for failure in client.failures]
    answers = sum(client.answers for client in clients)
    growth = late / early - 1
    for failure in failures[:5]:
        print(failure)
    print(f"{changes.loads} loads and unloads, {changes.versions} new versions, {changes.gone} clients that went away")
    print(f"{answers} answers, {len(failures)} failures, exit code {code}, memory {early / 2**20:.1f} MiB at first and "
          f"{late / 2**20:.1f} MiB at the end ({100 * growth:+.1f} %)")
    return 0 if answers and not failures and code == 0 and growth <= MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
