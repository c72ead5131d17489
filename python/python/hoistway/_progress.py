"""Progress of a comparison or a search."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

Tell = Callable[[float, float | None], None]
"""A function that gets the virtual seconds that have passed in all runs together, and the expected number, if known."""

Counted = Callable[[int, int], None]
"""A function that gets the number of finished runs, and the minimum number in total."""

PATIENCE_SECONDS = 2.0
"""Work that ends sooner shows no progress."""


class Progress:
    """Shows progress: with tqdm, which supports notebooks, if it is installed, and otherwise in a line of the terminal."""

    def __init__(self, of: str = "virtual time", unit: str = "s", digits: int = 1) -> None:
        self._of = of
        self._unit = unit
        self._digits = digits
        self._begin = time.monotonic()
        self._bar: Any = None
        self._is_line = False

    def __call__(self, reached: float, expected: float | None) -> None:
        if time.monotonic() - self._begin < PATIENCE_SECONDS:
            return
        if self._bar is None and not self._is_line:
            self._show(expected)
        if self._bar is not None:
            self._bar.total = expected
            self._bar.n = min(reached, expected) if expected else reached
            self._bar.refresh()
        else:
            share = (
                f"{min(100 * reached / expected, 100):.0f} % of the {self._of}"
                if expected
                else f"{reached:.{self._digits}f} {self._unit} of {self._of}"
            )
            print(f"\r{share}", end="", file=sys.stderr, flush=True)

    def _show(self, expected: float | None) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._is_line = True
            return
        self._bar = tqdm(
            total=expected,
            unit=self._unit,
            desc=self._of,
            leave=False,
            bar_format=f"{{l_bar}}{{bar}}| {{n:.{self._digits}f}}/{{total:.{self._digits}f}} {self._unit}" if expected else None,
        )

    def close(self) -> None:
        """Removes the display."""
        if self._bar is not None:
            self._bar.close()
        if self._is_line:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def chosen(progress: bool | Callable[..., None] | None, shown: Progress) -> Callable[..., None] | None:
    """Selects the display. None: progress is shown in a terminal and in a notebook."""
    if progress is None:
        progress = sys.stderr.isatty() or "ipykernel" in sys.modules
    if isinstance(progress, bool):
        return shown if progress else None
    return progress

