"""A server in a process of its own, on ports that are free, with the models of models.py."""

import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.request

import pytest

import models

PROGRAM = pathlib.Path(os.environ.get("ONCILLA_SERVER", "build/release/oncilla_server")).resolve()


class Server:
    """The process, its ports and its log."""

    def __init__(self, repository, *arguments, wait=True):
        self.repository = pathlib.Path(repository)
        self.process = subprocess.Popen(
            [PROGRAM, repository, "--http", "0", "--grpc", "0", "--metrics", "0", "--device", "cpu", *arguments],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "GRPC_VERBOSITY": "NONE"})
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.ports = {}
        deadline = time.time() + 60
        while len(self.ports) < 3:
            assert time.time() < deadline and self.process.poll() is None, "".join(self.lines)
            for line in list(self.lines):
                found = re.search(r'"(http|grpc|metrics) on [^"]*:(\d+)"', line)
                if found:
                    self.ports[found[1]] = int(found[2])
            time.sleep(0.01)
        self.http = f"127.0.0.1:{self.ports['http']}"
        self.grpc = f"127.0.0.1:{self.ports['grpc']}"
        self.metrics_url = f"http://127.0.0.1:{self.ports['metrics']}/metrics"
        if wait:
            self.wait_ready()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def wait_ready(self):
        deadline = time.time() + 60
        while time.time() < deadline:
            if self.get("/v2/health/ready")[0] == 200:
                return
            time.sleep(0.02)
        raise AssertionError("".join(self.lines))

    def call(self, path, body=None, headers=None, timeout=30):
        """(status, headers, bytes) of a plain HTTP call."""
        request = urllib.request.Request(f"http://{self.http}{path}", data=body, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def get(self, path, headers=None):
        status, _, body = self.call(path, headers=headers)
        return status, json.loads(body) if body else None

    def post(self, path, value, headers=None):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        status, _, answer = self.call(path, body, headers)
        return status, json.loads(answer) if answer else None

    def state(self, name, version):
        for entry in self.post("/v2/repository/index", {})[1]:
            if entry["name"] == name and entry.get("version", "") == version:
                return entry
        return None

    def await_state(self, name, version, state, seconds=30):
        deadline = time.time() + seconds
        while time.time() < deadline:
            entry = self.state(name, version)
            if entry and entry["state"] == state:
                return entry
            time.sleep(0.02)
        raise AssertionError(f"{name}/{version} is not {state}: {self.state(name, version)}")

    def metric(self, pattern):
        """The sum of the lines of the metrics that match."""
        with urllib.request.urlopen(self.metrics_url, timeout=30) as answer:
            text = answer.read().decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if re.match(pattern, line) and not line.startswith("#"))

    def events(self):
        found = []
        for line in list(self.lines):
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
        return found

    def await_events(self, match, seconds=10):
        """Those of the log for which match(event) holds, at least one: lines are written after answers are sent."""
        deadline = time.time() + seconds
        while not (found := [event for event in self.events() if match(event)]):
            assert time.time() < deadline, "".join(self.lines)
            time.sleep(0.01)
        return found

    def stop(self, seconds=60):
        """Ends the server as a supervisor does; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self.reader.join(5)


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    return models.repository(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def server(repository):
    """One server for all tests that do not change its state; it must survive them and exit normally."""
    made = Server(repository, "--shared-memory", "--max-request-mib", "16")
    yield made
    assert made.process.poll() is None, "the server died:\n" + "".join(made.lines[-50:])
    assert made.stop() == 0, "".join(made.lines[-200:])


@pytest.fixture
def start(tmp_path):
    """Starts servers of a test's own."""
    started = []

    def make(repository, *arguments, **options):
        started.append(Server(repository, *arguments, **options))
        return started[-1]

    yield make
    for one in started:
        assert one.stop() == 0, "".join(one.lines[-50:])
