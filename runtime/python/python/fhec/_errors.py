"""The exceptions of this package.

Every one has a `code` that stays the same whatever the words are, the `facts` as a dictionary, and a `remedy`: the same
three that the commands have.
"""

from __future__ import annotations

import warnings
from typing import Any


class FhecError(Exception):
    """What every exception of this package is.

    Attributes:
        what: what is wrong.
        code: a short name that stays the same whatever the words are.
        remedy: what to do about it.
        facts: names and numbers that belong to it.
    """

    def __init__(self, what: str, code: str = "error", remedy: str = "", facts: dict[str, Any] | None = None) -> None:
        super().__init__(what, code, remedy, facts or {})
        self.what = what
        self.code = code
        self.remedy = remedy
        self.facts = facts or {}

    def __str__(self) -> str:
        return f"{self.what}\n  help: {self.remedy}" if self.remedy else self.what


class ModelError(FhecError):
    """The model cannot be encrypted as it is, or not as it was asked for."""


class UsageError(FhecError, ValueError):
    """An argument is wrong, or a call comes at a time when it makes no sense."""


class DataError(FhecError, ValueError):
    """Samples or labels do not fit: their type, their shape, numbers that are none."""


class FileError(FhecError):
    """A file cannot be read or written, is damaged, or is of another kind."""


class MismatchError(FhecError):
    """Program, keys and ciphertexts do not belong together."""


class ResourceError(FhecError):
    """Memory, threads or randomness do not suffice."""


class ServiceError(FhecError):
    """A server cannot be reached, or answers with an error."""


class InternalError(FhecError, RuntimeError):
    """Something only the makers of this package can repair."""


class DoubtWarning(UserWarning):
    """Scores that are not to be trusted, or a program that gives such scores on its own calibration inputs."""


class ScoresWarning(UserWarning):
    """Scores were asked for: they are decrypted values, which must not reach the server."""


def secret(text: str, depth: int = 1) -> None:
    """Warns of what is handed out; the place that is named is `depth` calls above."""
    warnings.warn(text, ScoresWarning, stacklevel=depth + 1)


def doubt(text: str, depth: int = 1) -> None:
    """Warns; the place that is named is `depth` calls above."""
    warnings.warn(text, DoubtWarning, stacklevel=depth + 1)
