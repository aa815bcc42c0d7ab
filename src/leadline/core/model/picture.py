"""Pictures that units give with their answers; faces draw them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a picture; ``is_published`` where the points are the source's."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    is_published: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """What people look at: lines over one axis."""

    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
