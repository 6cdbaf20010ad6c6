"""Progress of long calls: nothing, a bar of tqdm, a line on standard error, or a function of the user's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO, Union

Progress = Union[bool, Callable[[Union[float, None], str], object], None]


def start(progress: Progress) -> Callable[[float | None, str], object] | None:
    """What to tell the progress to, if anything."""
    if progress is None or progress is False:
        return None
    if progress is True:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            return Line()
        return Bar(tqdm(total=100, bar_format="{desc:32.32} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"))
    if callable(progress):
        return progress
    raise TypeError(f"progress is True, False, None or a function of (fraction, text), not {type(progress).__name__}")


def end(shown: object) -> None:
    """Ends what `start` began."""
    if isinstance(shown, (Bar, Line)):
        shown.close()


class Bar:
    """A bar of tqdm, in per cent."""

    def __init__(self, bar: object) -> None:
        self._bar = bar

    def __call__(self, fraction: float | None, text: str) -> None:
        bar = self._bar
        bar.set_description_str(text, refresh=False)  # type: ignore[attr-defined]
        bar.n = round(100 * fraction, 1) if fraction is not None else bar.n  # type: ignore[attr-defined]
        bar.refresh()  # type: ignore[attr-defined]

    def close(self) -> None:
        self._bar.close()  # type: ignore[attr-defined]


class Line:
    """One line on standard error that is written anew on a terminal, and a line for every fifth of the way elsewhere."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._last: object = None

    def __call__(self, fraction: float | None, text: str) -> None:
        line = text if fraction is None else f"{100 * fraction:3.0f} % {text}"
        step: object = text if fraction is None else int(5 * fraction)
        if self._is_terminal:
            self._stream.write(f"\r\x1b[K{line}")
        elif step != self._last:
            self._stream.write(f"{line}\n")
        self._last = step
        self._stream.flush()

    def close(self) -> None:
        if self._is_terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
