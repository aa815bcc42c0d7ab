"""Job files of other tools: which tool's a file is, by what is in it, and what it becomes as a workload."""

from __future__ import annotations

import re
from pathlib import Path

from leadline.formats.fio.workloads import translate_fio
from leadline.formats.iometer.configurations import is_configuration, translate_iometer
from leadline.formats.translation import Translation, read_text
from leadline.formats.vdbench.parameters import meaningful
from leadline.formats.vdbench.workloads import translate_vdbench

WHAT = "a workload file, a fio job file, a vdbench parameter file or an Iometer configuration file"
_FIO_COMMENTS = (";", "#")
_SECTION = re.compile(r"\[[^\]\n]*\]\s*([;#].*)?")
_DEFINITION = re.compile(r"(hd|sd|wd|rd|fsd|fwd)=|[a-z_]{3,}=\S", re.IGNORECASE)


def kind_of(path: Path) -> str | None:
    """``fio``, ``vdbench`` or ``iometer``, by headings or the first line that is no comment; None for others.

    Raises:
        InputError: the file cannot be read.
    """
    text = read_text(path, WHAT)
    if is_configuration(text):
        return "iometer"
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped and not stripped.startswith(_FIO_COMMENTS):
            if _SECTION.fullmatch(stripped):
                return "fio"
            break
    first = next((stripped for _, stripped in meaningful(text)), "")
    return "vdbench" if _DEFINITION.match(first) else None


def translate(path: Path, pick: str = "") -> Translation | None:
    """The workload a job file describes and what became of its lines; None when it is no other tool's job file.

    Args:
        path: the file.
        pick: the run (vdbench), access specification (Iometer) or job of a phase (fio) that is wanted; the first when
            empty.

    Raises:
        InputError: it cannot be read as what it looks like, or nothing of it is a load on a disk.
    """
    kind = kind_of(path)
    if kind is None:
        return None
    translators = {"fio": translate_fio, "vdbench": translate_vdbench, "iometer": translate_iometer}
    return translators[kind](path, pick)
