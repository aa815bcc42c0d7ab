"""What ``esxcli`` and ``localcli`` of ESXi print: lists of settings, and tables; and whose support bundle holds them.

A list is a name (in ``localcli`` with a colon) and lines ``Setting: value`` below it, indented by three blanks or, if
pasted, not at all. A table has a line of dashes below its heading, which tells how wide its columns are. With
``--formatter=json``, and in the folder ``json`` of a support bundle, both are lists of objects.

Source: vSphere ESXCLI reference, formatters; outputs in support bundles of ESXi 5.5 to 8.0.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_SETTING = re.compile(r"\s*([A-Z/][\w /()#'.-]{1,70}?):(?: (.*)|)")
_DASHES = re.compile(r"\s*-{2,}(?: {1,4}-{2,})+\s*")
_COLUMN = re.compile(r"-{2,}")
_BUNDLE = re.compile(r"(?:^|[/!\\])esx-([A-Za-z0-9][\w.-]{0,200}?)-20\d\d-\d\d-\d\d--\d\d\.\d\d")
_NAME_MAX = 400
_VGPU_SCHEDULER = re.compile(r"\bRmPVMRL=(0x[0-9a-fA-F]{1,8})\b")
# Parameters of the module nvidia, in lower case: of all cards, and of single ones.
VGPU_REGISTRIES = ("nvreg_registrydwords", "nvreg_registrydwordsperdevice")
UNNAMED_HOST = "esxi"


@dataclass(frozen=True, slots=True)
class EsxcliRecord:
    """An entry of a list or a row of a table: its settings, and its name, "" where a table has none."""

    name: str
    settings: dict[str, str]

    def get(self, *names: str) -> str:
        """The first setting that is there and not empty; ""."""
        return next((self.settings[name] for name in names if self.settings.get(name)), "")

    def number(self, name: str) -> int | None:
        """A whole number; None where it is none."""
        text = self.settings.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None

    def flag(self, name: str) -> bool | None:
        """True or false; None where it is neither."""
        return {"true": True, "false": False}.get(self.settings.get(name, "").casefold())


def host_of_bundle(name: str) -> str:
    """The host whose support bundle a file lies in, as the bundle's folder or file names it; "" where none does.

    >>> host_of_bundle("esx-db-esx01.example.org-2026-11-24--09.10-2101.tgz!esx/var/log/vmkernel.log")
    'db-esx01.example.org'
    """
    match = _BUNDLE.search(name)
    return match[1] if match else ""


def vgpu_scheduler(registries: dict[str, str]) -> str | None:
    """How a host's cards share their time between vGPUs, by the parameters of the module nvidia (`VGPU_REGISTRIES`).

    None where the parameters of single cards are not known or speak of it: cards may differ.

    Source: NVIDIA Virtual GPU Software User Guide, changing scheduling behaviour for time-sliced vGPUs: RmPVMRL, best
    effort unless it is set.

    >>> vgpu_scheduler({"nvreg_registrydwords": "RmPVMRL=0x11", "nvreg_registrydwordsperdevice": ""})
    '0x11'
    """
    of_all, of_single = (registries.get(name) for name in VGPU_REGISTRIES)
    if of_all is None or of_single is None or "RmPVMRL" in of_single:
        return None
    match = _VGPU_SCHEDULER.search(of_all)
    return match[1].casefold() if match else "best-effort" if "RmPVMRL" not in of_all else None


def records(text: str) -> list[EsxcliRecord]:
    """The entries and rows of a text, in order; lines that belong to neither are passed over."""
    if text.lstrip("\ufeff \t\r\n").startswith(("[", "{")) and (objects := _objects(text)):
        return objects
    lines = text.splitlines()
    taken: list[EsxcliRecord] = []
    place = 0
    while place < len(lines):
        if place + 1 < len(lines) and _DASHES.fullmatch(lines[place + 1]):
            place = _table(lines, place, taken)
            continue
        place = _entry(lines, place, taken)
    return [record for record in taken if record.settings]


def _entry(lines: list[str], place: int, taken: list[EsxcliRecord]) -> int:
    """Take in a line of a list, as the name of an entry or a setting of the last; the place of the next line."""
    line = lines[place]
    setting = _SETTING.fullmatch(line)
    is_indented = line[:1].isspace()
    if not line.strip():
        if taken and taken[-1].settings:
            taken.append(EsxcliRecord("", {}))
    elif setting and (is_indented or setting[2] is not None):
        name, value = setting[1].strip(), (setting[2] or "").strip()
        if not taken or name in taken[-1].settings:  # the same setting again is of another entry without a name
            taken.append(EsxcliRecord("", {}))
        taken[-1].settings[name] = value
    elif len(line) <= _NAME_MAX:
        taken.append(EsxcliRecord(line.strip().removesuffix(":"), {}))
    return place + 1


def _table(lines: list[str], place: int, taken: list[EsxcliRecord]) -> int:
    """Take in the rows of the table whose heading is the line at an index; the place of the line after its last.

    A text of the last column that is too wide goes on below, with the other columns empty.
    """
    starts = [match.start() for match in _COLUMN.finditer(lines[place + 1])]
    ends = [*starts[1:], None]
    heading = [lines[place][start:end].strip() for start, end in zip(starts, ends, strict=True)]
    first = len(taken)
    place += 2
    while place < len(lines):
        line = lines[place]
        if not line.strip() or len(line) < starts[-1] or (_SETTING.fullmatch(line) and line[:3].isspace()):
            break
        if any(line[start - 1] != " " for start in starts[1:]):  # a prompt, or the heading of the next table
            break
        cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        if len(taken) > first and not any(cells[:-1]):
            settings = taken[-1].settings
            settings[heading[-1]] = f"{settings[heading[-1]]} {cells[-1]}"
        else:
            taken.append(EsxcliRecord("", dict(zip(heading, cells, strict=True))))
        place += 1
    return place


def _objects(text: str) -> list[EsxcliRecord]:
    """The objects of a JSON document, with their values as texts; none where it is no such document."""
    try:
        document: Any = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return []
    entries = document if isinstance(document, list) else [document]
    return [
        EsxcliRecord("", {str(key): _printed(value) for key, value in entry.items()})
        for entry in entries
        if isinstance(entry, dict)
    ]


def _printed(value: Any) -> str:  # noqa: ANN401 - of a JSON document
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(str(each) for each in value if isinstance(each, str | int))
    return str(value).strip() if isinstance(value, str | int | float) else ""
