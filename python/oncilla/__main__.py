"""The oncilla program: `python -m oncilla COMMAND ..`, and `oncilla` once the package is installed."""
from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Runs the command line of this process and returns the exit code."""
    from . import _oncilla

    sys.stdout.flush()
    # As a program of its own has them: Python ignores SIGPIPE, and keeps SIGINT for itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return _oncilla.run_program([b"oncilla", *(os.fsencode(argument) for argument in sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main())
