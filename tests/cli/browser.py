"""A browser without a screen, Debian's chromium-headless-shell, for tests of pages."""

import os
import shutil
import subprocess

BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")


def browse(url, folder, *flags):
    """Runs the page's scripts for some seconds of virtual time and returns what --dump-dom in `flags` prints. Virtual time
    waits for the page however busy the machine is, which a limit in real time does not. `folder` takes the profile."""
    out = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         f"--user-data-dir={folder}/profile", "--virtual-time-budget=8000", *flags, url],
        capture_output=True, text=True, timeout=300, env={**os.environ, "HOME": str(folder)})
    assert out.returncode == 0, out.stderr
    return out.stdout
