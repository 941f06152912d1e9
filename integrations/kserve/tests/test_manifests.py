"""The manifests by schema, and against the program that they start: nothing here needs a cluster or a container engine.

$ONCILLA_SERVER is the program. Kubernetes' own schemas come with the package kubernetes-validate, those of KServe's two
resources are ours, in ../schemas."""
import copy
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import jsonschema
import kubernetes_validate
import pytest
import yaml

HERE = pathlib.Path(__file__).resolve().parents[1]
ROOT = HERE.parents[1]
PROGRAM = pathlib.Path(os.environ.get("ONCILLA_SERVER", ROOT / "build/release/oncilla_server")).resolve()
KUBERNETES = "1.30"


def documents(name):
    return [d for d in yaml.safe_load_all((HERE / name).read_text()) if d]


def schema(name):
    return json.loads((HERE / "schemas" / name).read_text())


def as_deployment(container):
    """A container of KServe's runtime as Kubernetes validates it."""
    deployment = copy.deepcopy(documents("deployment.yaml")[0])
    pod = deployment["spec"]["template"]["spec"]
    pod["containers"], pod["volumes"] = [container], []
    return deployment


RUNTIME, = documents("serving-runtime.yaml")
SERVICE, = documents("inference-service.yaml")
DEPLOYMENT, ENTRY = documents("deployment.yaml")
CONTAINERS = [RUNTIME["spec"]["containers"][0], DEPLOYMENT["spec"]["template"]["spec"]["containers"][0]]


def flags(arguments):
    """{"--http": "8080", ..} of both ways to write them."""
    found, waiting = {}, None
    for argument in arguments:
        if argument.startswith("--"):
            name, equals, value = argument.partition("=")
            found[name], waiting = (value, None) if equals else ("", name)
        elif waiting:
            found[waiting], waiting = argument, None
    return found


def instructions(name):
    """The instructions of the container file, lines that go on joined."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", (HERE / name).read_text(), flags=re.M))
    return [line.split(None, 1) for line in text.splitlines() if line.strip()]


def container_file(instruction):
    return [rest for name, rest in instructions("Containerfile") if name == instruction]


def test_kubernetes_accepts_them():
    for document in (DEPLOYMENT, ENTRY, as_deployment(RUNTIME["spec"]["containers"][0])):
        kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_kserve_accepts_them():
    jsonschema.validate(RUNTIME, schema("serving_runtime.json"))
    jsonschema.validate(SERVICE, schema("inference_service.json"))


def test_the_schemas_refuse_what_is_wrong():
    wrong = copy.deepcopy(RUNTIME)
    wrong["spec"]["supportedModelFormats"][0]["version"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema("serving_runtime.json"))
    wrong = copy.deepcopy(SERVICE)
    wrong["spec"]["predictor"]["model"]["storage_uri"] = "pvc://x"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema("inference_service.json"))
    wrong = copy.deepcopy(DEPLOYMENT)
    wrong["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["prot"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


@pytest.mark.parametrize("arguments", [*(c["args"] for c in CONTAINERS), json.loads(container_file("CMD")[0])],
                         ids=["serving-runtime", "deployment", "Containerfile"])
def test_the_program_has_the_flags(arguments, tmp_path):
    known = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    given = flags(arguments)
    assert given and arguments[0] == "/mnt/models"
    for name in given:
        assert re.search(rf"{re.escape(name)}\b", known), f"oncilla serve has no {name}"
    # The program itself must accept the values: it starts as far as binding its ports.
    values = [a.replace("/mnt/models", str(tmp_path)) for a in arguments]
    shown = subprocess.run([PROGRAM, *values, "--help"], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0


def test_ports_agree():
    exposed = {int(port) for port in container_file("EXPOSE")[0].split()}
    command = flags(json.loads(container_file("CMD")[0]))
    for given in (command, *(flags(c["args"]) for c in CONTAINERS)):
        assert {int(given[name]) for name in ("--http", "--grpc", "--metrics")} == exposed
        assert given["--host"] == "0.0.0.0"  # otherwise the pod cannot be reached
    ports = {p["name"]: p["containerPort"] for p in CONTAINERS[1]["ports"]}
    given = flags(CONTAINERS[1]["args"])
    assert ports == {name: int(given[f"--{name}"]) for name in ("http", "grpc", "metrics")}
    assert {p["targetPort"] for p in ENTRY["spec"]["ports"]} == set(ports)
    assert RUNTIME["spec"]["annotations"]["prometheus.kserve.io/port"] == given["--metrics"]
    assert DEPLOYMENT["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == given["--metrics"]
    assert SERVICE["spec"]["predictor"]["model"]["ports"][0]["containerPort"] == int(given["--http"])
    for container in CONTAINERS:
        for probe in ("readinessProbe", "livenessProbe"):
            port = container[probe]["httpGet"]["port"]
            assert ports.get(port, port) == int(given["--http"])


def test_probes_are_calls_of_the_server():
    routes = (ROOT / "docs/serving.md").read_text()
    for container in CONTAINERS:
        for probe in ("readinessProbe", "livenessProbe"):
            assert f"`{container[probe]['httpGet']['path']}`" in routes or container[probe]["httpGet"]["path"] in routes


def test_names_and_times_agree():
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert DEPLOYMENT["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert ENTRY["spec"]["selector"].items() <= labels.items()
    assert SERVICE["spec"]["predictor"]["model"]["runtime"] == RUNTIME["metadata"]["name"]
    formats = {(f["name"], f.get("version")) for f in RUNTIME["spec"]["supportedModelFormats"]}
    wanted = SERVICE["spec"]["predictor"]["model"]["modelFormat"]
    assert (wanted["name"], wanted["version"]) in formats
    assert CONTAINERS[0]["image"] == CONTAINERS[1]["image"]
    given = flags(CONTAINERS[1]["args"])
    grace = DEPLOYMENT["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert int(given["--drain-delay"]) + int(given["--drain"]) < grace
    # The pod is taken from the Service before requests are refused.
    readiness = CONTAINERS[1]["readinessProbe"]
    assert int(given["--drain-delay"]) >= readiness["periodSeconds"]


def test_container_file_names_what_is_there():
    for source in container_file("COPY"):
        names = shlex.split(source)
        if not names[0].startswith("--from"):
            assert all((ROOT / name).exists() for name in names[:-1])
    assert json.loads(container_file("ENTRYPOINT")[0]) == ["oncilla", "serve"]
    build = " ".join(container_file("RUN"))
    options = set(re.findall(r"option\((ONCILLA_\w+)", (ROOT / "CMakeLists.txt").read_text()))
    assert set(re.findall(r"-D(ONCILLA_\w+)=", build)) <= options
    # The user of the image is that of the manifests.
    assert container_file("USER") == ["1000"]
    assert CONTAINERS[0]["securityContext"]["runAsUser"] == 1000
    assert DEPLOYMENT["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == 1000


def test_the_copied_tree_can_be_configured(tmp_path):
    """What the container file copies is all that its CMake command needs, as far as configuring goes."""
    for source in container_file("COPY"):
        names = shlex.split(source)
        if names[0].startswith("--from"):
            continue
        for name in names[:-1]:
            at = tmp_path / name
            at.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, at, **(
                {"dirs_exist_ok": True} if (ROOT / name).is_dir() else {}))
    command, = (c.split("&&")[0] for c in container_file("RUN") if c.startswith("cmake"))
    words = [str(tmp_path) if w == "." else str(tmp_path / "build") if w == "/build" else w for w in shlex.split(command)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # Ninja must find every source.
    asked = subprocess.run(["ninja", "-C", str(tmp_path / "build"), "-n", "oncilla_server", "oncilla_program"], capture_output=True,
                           text=True, timeout=300)
    assert asked.returncode == 0, asked.stdout


def test_packages_of_the_container_file():
    """awk picks the packages of the build and of the server, and nothing that a checkout has only for tests."""
    program = re.search(r"awk '([^']*)'", " ".join(container_file("RUN")))[1]
    picked = subprocess.run(["awk", program, ROOT / "tools/packages.txt"], capture_output=True, text=True, timeout=60, check=True)
    names = picked.stdout.split()
    assert {"cmake", "libabsl-dev", "libgrpc++-dev", "libcpp-httplib-dev", "libyaml-cpp-dev"} <= set(names)
    assert not {"libgtest-dev", "python3-numpy", "oclgrind"} & set(names)
    assert all(re.fullmatch(r"[a-z0-9.+-]+", name) for name in names)
