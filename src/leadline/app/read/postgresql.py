"""PostgreSQL's configuration as its files say it, and which settings are certain to be at their built-in defaults.

A default is only claimed when nothing can have changed it: every file the server reads was read to its end, and the
command line it was last started with. One that may not be read, or a line that is not understood, and none is claimed.
What a database, a role or a session sets for itself stands in no file and is not known here.
"""

from __future__ import annotations

import getopt
import posixpath
import re
from dataclasses import dataclass

from leadline.app.read.machine_files import Tree

_NAME_VALUE = re.compile(r"\s*([A-Za-z_][\w.$]*)(?:\s*=\s*|\s+)('(?:[^'\\]|''|\\.)*'|[^\s#'][^\s#]*)\s*(?:#.*)?")
_NOTHING = re.compile(r"\s*(?:#.*)?")
_INCLUDE_DEPTH_MAX = 10  # PostgreSQL gives up there too
_ARGUMENT = re.compile(r'"([^"]*)"')
# Source: PostgreSQL documentation, reference page of postgres. Switches that are settings; others may change anything.
_SHORT_OPTIONS = "B:c:D:Fh:ik:lN:p:"
_SWITCHES = {
    "-B": "shared_buffers",
    "-N": "max_connections",
    "-h": "listen_addresses",
    "-k": "unix_socket_directories",
    "-p": "port",
}
_FLAGS = {"-F": {"fsync": "off"}, "-i": {"listen_addresses": "*"}, "-l": {"ssl": "on"}}
_MAJOR = re.compile(r"[1-9]\d")

# Settings that rules look at, by the first major version that has the value, in words of postgresql.conf.
# Source: pg_settings.boot_val of 15, 16 and 18; the documentation of 10 to 14 and 17 ("Write Ahead Log",
# "Resource Consumption", "Query Planning"). effective_io_concurrency is that of systems with posix_fadvise, as Linux.
# shared_buffers before 15 is left out: what the server has of itself differed from what its documentation says.
_DEFAULTS: dict[str, dict[int, str]] = {
    "archive_mode": {10: "off"},
    "checkpoint_completion_target": {10: "0.5", 14: "0.9"},
    "effective_io_concurrency": {10: "1", 18: "16"},
    "fsync": {10: "on"},
    "full_page_writes": {10: "on"},
    "huge_pages": {10: "try"},
    "max_wal_size": {10: "1GB"},
    "random_page_cost": {10: "4"},
    "shared_buffers": {15: "128MB"},
    "synchronous_commit": {10: "on"},
}
_MAJOR_LAST = 18  # of those looked at; a later one may have changed any


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a server's files say: where its data lies, what is set, what certainly is at its default."""

    data: str
    given: dict[str, str]
    defaults: dict[str, str]


def defaults_of(version: str) -> dict[str, str]:
    """The built-in values of a major version, of the settings rules look at; none for a version not looked at.

    >>> defaults_of("13")["checkpoint_completion_target"], defaults_of("15")["checkpoint_completion_target"]
    ('0.5', '0.9')
    >>> defaults_of("9.6"), defaults_of("99")
    ({}, {})
    """
    major = int(version) if _MAJOR.fullmatch(version) else 0
    if major > _MAJOR_LAST:
        return {}
    known = {name: [value for first, value in table.items() if first <= major] for name, table in _DEFAULTS.items()}
    return {name: values[-1] for name, values in known.items() if values}


def configuration(tree: Tree, folder: str) -> Configuration | None:
    """The configuration in a folder; None when its ``postgresql.conf`` cannot be read.

    Later ones win, as in the server: ``postgresql.conf`` with what it includes, ``postgresql.auto.conf``, then the
    command line of the last start.
    """
    path = f"{folder}/postgresql.conf"
    text = tree.text(path)
    if text is None:
        return None
    files = _Files(tree)
    files.take(text, folder)
    data = files.given.get("data_directory", folder)
    automatic = tree.text(f"{data}/postgresql.auto.conf")
    if automatic is not None:
        files.take(automatic, data)
    elif not _is_absent(tree, f"{data}/postgresql.auto.conf"):
        files.is_whole = False
    certain = files.is_whole and data.startswith("/") and _take_command_line(tree, data, path, files.given)
    version = (tree.text(f"{data}/PG_VERSION") or "") if certain else ""
    defaults = {name: value for name, value in defaults_of(version).items() if name not in files.given}
    return Configuration(data, files.given, defaults)


class _Files:
    """Assignments of configuration files, and whether everything in them was understood and followed."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.given: dict[str, str] = {}
        self.is_whole = True

    def take(self, text: str, folder: str, depth: int = 0) -> None:
        """Take in a file's lines; the last of several assignments counts."""
        for line in text.splitlines():
            match = _NAME_VALUE.fullmatch(line)
            if match is None:
                self.is_whole = self.is_whole and _NOTHING.fullmatch(line) is not None
                continue
            name, value = match[1].lower(), _plain(match[2])
            if name in {"include", "include_if_exists", "include_dir"}:
                self._include(name, posixpath.normpath(posixpath.join(folder, value)), depth + 1)
            else:
                self.given[name] = value

    def _include(self, how: str, path: str, depth: int) -> None:
        """Follow an include; names are relative to the file that includes."""
        if depth > _INCLUDE_DEPTH_MAX:
            self.is_whole = False
        elif how == "include_dir":
            names = [name for name in self._tree.names(path) if name.endswith(".conf") and not name.startswith(".")]
            self.is_whole = self.is_whole and self._tree.has(path) and path not in self._tree.unreadable
            for name in names:
                self._file(f"{path}/{name}", depth)
        elif how == "include" or not _is_absent(self._tree, path):
            self._file(path, depth)

    def _file(self, path: str, depth: int) -> None:
        text = self._tree.text(path)
        if text is None:
            self.is_whole = False
        else:
            self.take(text, posixpath.dirname(path), depth)


def _plain(value: str) -> str:
    return value[1:-1].replace("''", "'") if value.startswith("'") else value


def _is_absent(tree: Tree, path: str) -> bool:
    """Whether there certainly is nothing: not there, and nothing above it hides it."""
    there = tree.text(path) is not None or tree.has(path)
    return not there and path not in tree.unreadable


def _take_command_line(tree: Tree, data: str, path: str, given: dict[str, str]) -> bool:
    """Add what the server was last started with; whether that is known, and it read this file and this folder.

    Source: PostgreSQL documentation, "Database File Layout": postmaster.opts holds the command line of the last start.
    """
    command_line = tree.text(f"{data}/postmaster.opts")
    options = _options(_ARGUMENT.findall(command_line)) if command_line else None
    if options is None:
        return False
    settings, started = options
    read = settings.pop("config_file", f"{started or data}/postgresql.conf")
    if posixpath.normpath(read) != path or settings.pop("data_directory", data) != data:
        return False
    given |= settings
    return True


def _options(words: list[str]) -> tuple[dict[str, str], str] | None:
    """Settings on a command line of the server and its folder; None when something else is on it."""
    settings: dict[str, str] = {}
    folder = ""
    spelled = [part for word in words for part in (("-c", word[2:]) if word.startswith("--") else (word,))]
    try:
        options, rest = getopt.getopt(spelled, _SHORT_OPTIONS)
    except getopt.GetoptError:
        return None
    for option, value in options:
        name, equals, assigned = value.partition("=")
        if option == "-D":
            folder = value
        elif option in _FLAGS:
            settings |= _FLAGS[option]
        elif option in _SWITCHES:
            settings[_SWITCHES[option]] = value
        elif equals:
            settings[name.replace("-", "_").lower()] = assigned
        else:
            return None
    return None if rest else (settings, folder)
