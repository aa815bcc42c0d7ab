"""How a PostgreSQL server is set: pg_settings as CSV, or postgresql.conf.

Reads:
    The view ``pg_settings`` (or ``SHOW ALL``) with a header line that has ``name`` and ``setting``, separated by comma,
    semicolon, tab or bar, as COPY, ``psql --csv`` and ``psql -A`` write it; and ``postgresql.conf``. They become the
    ``parameters`` of a database, and its version, cluster and shared memory where they are told.

Sample:
    .. code-block:: text

        name,setting,unit,context,source,boot_val,pending_restart
        DateStyle,"ISO, MDY",,user,configuration file,"ISO, MDY",f
        max_wal_size,64,16MB,sighup,default,64,f
        shared_buffers,32768,8kB,postmaster,command line,16384,f
        primary_conninfo,host=10.0.0.7 password=...,,sighup,configuration file,"",f

Lost:
    Secrets: of commands, connection strings and parameters of unknown extensions only that they are set is kept.
    Descriptions, limits, where a value came from. Of a configuration file: what it includes, what ALTER SYSTEM or the
    command line changed, and defaults; so its settings count as guessed, and those of the view win over them.

Units:
    As pg_settings prints them: a bare number is in the unit of the view (``shared_buffers`` in pages of 8 KiB), of
    which some older versions have other multiples (16 MB); those become text with a unit (``1024MB``). A configuration
    file's values stay as they are written.

Sources:
    PostgreSQL documentation, pg_settings, "Setting Parameters" (the configuration file's syntax and units).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer

META = ImporterMeta(
    tool="PostgreSQL settings",
    layers=(Layer.DATABASE,),
    record='psql -c "COPY (SELECT name, setting, unit FROM pg_settings) TO STDOUT CSV HEADER" > pg_settings.csv',
)

_SEPARATORS = ",;\t|"
_OTHER_COLUMNS = frozenset(
    {"unit", "category", "short_desc", "context", "vartype", "source", "boot_val", "description"}
)
# Enough of the engine's own names to tell its files from others'.
_KNOWN = frozenset(
    {
        "shared_buffers", "max_connections", "listen_addresses", "wal_level", "max_wal_size", "checkpoint_timeout",
        "work_mem", "maintenance_work_mem", "effective_cache_size", "autovacuum", "random_page_cost", "wal_buffers",
        "synchronous_commit", "checkpoint_completion_target", "full_page_writes", "archive_mode", "hba_file",
        "max_worker_processes", "data_directory", "shared_preload_libraries", "dynamic_shared_memory_type",
        "huge_pages", "server_version", "log_destination", "max_wal_senders", "bgwriter_delay",
        "allow_system_table_mods",
    }
)  # fmt: skip
_ASSIGNMENT = re.compile(r"\s*([A-Za-z_][\w.]*)(?:\s*=\s*|\s+)('(?:[^'\\]|''|\\.)*'|[^\s#'][^\s#]*)\s*(?:#.*)?")
_INCLUDES = frozenset({"include", "include_dir", "include_if_exists"})
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,18})?(?:[eE][+-]?\d{1,2})?")
_UNIT = re.compile(r"(\d{1,6})(kB|MB|GB)")
_PAGE = "8kB"  # the unit of a server built as usual; numbers in it are kept as they are
_FOOTER = re.compile(r"\(\d+ \w+\)")

_SECRET = re.compile(r"conninfo|password|passphrase|secret|token|_command$|_key$|credential", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"password\s*=|://[^/\s]*:[^/\s]*@", re.IGNORECASE)
# Settings of extensions are their authors' business; these are known to hold no secrets.
_EXTENSIONS = frozenset(
    {
        "auto_explain",
        "pg_prewarm",
        "pg_qualstats",
        "pg_stat_kcache",
        "pg_stat_statements",
        "pg_wait_sampling",
        "pgaudit",
    }
)
_NO_SECRETS = frozenset({"password_encryption", "ssl_passphrase_command_supports_reload"})
_HIDDEN = "(set)"
_NOT_SET = frozenset({"", "(disabled)"})


def sniff(source: Source) -> int:
    """Sure by the view's columns with the engine's own names; by shape for a configuration file."""
    lines = source.head_uncut.splitlines()
    header = _header(lines[0]) if lines else None
    if header is not None:
        separator, columns = header
        at = columns.index("name")
        firsts = {parts[at].strip('" ').casefold() for line in lines[1:] if len(parts := line.split(separator)) > at}
        known = bool(firsts & _KNOWN)
        return 95 if known and _OTHER_COLUMNS & set(columns) else 60 if known else 0
    if not source.name.casefold().endswith((".conf", ".conf.sample", ".txt")):
        return 0
    names = {match[1].casefold() for line in lines if (match := _ASSIGNMENT.fullmatch(line)) is not None}
    named = source.name.casefold().endswith("postgresql.conf")
    count = len(names & _KNOWN)
    return 90 if named and count else 70 if count >= 3 else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only.

    Raises:
        InputError: a row or line that cannot be one, or nothing of PostgreSQL in the file.
    """
    builder = CaptureBuilder(source.name, "pg_settings", META.tool)
    text = source.text()
    header = _header(text.split("\n", 1)[0])
    if header is None:
        values = _of_file(source, text, builder)
    else:
        values = _of_view(source, text, header, builder)
    if not {name.casefold() for name in values} & _KNOWN:
        raise InputError(
            source.name,
            found="no setting of PostgreSQL",
            expected="the view pg_settings with name and setting, or a postgresql.conf",
            advice=f"Record it again: {META.record}",
        )
    _add(builder, _without_secrets(values), source.name, from_view=header is not None)
    return builder.build()


def _add(builder: CaptureBuilder, values: dict[str, str | float], name: str, *, from_view: bool) -> None:
    database = Entity(EntityKind.DATABASE, _name(values), builder.inventory.add(UNNAMED_GUEST, name))
    builder.inventory.add(database, name, engine="postgresql")
    builder.inventory.add(database, name, guessed=not from_view, parameters=values)
    version, size = values.get("server_version"), values.get("shared_memory_size")
    if version is not None:
        builder.inventory.add(database, name, version=str(version))
    if isinstance(size, float) and size > 0:
        builder.inventory.add(database, name, shared_memory_mib=size)  # PostgreSQL's MB are MiB


def _name(values: dict[str, str | float]) -> str:
    """The cluster's name, else that of the folder it lies in where that says more than "data", else the engine's.

    Debian names clusters 15/main and their folders main: the version is no part of the name.
    """
    cluster = PurePosixPath(str(values.get("cluster_name", "")).strip()).name
    folder = PurePosixPath(str(values.get("data_directory", ""))).name
    return cluster or (folder if folder.casefold() not in {"", "data", "pgdata"} else "postgresql")


def _header(line: str) -> tuple[str, list[str]] | None:
    """Separator and columns of a header of the view; None when the line is none."""
    for separator in _SEPARATORS:
        columns = [part.strip().strip('"').casefold() for part in line.strip().split(separator)]
        if "name" in columns and "setting" in columns:
            return separator, columns
    return None


def _of_view(
    source: Source, text: str, header: tuple[str, list[str]], builder: CaptureBuilder
) -> dict[str, str | float]:
    separator, columns = header
    name_at, setting_at = columns.index("name"), columns.index("setting")
    unit_at = columns.index("unit") if "unit" in columns else None
    values: dict[str, str | float] = {}
    for row in _rows(source, text, (separator, len(columns)), builder):
        unit = "" if unit_at is None else row[unit_at].strip()
        values[row[name_at].strip()] = _value(row[name_at].strip(), row[setting_at], unit)
    return values


def _rows(source: Source, text: str, shape: tuple[str, int], builder: CaptureBuilder) -> Iterator[list[str]]:
    """Rows after the header; one that is cut at the end of the file is dropped and said.

    Raises:
        InputError: a row has another number of fields than the header, or quotes that do not close.
    """
    separator, width = shape
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        rows.extend((reader.line_num, row) for row in reader if row and _FOOTER.fullmatch(row[0].strip()) is None)
    except csv.Error as error:
        if "unexpected end" not in str(error):
            raise _malformed(source, reader.line_num, str(error)) from error
        builder.warn("cut", f"the row at line {reader.line_num} is cut and was dropped")
    is_cut = not text.endswith(("\n", "\r"))
    for position, (line, row) in enumerate(rows[1:], 2):
        if len(row) == width:
            yield row
        elif position == len(rows) and is_cut and len(row) < width:
            builder.warn("cut", f"line {line} is cut and was dropped")
        else:
            raise _malformed(source, line, f"{len(row)} fields, the header has {width}")


def _malformed(source: Source, line: int, problem: str) -> InputError:
    return InputError(
        f"{source.name}:{line}",
        found=problem,
        expected="a row of pg_settings",
        advice=f"Record it again: {META.record}",
    )


def _value(name: str, setting: str, unit: str) -> str | float:
    """The setting as a number in the unit the view prints today, else as text."""
    if name == "server_version" or _NUMBER.fullmatch(setting) is None:  # 16.10 is no number
        return setting
    multiple = _UNIT.fullmatch(unit)
    if multiple is None or unit == _PAGE or float(setting) < 0:  # -1 is "off", in any unit
        return float(setting)
    return f"{float(setting) * int(multiple[1]):.0f}{multiple[2]}"


def _of_file(source: Source, text: str, builder: CaptureBuilder) -> dict[str, str | float]:
    """Settings of a configuration file; the last of several of one name counts."""
    values: dict[str, str | float] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ASSIGNMENT.fullmatch(line)
        if match is None and number == len(lines) and not text.endswith(("\n", "\r")):
            builder.warn("cut", f"line {number} is cut and was dropped")
        elif match is None:
            raise InputError(
                f"{source.name}:{number}",
                found="a line that is no setting",
                expected="name = value, or a comment",
                advice="Copy the file again, or record pg_settings from the running server.",
            )
        elif match[1].casefold() in _INCLUDES:
            builder.warn("included", f"line {number} includes another file, which was not read")
        else:
            name = match[1].casefold()
            values[name] = _value(name, _unquoted(match[2]), "")
    return values


def _unquoted(value: str) -> str:
    if not value.startswith("'"):
        return value
    return re.sub(r"''|\\(.)", lambda escape: escape[1] or "'", value[1:-1])


def _without_secrets(values: dict[str, str | float]) -> dict[str, str | float]:
    """The settings with what may be secret replaced by the word that it is set."""
    return {name: _HIDDEN if _is_secret(name, str(value)) else value for name, value in values.items()}


def _is_secret(name: str, value: str) -> bool:
    if value in _NOT_SET:
        return False
    extension, dot, _ = name.partition(".")
    foreign = bool(dot) and extension.casefold() not in _EXTENSIONS
    named = _SECRET.search(name) is not None and name.casefold() not in _NO_SECRETS
    return foreign or named or _SECRET_VALUE.search(value) is not None
