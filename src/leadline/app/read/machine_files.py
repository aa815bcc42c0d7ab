"""A Linux machine's files under a folder: the running system's, an image's, or a made-up one."""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path

SIZE_BYTES_MAX = 16 * 1024 * 1024  # a package list is a few MiB; nothing else read here comes near
STEP_BYTES = 64 * 1024


class Tree:
    """Files under a root folder, read as the ordinary user it runs as.

    What is not there is None. What is there and may not be read is None too, and is kept in `unreadable`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unreadable: list[str] = []

    @property
    def is_running(self) -> bool:
        """Whether this is the running system's own tree, so that the kernel can be asked too."""
        return self.root == Path("/")

    def text(self, path: str) -> str | None:
        """A file's text without white space at its ends; bytes that are not UTF-8 are replaced."""
        try:
            with self._at(path).open("rb") as file:
                # Small steps: the kernel refuses to fill a buffer of many megabytes from /proc/sys.
                steps = takewhile(bool, (file.read(STEP_BYTES) for _ in range(SIZE_BYTES_MAX // STEP_BYTES)))
                return b"".join(steps).decode("utf-8", errors="replace").strip()
        except PermissionError:
            self._not_allowed(path)
        except (OSError, ValueError):
            pass
        return None

    def number(self, path: str) -> int | None:
        """A file that holds one whole number."""
        return whole_number(self.text(path))

    def lines(self, path: str) -> list[str]:
        """A file's lines; none where it cannot be read."""
        return (self.text(path) or "").splitlines()

    def names(self, path: str) -> list[str]:
        """Names in a folder, sorted; none where it cannot be read."""
        try:
            return sorted(entry.name for entry in self._at(path).iterdir())
        except PermissionError:
            self._not_allowed(path)
        except OSError:
            pass
        return []

    def has(self, path: str) -> bool:
        """Whether there is such a file, folder or link."""
        try:
            return os.path.lexists(self._at(path))
        except (OSError, ValueError):
            return False

    def target(self, path: str) -> str | None:
        """Where a path leads when its links are followed, as seen from the root; None when it leads out of it."""
        at = self._at(path)
        if not self.has(path):
            return None
        base = os.path.realpath(self.root)
        real = os.path.realpath(at)
        inside = real == base or real.startswith(base.rstrip("/") + "/")
        return "/" + os.path.relpath(real, base) if inside else None

    def chosen(self, path: str) -> str | None:
        """The word in brackets of a list of choices (``always [madvise] never``), or the only word."""
        words = (self.text(path) or "").split()
        marked = [word[1:-1] for word in words if word.startswith("[") and word.endswith("]")]
        return marked[0] if marked else words[0] if len(words) == 1 else None

    def _at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def _not_allowed(self, path: str) -> None:
        if path not in self.unreadable:
            self.unreadable.append(path)


def whole_number(text: str | None) -> int | None:
    """The text as a whole number of at most twenty digits; None when it is not one.

    >>> whole_number("42"), whole_number("-1"), whole_number("4096 87380")
    (42, -1, None)
    """
    if text is None or len(text) > 21 or not text.removeprefix("-").isdecimal():
        return None
    return int(text)


def count_of(ranges: str | None) -> int | None:
    """How many numbers a kernel list names; None when it is not such a list.

    >>> count_of("0-3,8"), count_of("0"), count_of("x")
    (5, 1, None)
    """
    total = 0
    for part in (ranges or "").split(","):
        first, _, last = part.partition("-")
        low, high = whole_number(first), whole_number(last or first)
        if low is None or high is None or high < low:
            return None
        total += high - low + 1
    return total
