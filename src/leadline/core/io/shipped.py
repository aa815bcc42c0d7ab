"""Examples and guides that help and errors name: they come with Leadline, and are found from every folder.

A wheel has them in ``leadline/shipped``, where ``scripts/dist.py`` puts them; a source tree has them at its root.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_FOLDERS = ("docs", "examples")
_ROOTS = (_PACKAGE / "shipped", _PACKAGE.parents[1])


def shipped(path: Path) -> Path:
    """The path itself; where nothing is there, the example or guide of that name that came with Leadline, if any."""
    if path.parts[:1] not in [(folder,) for folder in _FOLDERS] or ".." in path.parts or path.exists():
        return path
    return next((root / path for root in _ROOTS if (root / path).exists()), path)
