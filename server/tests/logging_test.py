"""Settings of the log, by tritonclient's calls, and what they change in the lines that the server writes."""

import subprocess

import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

import models
from conftest import PROGRAM

BEGIN = {"log_error": True, "log_warning": True, "log_info": True, "log_verbose_level": 0, "log_file": "", "log_format": "ISO8601"}


def told(client, settings):
    """A reply of either client as a dictionary."""
    if isinstance(client, http.InferenceServerClient):
        return settings
    return {name: getattr(value, value.WhichOneof("parameter_choice")) for name, value in settings.settings.items()}


@pytest.fixture
def repository_of_two(tmp_path):
    models.affine(tmp_path, "a")
    models.broken(tmp_path, "b")
    return tmp_path


@pytest.fixture(params=[http, grpc])
def served(request, repository_of_two, start):
    server = start(repository_of_two, "--no-load")
    with request.param.InferenceServerClient(server.http if request.param is http else server.grpc) as client:
        yield server, client


def events_of(server, action):
    """What the log says of an action, and the action's own line in the access log, after which nothing of it comes."""
    before = len(server.events())
    action()
    server.get(f"/v2/models/fence{before}")
    server.await_events(lambda event: event.get("target") == f"/v2/models/fence{before}")
    return [(event["level"], event["event"]) for event in server.events()[before:] if "event" in event]


def reload(server):
    def action():
        server.post("/v2/repository/models/a/unload", {})
        server.await_state("a", "1", "UNAVAILABLE")
        assert server.post("/v2/repository/models/a/load", {})[0] == 200
    return action


def fail(server):
    def action():
        assert server.post("/v2/repository/models/b/load", {})[0] == 500
    return action


def test_settings_choose_the_events(served):
    server, client = served
    assert server.post("/v2/repository/models/a/load", {})[0] == 200
    assert told(client, client.get_log_settings()) == BEGIN
    assert {("info", "unloaded"), ("info", "loaded")} == set(events_of(server, reload(server)))
    assert events_of(server, fail(server)) == [("error", "failed")]
    assert told(client, client.update_log_settings({"log_info": False})) == {**BEGIN, "log_info": False}
    assert events_of(server, reload(server)) == []
    assert events_of(server, fail(server)) == [("error", "failed")]
    quiet = {**BEGIN, "log_info": False, "log_error": False}
    assert told(client, client.update_log_settings({"log_error": False})) == quiet
    assert events_of(server, fail(server)) == []
    # What the engine has to tell of a load comes beside the rest.
    loud = told(client, client.update_log_settings({"log_verbose_level": 1, "log_info": True, "log_error": True}))
    assert loud == {**BEGIN, "log_verbose_level": 1}
    assert {("info", "unloaded"), ("info", "loaded"), ("verbose", "engine")} == set(events_of(server, reload(server)))
    assert "memory limit" in str([event.get("reason") for event in server.events() if event.get("event") == "engine"])
    # Without a value: the initial setting; a reply may be sent back unchanged.
    assert told(client, client.update_log_settings({"log_verbose_level": None, "log_info": None})) == BEGIN
    assert told(client, client.update_log_settings(BEGIN)) == BEGIN


def test_wrong_settings_change_nothing(served):
    server, client = served
    for wrong, why in (({"log_file": "/tmp/x"}, "standard error"), ({"log_format": "default"}, "lines are JSON"),
                       ({"log_colour": True}, "there is no setting 'log_colour'")):
        with pytest.raises(InferenceServerException, match=why):
            client.update_log_settings({"log_error": False, **wrong})
    for wrong in ({"log_info": 1}, {"log_info": "false"}, {"log_verbose_level": -1}, {"log_verbose_level": 1 << 32},
                  {"log_verbose_level": True}, {"log_error": []}, {"log_format": True}, [], "x"):
        status, answer = server.post("/v2/logging", wrong)
        assert status == 400 and answer["error"], wrong
    assert told(client, client.get_log_settings()) == BEGIN
    assert "logging" in server.get("/v2")[1]["extensions"]


def test_verbose_from_the_start(repository_of_two, start):
    server = start(repository_of_two, "--log-verbose", "1")
    with http.InferenceServerClient(server.http) as client:
        assert client.get_log_settings() == {**BEGIN, "log_verbose_level": 1}
        client.update_log_settings({"log_verbose_level": 0})
        assert client.update_log_settings({"log_verbose_level": None}) == {**BEGIN, "log_verbose_level": 1}
    assert any(event.get("level") == "verbose" for event in server.events())
    out = subprocess.run([PROGRAM, repository_of_two, "--log-verbose", "x"], capture_output=True, text=True)
    assert out.returncode == 2 and "log-verbose" in out.stderr
