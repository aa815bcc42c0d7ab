"""What is known of every unit of a kind without importing it: an index in the user's cache folder that checks itself.

The index of a kind is made by importing its units once. It counts for as long as no source file of Leadline has
changed, come or gone: its key is made of every file's name, size and time. Nothing is lost when it is removed.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from leadline import __version__
from leadline.core.contracts.discovery import load_units, unit_modules

_PACKAGE = Path(__file__).resolve().parents[2]
_ENDINGS = (".py", ".csv")
_FORM = 3  # of the file; another one is made anew


def unit_index(kind: str, describe: Callable[[ModuleType], Any]) -> dict[str, Any]:
    """Unit name -> what `describe` says of it, sorted by name.

    Args:
        kind: one of `leadline.core.contracts.discovery.KINDS`.
        describe: what is to be known, as JSON can hold it; always the same for a kind.
    """
    path = cache_folder() / f"{kind}s.json"
    key = f"{_FORM} {__version__} {sys.version_info[:3]} {_sources_key()}"
    known = _load(path, key)
    if known is None or list(known) != list(unit_modules(kind)):
        known = {name: describe(module) for name, module in load_units(kind).items()}
        _save(path, key, known)
    return known


def cache_folder() -> Path:
    """The user's folder for what can be made again, of this installation."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - never raises
    return Path(base, "leadline", "units", f"{zlib.crc32(os.fsencode(_PACKAGE)):08x}")


@cache
def _sources_key() -> str:
    files = sorted(_sources(str(_PACKAGE)))
    newest_ns = max(changed_ns for _, _, changed_ns in files)
    return f"{len(files)} {sum(size for _, size, _ in files)} {newest_ns} {zlib.crc32(repr(files).encode()):08x}"


def _sources(folder: str) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of the last change of each source file."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_ENDINGS):
                stat = entry.stat()
                yield entry.path, stat.st_size, stat.st_mtime_ns
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                yield from _sources(entry.path)


def _load(path: Path, key: str) -> dict[str, Any] | None:
    """The index in a file; None where there is none that counts."""
    try:
        index = json.loads(path.read_bytes())
        return index["units"] if index["key"] == key and isinstance(index["units"], dict) else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _save(path: Path, key: str, units: dict[str, Any]) -> None:
    """Keep an index where that is possible; other processes see the old one or the new one, never a part."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(6).hex()}")
    if not path.is_absolute():  # a user without a home
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
            json.dump({"key": key, "units": units}, stream)
        aside.replace(path)
    except OSError:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
