"""Serve on a cluster of two nodes: answers as without Ray, wrong inputs, and replicas that are killed in mid-load."""
import concurrent.futures
import json
import os
import re
import signal
import time
import urllib.error
import urllib.request

import numpy as np
import oncilla
import oncilla_ray
import pytest
import ray
from conftest import QUICKSTART, ROOT, pictures, same
from ray import serve


@pytest.fixture
def run(serving):
    """serve.run under a name of its own, which ends with the test."""
    names = []

    def start(application, route=None):
        names.append(f"app{len(names)}_{time.time_ns()}")
        return serve.run(application, name=names[-1], route_prefix=route)

    yield start
    for name in names:
        serve.delete(name)


def pids(handle, count, seconds=60):
    """The processes of a deployment's replicas, as they answer."""
    found, deadline = set(), time.time() + seconds
    while len(found) < count and time.time() < deadline:
        found.add(handle.describe.remote().result(timeout_s=30)["pid"])
    assert len(found) == count
    return found


def test_answers_are_the_direct_ones(run, direct):
    handle = run(oncilla_ray.deployment(QUICKSTART, num_replicas=2, num_cpus=1, max_batch_size=8, batch_wait_timeout_s=0.02))
    client = oncilla_ray.Client(handle)
    images = pictures(12)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda image: client(image=image), images))
    for image, answer in zip(images, answers):
        same(answer, direct(image=image))
    assert len(pids(handle, 2)) == 2


def test_wrong_inputs_are_told_and_kill_nobody(run, small):
    handle = run(oncilla_ray.deployment(small["row"], max_batch_size=4, batch_wait_timeout_s=0.05))
    client = oncilla_ray.Client(handle, timeout=30)
    before = pids(handle, 1)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(client, i=np.array([i], np.int64)) for i in (0, 99, 2, 3)]
        failures = [f.exception() for f in futures]
    assert [bool(f) for f in failures] == [False, True, False, False]
    assert isinstance(failures[1], oncilla.Error) and "99" in str(failures[1])
    with pytest.raises(oncilla.InvalidArgumentError, match="no input 'j'"):
        client(j=[1])
    with pytest.raises(oncilla.InvalidArgumentError, match="int32, and the model takes int64"):
        client(i=np.zeros(1, np.int32))
    # More rows than a batch are a batch by themselves.
    assert client(i=np.arange(9) % 4)["y"].shape == (9,)
    assert pids(handle, 1) == before


def test_a_killed_replica_costs_no_request(run, direct):
    """One of two replicas is killed with SIGKILL under load; each request must get the right result."""
    handle = run(oncilla_ray.deployment(QUICKSTART, num_replicas=2, num_cpus=1, max_batch_size=4, health_check_period_s=1))
    client = oncilla_ray.Client(handle, timeout=60)
    victim = sorted(pids(handle, 2))[0]
    images = pictures(80)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(client, image=image) for image in images]
        while sum(f.done() for f in futures) < 10:
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)
        answers = [f.result(timeout=90) for f in futures]
    for image, answer in zip(images[::8], answers[::8]):
        same(answer, direct(image=image))
    assert all(answer["logits"].shape == (1, 1000) for answer in answers)
    # Serve must replace it.
    deadline = time.time() + 60
    while time.time() < deadline and len({handle.describe.remote().result(timeout_s=60)["pid"] for _ in range(20)}) < 2:
        time.sleep(0.5)
    assert victim not in pids(handle, 2)


@pytest.mark.slow
def test_what_serve_does_by_itself(run):
    """Requests that the killed replica had accepted fail at their callers: what Client is for."""
    handle = run(oncilla_ray.deployment(QUICKSTART, num_replicas=2, num_cpus=1))
    client = oncilla_ray.Client(handle, timeout=60, retries=0)
    victim = sorted(pids(handle, 2))[0]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(client, image=image) for image in pictures(80)]
        while sum(f.done() for f in futures) < 10:
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)
        failures = [f.exception(timeout=90) for f in futures]
    assert any(failures) and all(isinstance(f, ray.exceptions.RayActorError) for f in failures if f)


@pytest.mark.slow
def test_a_request_that_kills_workers_is_not_repeated_for_ever(run):
    @serve.deployment(max_ongoing_requests=1)
    class Fragile:
        def __call__(self, inputs):
            os.kill(os.getpid(), signal.SIGKILL)

    client = oncilla_ray.Client(run(Fragile.bind()), timeout=60, retries=1)
    with pytest.raises(ray.exceptions.RayActorError):
        client(x=1)


@pytest.mark.slow
def test_deadline(run):
    @serve.deployment
    class Sleeper:
        async def __call__(self, inputs):
            import asyncio

            await asyncio.sleep(30)

    began = time.time()
    with pytest.raises(TimeoutError, match="no answer within 0.5 s"):
        oncilla_ray.Client(run(Sleeper.bind()), timeout=0.5)(x=1)
    assert time.time() - began < 10


@pytest.mark.slow
def test_batch_size_changes_without_new_replicas(run, small):
    application = oncilla_ray.deployment(small["affine"], max_batch_size=2, user_config={"max_batch_size": 8,
                                                                                         "batch_wait_timeout_s": 0.001})
    handle = run(application)
    assert oncilla_ray.Client(handle)(x=[[1, 2, 3]] * 8)["y"].shape == (8, 3)


@pytest.mark.slow
def test_a_model_that_does_not_load_is_told(run, small):
    with pytest.raises(RuntimeError, match="failed"):
        run(oncilla_ray.deployment(small["broken"]))
    failed = [a for a in serve.status().applications.values() if a.status == "DEPLOY_FAILED"]
    assert len(failed) == 1 and "not a model" in failed[0].deployments["oncilla"].message


def test_http(run, serving, direct):
    """JSON through the proxy and a gateway, with a model's replica killed in mid-load."""
    model = oncilla_ray.deployment(QUICKSTART, num_replicas=2, num_cpus=1, max_batch_size=4, health_check_period_s=1)
    run(oncilla_ray.http(model), "/classify")

    def post(body, method="POST"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"{serving}/classify", data=data if method == "POST" else None, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    code, told = post(b"", "GET")
    assert code == 200 and told["inputs"]["image"] == {"dtype": "uint8", "shape": [None, None, None, 3]}
    documented = (ROOT / "docs/ray.md").read_text()
    code, told = post(re.search(r"/classify -d '(.*?)'", documented)[1].encode())
    assert code == 200 and len(told["outputs"]["label"][0]) == 5
    images = [p[:, :8, :8] for p in pictures(40)]
    name, = serve.status().applications
    handle = serve.get_deployment_handle("oncilla", name)
    victim = sorted(pids(handle, 2))[0]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(post, {"inputs": {"image": image.tolist()}}) for image in images]
        while sum(f.done() for f in futures) < 5:
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)
        answers = [f.result(timeout=90) for f in futures]
    assert {code for code, _ in answers} == {200}
    for image, (_, answer) in zip(images[::8], answers[::8]):
        same(answer["outputs"], direct(image=image))
    for body, wanted, text in [(b"{", 400, "JSON"), ({"image": []}, 400, "inputs"), ({"inputs": {"picture": [1]}}, 400, "no input"),
                               ({"inputs": {"image": [[[[1.5, 0, 0]]]]}}, 400, "image")]:
        code, told = post(body)
        assert code == wanted and text in told["error"]
