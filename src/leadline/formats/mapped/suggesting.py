"""The first draft of a map: what a table's columns seem to mean."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime

import numpy as np
import yaml

from leadline.core.contracts.importer import Field
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import metrics
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.mapped.reading import as_numbers
from leadline.formats.mapped.table_map import NAME_MAX
from leadline.formats.mapped.text_table import TextTable, delimiter_of, is_json_lines, read_text_table

TIME_NAMES = ("timestamp", "time", "datetime", "date", "epoch", "ts", "moment", "second", "@timestamp", "time_ns")
FORMATS = (
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %I:%M:%S %p",
    "%Y/%m/%d %H:%M:%S",
    "%d %b %Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y",
)
COMMON = {
    "cpu_user": "guest_cpu_user_pct",
    "cpu_usr": "guest_cpu_user_pct",
    "avgcpuuser": "guest_cpu_user_pct",
    "cpu_system": "guest_cpu_system_pct",
    "cpu_sys": "guest_cpu_system_pct",
    "avgcpusys": "guest_cpu_system_pct",
    "cpu_idle": "guest_cpu_idle_pct",
    "avgcpuidle": "guest_cpu_idle_pct",
    "cpu_iowait": "guest_cpu_iowait_pct",
    "avgcpuwai": "guest_cpu_iowait_pct",
    "cpu_steal": "guest_cpu_steal_pct",
    "load1": "guest_load_1m",
    "load_1m": "guest_load_1m",
}


def suggest_map(source: Source, fields: Mapping[str, Field]) -> str:
    """A map of a table as YAML, with what was not understood as comments; ``fields`` are those of all known tools.

    Raises:
        InputError: no table, or no column with times.
    """
    table = read_text_table(source, truncate_last=True)
    decimal = _decimal(table)
    time = _time(table, source.name, decimal)
    known = {_plain(name): field.metric for name, field in fields.items()}
    known |= {_plain(name): name for name in metrics()} | {_plain(name): metric for name, metric in COMMON.items()}
    known = {name: metric for name, metric in known.items() if metric in metrics()}
    draft: dict[str, object] = {"leadline_table": 1}
    if not is_json_lines(source.head_text) and (delimiter := delimiter_of(source.head_text)) != ",":
        draft["delimiter"] = delimiter
    if decimal != ".":
        draft["decimal"] = decimal
    draft["time"] = time
    draft["entity"] = {"kind": EntityKind.GUEST.value, "name": "guest"}
    names = [name for name in table.columns if name != time["column"]]
    columns, comments = [], []
    for name in names:
        metric = known.get(_plain(name))
        if as_numbers(table.columns[name], decimal) is None:
            values = list(dict.fromkeys(table.columns[name]))
            comments.append(f"{_written(name)}: text, {len(values)} different: {', '.join(map(repr, values[:4]))}")
        elif metric is None or len(name) > NAME_MAX:
            comments.append(f"{_written(name)}: {_range(table.columns[name], decimal)}")
        else:
            columns.append({"column": name, "metric": metric, "unit": metrics()[metric].unit})
    draft["columns"] = columns
    text = yaml.dump(draft, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    about = f"# {_written(source.name)}: {table.row_count} rows, {len(table.columns)} columns\n"
    return f"{about}{text}{''.join(_advice(comments))}"


class _Dumper(yaml.SafeDumper):
    """YAML in which a text with line breaks or control characters stands escaped between double quotes."""

    def represent_text(self, text: str) -> yaml.Node:
        """The node of a text."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _Dumper.represent_text)


def _written(name: str) -> str:
    """A name in a comment, which ends with its line: escaped where a character could end it or cannot be seen."""
    return name if name.isprintable() else json.dumps(name)


def _advice(comments: list[str]) -> Iterator[str]:
    if not comments:
        return
    yield "# Not understood; numbers are kept as raw.table.COLUMN. `leadline metrics` lists metrics and units.\n"
    yield "#  - {column: NAME, metric: METRIC, unit: UNIT, counts: level | counter | amount}\n"
    yield "#  - {match: '(?P<entity>sd\\w+) util', kind: block-device, metric: guest_disk_util_pct}\n"
    for comment in comments:
        yield f"#   {comment}\n"


def _plain(name: str) -> str:
    """A name without case and marks: ``CPU-User %`` is ``cpuuser``."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _range(cells: list[str], decimal: str) -> str:
    numbers = as_numbers(cells, decimal)
    if numbers is None or np.isnan(numbers).all():
        return "no number"
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    whole = numbers[~np.isnan(numbers)]
    grows = len(whole) > 2 and bool((np.diff(whole) >= 0).all()) and high > low
    return f"{low:g} to {high:g}{', never falls: a counter?' if grows else ''}"


def _decimal(table: TextTable) -> str:
    """The comma where numbers only are numbers with it."""
    cells = [cell for column in table.columns.values() for cell in column[:50]]
    commas = [cell for cell in cells if re.fullmatch(r"-?\d+,\d+", cell.strip())]
    points = [cell for cell in cells if re.fullmatch(r"-?\d+\.\d+", cell.strip())]
    return "," if len(commas) > len(points) else "."


def _time(table: TextTable, name: str, decimal: str) -> dict[str, str]:
    """Where times stand, by the column's name and its cells."""
    by_name = [column for column in table.columns if column.casefold().strip('" ') in TIME_NAMES]
    for column in dict.fromkeys([*by_name, *table.columns]):
        if not 0 < len(column) <= NAME_MAX:
            continue  # a map cannot name it
        cells = [cell for cell in table.columns[column] if cell.strip()][:50]
        if not cells:
            continue
        numbers = as_numbers(cells, decimal)
        if numbers is not None:
            if column in by_name and len(numbers) > 1 and bool((np.diff(numbers) >= 0).all()):
                return {"column": column}
            continue
        for form in (None, *FORMATS):
            if all(_is_time(cell.strip(), form) for cell in cells):
                return {"column": column} if form is None else {"column": column, "format": form}
    raise InputError(
        name,
        found="no column of times",
        expected="ISO 8601 times, or numbers under a name as time, timestamp or epoch",
        advice="Write the map by hand: docs/guides/tables.md.",
    )


def _is_time(text: str, form: str | None) -> bool:
    try:
        if form is None:
            datetime.fromisoformat(text)
        else:
            datetime.strptime(text, form)  # noqa: DTZ007 - only whether it is one
    except ValueError:
        return False
    return True
