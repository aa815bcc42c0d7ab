"""What becomes of a job file of another tool: a workload, and a note on every option of the file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from leadline.core.io.source import decode
from leadline.core.model.errors import InputError
from leadline.core.model.workload import Workload

GUIDE = "docs/guides/job-files.md"
BYTES_MAX = 4 * 1024**2
SECTOR = 512
BLOCKS_MAX = 16  # Judgement: sizes of a range that are listed one by one; of more, as many are taken at equal distances
JOBS_MAX, OIO_MAX = 1024, 65536
_WORDS = re.compile(r"[^a-z0-9]+")


class Fate(StrEnum):
    """What becomes of an option, from best to worst."""

    KEPT = "kept"
    NEAR = "approximated"
    LOST = "left out"


@dataclass(frozen=True, slots=True)
class Written:
    """Where something stands in a job file, how it is written there, and what its tool calls it."""

    file: str
    line: int
    column: int
    written: str
    name: str

    @property
    def at(self) -> tuple[str, int, str]:
        """Where a note on it belongs."""
        return self.file, self.line, self.written

    @property
    def where(self) -> str:
        """File, line and column."""
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Note:
    """What becomes of one option of one line, and how or why."""

    file: str
    line: int
    option: str
    fate: Fate
    text: str

    def sentence(self) -> str:
        """For people, in one line."""
        return f"{Path(self.file).name}:{self.line}: {self.option}: {self.fate}: {self.text}"


@dataclass(frozen=True, slots=True)
class Translation:
    """A workload, what became of each line of the file it was made from, and what else that file holds."""

    workload: Workload
    notes: tuple[Note, ...] = ()
    source: str = "Leadline workload"
    choices: tuple[str, ...] = ()


@dataclass(slots=True)
class Notes:
    """Notes by file, line and option; several jobs that share a line share a note, and the worst fate counts."""

    fates: dict[tuple[str, int, str], dict[str, Fate]] = field(default_factory=dict)

    def add(self, at: tuple[str, int, str], fate: Fate, text: str) -> None:
        """Note what becomes of an option, ``at`` its file, line and name."""
        self.fates.setdefault(at, {}).setdefault(text, fate)

    def has(self, at: tuple[str, int, str]) -> bool:
        """Whether there is a note on it."""
        return at in self.fates

    def all(self) -> tuple[Note, ...]:
        """All notes, in the order of files and lines."""
        order = list(Fate)
        files = list(dict.fromkeys(file for file, _, _ in self.fates))
        notes = []
        for (file, line, option), texts in self.fates.items():
            fate = max(texts.values(), key=order.index)
            notes.append(Note(file, line, option, fate, "; ".join(texts)))
        return tuple(sorted(notes, key=lambda note: (files.index(note.file), note.line)))


def read_text(path: Path, kind: str) -> str:
    """The text of a job file.

    Raises:
        InputError: it cannot be read, or is larger than any job file.
    """
    try:
        if path.stat().st_size > BYTES_MAX:
            raise wrong(str(path), "more than 4 MiB", kind)
        return decode(path.read_bytes())
    except OSError as error:
        raise wrong(str(path), f"not readable ({error.strerror})", kind) from error


def wrong(where: str, problem: str, expected: str, advice: str = f"See {GUIDE}.") -> InputError:
    """The error of a file that cannot be translated."""
    return InputError(where, found=problem, expected=expected, advice=advice)


def slug(text: str, otherwise: str) -> str:
    """A name made of letters, digits and hyphens, as workloads and their files have.

    >>> slug("Seq. Read #1", "job"), slug("§", "job")
    ('seq-read-1', 'job')
    """
    return _WORDS.sub("-", text.lower()).strip("-")[:48].strip("-") or otherwise


def unique(names: Iterable[str]) -> list[str]:
    """Make names unique by a number at the end; "global" is a section of fio's and is never a name."""
    distinct: list[str] = []
    for name in names:
        base, number = name if name != "global" else "global-job", 1
        candidate = base
        while candidate in distinct:
            number += 1
            candidate = f"{base}-{number}"
        distinct.append(candidate)
    return distinct


def block_mix(shares: Mapping[int, float]) -> tuple[dict[int, float], bool]:
    """A mix of sizes a workload may have (multiples of 512, shares of 100), and whether it is exactly the given."""
    mix: dict[int, float] = {}
    exact = True
    for size, share in shares.items():
        whole = max(-(-size // SECTOR), 1) * SECTOR
        exact = exact and whole == size
        if share > 0:
            mix[whole] = mix.get(whole, 0.0) + share
    total = sum(mix.values())
    if len(mix) == 1:
        return {next(iter(mix)): 100.0}, exact
    return {size: round(share * 100.0 / total, 4) for size, share in sorted(mix.items())}, exact


def block_range(least: int, most: int, step: int) -> tuple[dict[int, float], bool]:
    """The mix of a range in steps, each size as likely as the others, and whether all sizes are in it."""
    count = (most - least) // max(step, 1) + 1
    if count <= BLOCKS_MAX:
        return {least + index * step: 100.0 / count for index in range(count)}, True
    picked = {least + (count - 1) * index // (BLOCKS_MAX - 1) * step for index in range(BLOCKS_MAX)}
    return dict.fromkeys(sorted(picked), 100.0 / BLOCKS_MAX), False


def workload_from(path: Path, name: str, plain: dict[str, Any], kind: str) -> Workload:
    """The workload of plain data.

    Raises:
        InputError: its numbers are beyond what a workload may have.
    """
    try:
        return Workload.model_validate({"name": slug(name, "translated"), **plain})
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"
        raise wrong(str(path), problem, f"{kind} whose load a workload can describe") from error
