"""The native part of Leadline."""

import os
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["IostatRecording", "ParseError", "__version__"]

__version__: str

class ParseError(ValueError):
    """Input that cannot be read, told in four parts."""

    where: str
    found: str
    expected: str
    advice: str

@final
class IostatRecording:
    """A recording of iostat, read whole."""

    @staticmethod
    def open(path: str | os.PathLike[str], name: str, wanted: Sequence[str] | None = None) -> IostatRecording: ...
    @staticmethod
    def from_bytes(data: bytes, name: str, wanted: Sequence[str] | None = None) -> IostatRecording: ...
    @property
    def report_count(self) -> int: ...
    @property
    def stamps(self) -> list[str]: ...
    @property
    def runs(self) -> list[tuple[int, str, bool]]: ...
    @property
    def cpu(self) -> list[tuple[str, NDArray[np.floating[Any]]]]: ...
    @property
    def devices(self) -> list[str]: ...
    @property
    def disks(self) -> list[tuple[str, NDArray[np.floating[Any]]]]: ...
    @property
    def notes(self) -> list[tuple[str, str, int]]: ...
