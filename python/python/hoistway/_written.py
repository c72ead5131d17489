"""Files that are written atomically."""

from __future__ import annotations

import os


def write(file: str | os.PathLike[str], text: str) -> None:
    """Writes a text to a file atomically.

    Raises:
        OSError: The file cannot be written.
    """
    name = os.path.realpath(file)
    beside = os.path.join(os.path.dirname(name), f".{os.path.basename(name)}.{os.getpid()}.part")
    try:
        with open(beside, "w", encoding="utf-8") as out:
            out.write(text)
        os.replace(beside, name)
    finally:
        if os.path.exists(beside):
            os.remove(beside)
