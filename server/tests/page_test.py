"""The status page in a browser without a screen, Debian's chromium-headless-shell."""

import html
import pathlib
import re
import struct
import sys
import time

import numpy as np
import pytest
import tritonclient.http as http

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "cli"))
from browser import BROWSER, browse


@pytest.mark.skipif(BROWSER is None, reason="chromium-headless-shell is not installed")
def test_the_page_shows_what_is_served(server, tmp_path):
    with http.InferenceServerClient(server.http) as client:
        x = http.InferInput("x", [1, 3], "FP32")
        x.set_data_from_numpy(np.ones((1, 3), np.float32))
        client.infer("affine", [x])
    deadline = time.time() + 60  # the page draws lines between samples, which a server that is new has not two of
    while len(server.get("/status.json")[1]["memory"]) < 2:
        assert time.time() < deadline
        time.sleep(0.2)
    page = browse(f"http://{server.http}/", tmp_path, "--dump-dom")
    shown = html.unescape(re.sub(r"<script.*?</script>", "", page, flags=re.S))
    assert re.search(r'id="ready" class="state ok">ready<', shown)
    row = re.search(r"<tr><td>affine</td>.*?</tr>", shown, re.S)[0]
    assert "READY" in row and re.search(r"\d+ on CPU:0", row) and "\u2264" in row  # a latency
    broken = re.search(r"<tr><td>broken</td>.*?</tr>", shown, re.S)[0]
    assert "UNAVAILABLE" in broken and "not a model" in broken
    assert re.search(r"<tr><td>CPU:0", shown)
    assert "<polyline" in shown and "process: " in shown  # memory over time
    assert 'id="problem" class="bad" role="status"></p>' in shown


@pytest.mark.skipif(BROWSER is None, reason="chromium-headless-shell is not installed")
def test_a_picture_of_the_page(server, tmp_path):
    picture = tmp_path / "page.png"
    browse(f"http://{server.http}/", tmp_path, f"--screenshot={picture}", "--window-size=1200,1600")
    data = picture.read_bytes()
    assert data[1:4] == b"PNG" and struct.unpack(">II", data[16:24]) == (1200, 1600) and len(data) > 20000
