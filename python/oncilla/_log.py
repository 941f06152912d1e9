"""Messages of the library in Python's logging, as the logger "oncilla"."""
from __future__ import annotations

import logging

logger = logging.getLogger("oncilla")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def log(level: int, message: bytes) -> None:
    """Called by the extension module; warnings reach standard error where logging is not configured."""
    logger.log(_LEVELS[max(0, min(level, len(_LEVELS) - 1))], "%s", message.decode("utf-8", "backslashreplace"))


def native_level() -> int:
    """The logger's lowest effective level, by the library's numbers."""
    wanted = logger.getEffectiveLevel()
    return next((i for i, level in enumerate(_LEVELS) if level >= wanted), len(_LEVELS) - 1)
