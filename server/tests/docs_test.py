"""The first commands of docs/serving.md, run as they are."""

import json
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_first_lines(tmp_path, start):
    text = re.search(r"```\n(.*?)```", (ROOT / "docs/serving.md").read_text(), re.S)[1]
    before, after = text.split("oncilla serve models", 1)
    (tmp_path / "testdata").symlink_to(ROOT / "testdata")
    subprocess.run(["bash", "-ec", before], cwd=tmp_path, check=True)
    server = start(tmp_path / "models")
    calls = ["curl " + call for call in after.split("\ncurl ")[1:]]
    answers = [json.loads(subprocess.run(["bash", "-c", call.replace("localhost:8000", server.http)], capture_output=True,
                                         check=True, timeout=60).stdout) for call in calls]
    assert [i["name"] for i in answers[0]["inputs"]] == ["image"]
    assert answers[1]["outputs"][0]["name"] == "label" and len(answers[1]["outputs"][0]["data"]) == 5
