"""What a conversion did: `network.conversion`, and what it could not do, in words."""

from __future__ import annotations

from dataclasses import dataclass, field


class ConversionWarning(UserWarning):
    """The converted network still has something that cannot be encrypted, or that could not be looked at."""


class ConversionError(ValueError):
    """There is nothing to convert, or the network cannot be looked into."""


@dataclass(frozen=True)
class Replaced:
    """One thing that became another."""

    name: str
    what: str
    by: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what} -> {self.by}"


@dataclass(frozen=True)
class Left:
    """One thing that stays as it is although it cannot be encrypted there, and what to do about it."""

    name: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what}: {self.remedy}"


@dataclass
class Conversion:
    """The account of one call of `convert`."""

    replaced: list[Replaced] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    untraced: str | None = None
    """Why functional calls could not be looked for, where that is so."""

    def __str__(self) -> str:
        lines = ["replaced:", *(f"  {entry}" for entry in self.replaced)]
        if self.left:
            lines += ["left:", *(f"  {entry}" for entry in self.left)]
        if self.untraced:
            lines += [f"functional calls were not looked for: {self.untraced}"]
        return "\n".join(lines)
