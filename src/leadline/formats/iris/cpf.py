"""InterSystems configuration parameter files, alone or in a report: parameters, and where the instance keeps what.

Source: InterSystems IRIS documentation, Configuration Parameter File Reference: sections, names, units; an empty wijdir
means the installation's ``mgr`` folder; a database is ``name=directory`` and, where it is mirrored, begins with
``:mirror:``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

KEPT_SECTIONS = frozenset({"config", "startup", "journal"})
_SECTION = re.compile(r"\[([^\]\r\n]+)\]")
_LINE = re.compile(r"([A-Za-z][\w. ]*)=(.*)")
_DATABASE = re.compile(r"([%A-Za-z][\w.%-]*)=(.*)")
_SECRET = re.compile(r"password|passwd|secret|token|key|licen|user|credential", re.IGNORECASE)
_MANAGERS = ("IRISSYS", "CACHESYS")  # in mgr of the installation
_OWN_DATABASES = ("IRIS", "CACHE")  # what names of the instance's own databases begin with


@dataclass(slots=True)
class Cpf:
    """What a file says.

    Attributes:
        version: of the instance; None when it is not said.
        parameters: of the kept sections, by InterSystems' names, without secrets.
        folders: of each database that is not mirrored, by its name.
        has_config: the section that every whole file has was there.
        unread: lines that are neither section, assignment, comment nor blank, or assign a number beyond every limit,
            with their numbers.
    """

    version: str | None = None
    parameters: dict[str, str | float] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    has_config: bool = False
    unread: list[tuple[int, str]] = field(default_factory=list)

    def places(self) -> dict[str, list[str]]:
        """Folders of what an instance keeps apart: install, databases, wij, journal, alternate-journal, where known.

        Databases are those that are not the instance's own, by name or by lying inside of the installation.
        """
        install = next((self.folders[name] for name in _MANAGERS if name in self.folders), None)
        parameters = {name.casefold(): str(value) for name, value in self.parameters.items()}
        folders = {
            "install": [] if install is None else [install],
            "databases": [
                path
                for name, path in self.folders.items()
                if not name.startswith(_OWN_DATABASES) and (install is None or not _within(path, install))
            ],
            "wij": [path for path in (parameters.get("wijdir") or install,) if path],
            "journal": [path for path in (parameters.get("currentdirectory"),) if path],
            "alternate-journal": [path for path in (parameters.get("alternatedirectory"),) if path],
        }
        return {purpose: paths for purpose, paths in folders.items() if paths}


def parse_cpf(lines: Iterable[tuple[int, str]]) -> Cpf:
    """The file whose lines, with their numbers, these are."""
    cpf, section = Cpf(), ""
    for number, line in lines:
        text = line.strip()
        heading = _SECTION.fullmatch(text)
        if heading is not None:
            section = heading[1].casefold()
            cpf.has_config = cpf.has_config or section == "config"
        elif text and not text.startswith((";", "#")):
            match = _DATABASE.fullmatch(text) if section == "databases" else _LINE.fullmatch(text)
            if match is None:
                cpf.unread.append((number, text))
            else:
                _take(cpf, section, match[1].strip(), match[2].strip())
                if _is_beyond_numbers(match[2].strip()):
                    cpf.unread.append((number, text))
    return cpf


def _take(cpf: Cpf, section: str, name: str, text: str) -> None:
    if section == "configfile" and name.casefold() == "version":
        cpf.version = text
    elif section == "databases":
        folder = text.split(",", maxsplit=1)[0].strip()
        if folder and not folder.startswith(":"):
            cpf.folders[name] = folder
    elif section in KEPT_SECTIONS and not _SECRET.search(name):
        cpf.parameters[name] = _value(text)


def _within(path: str, folder: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _value(text: str) -> str | float:
    number = _number(text)
    return number if math.isfinite(number) else text


def _is_beyond_numbers(text: str) -> bool:
    """Whether digits stand for more than a number can hold; the words nan and inf are texts."""
    return math.isinf(_number(text)) and text[-1:].isdigit()


def _number(text: str) -> float:
    """The number a text is; NaN where it is none."""
    try:
        return float(text) if text and text.isascii() and "," not in text and "_" not in text else math.nan
    except ValueError:
        return math.nan
