"""Tables and maps made to be slow, or to break out of what is written of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from leadline import _core
from leadline.app.read.importing import import_paths
from leadline.app.read.suggesting import suggest
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.formats.mapped import text_table
from leadline.formats.mapped.table_map import read_map
from leadline.formats.mapped.text_table import read_text_table

TIME = "time: {column: time}\n"
MOMENT_NS = 1_763_625_600_123_456_789


def read(folder: Path, text: str, table_map: str) -> Capture:
    (folder / "export.csv").write_text(text, encoding="utf-8")
    (folder / "map.yaml").write_text(f"leadline_table: 1\n{table_map}", encoding="utf-8")
    return import_paths([folder / "export.csv"], Request(map_file=folder / "map.yaml")).capture


def test_an_expression_that_others_never_end_is_linear(tmp_path: Path) -> None:
    columns = "columns:\n  - {match: '(a+)+b', metric: guest_load_1m}\n"
    names = ",".join("a" * length + "!" for length in range(30, 5000, 100))
    capture = read(tmp_path, f"time,{names}\n2026-11-20T08:00:00Z{',1' * (names.count(',') + 1)}\n", TIME + columns)
    assert {warning.code for warning in capture.sources[0].warnings} == {"unused"}


def test_groups_and_alternatives_match_whole_names(tmp_path: Path) -> None:
    columns = r"""columns:
  - {match: '(?P<entity>sd[a-z]|nvme\d+n1) util', kind: block-device, metric: guest_disk_util_pct}
"""
    text = "time,sda util,nvme0n1 util,sda utils\n2026-11-20T08:00:00Z,1,2,3\n"
    capture = read(tmp_path, text, TIME + columns)
    (group,) = capture.of("guest_disk_util_pct")
    assert [entity.name for entity in group.entities] == ["sda", "nvme0n1"]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("(?=a)b", "look-around"),
        (r"(a)\1", "backreferences are not supported"),
        ("(a", "unclosed group"),
        ("a)|(?:b", "unopened group"),
        ("a{900000}", "too large"),
    ],
)
def test_an_expression_that_is_not_taken_is_one_error(expression: str, found: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, "time,a\n1,2\n", f"{TIME}columns:\n  - {{match: '{expression}', metric: guest_load_1m}}\n")
    assert caught.value.where == f"{tmp_path / 'map.yaml'}:4:5"
    assert "columns.0" in caught.value.found
    assert found in caught.value.found


def test_a_comment_of_an_expression_ends_with_it() -> None:
    assert _core.LinearRegex("(?x) a+ # letters").full_match("aa") == {}
    assert _core.LinearRegex("(?P<x>a)|(?P<y>b)").full_match("b") == {"x": None, "y": "b"}
    assert _core.LinearRegex("(?P<x>a)|(?P<y>b)").groups == ["x", "y"]


def test_a_header_of_equal_names_is_looked_through_once(tmp_path: Path) -> None:
    compared = 0

    class Cell(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

        def strip(self, chars: str | None = None, /) -> str:
            return Cell(str.strip(self, chars))

    for count in (500, 2000):
        compared = 0
        with pytest.raises(InputError, match="twice"):
            text_table._header("a.csv", [Cell("x") for _ in range(count)])
        assert compared <= 10 * count


@pytest.mark.parametrize("count", [100_000, 90_002])
def test_a_wide_header_of_equal_names_is_an_error(count: int, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",".join(["x"] * count) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="twice"):
        read_text_table(Source("a.csv", path))


def test_objects_that_share_no_key_are_no_table(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"time": {n}, "k{n}": 1}}\n' for n in range(3000)), encoding="utf-8")
    with pytest.raises(InputError, match="3,001 keys in 3,000 objects"):
        read_text_table(Source("a.jsonl", path))


HOSTILE_NAMES = (
    "load1\nentity: {kind: host}",
    "load\r1",
    "load_1'm",
    'load "1m"',
    "load\u20281",
    "load\x851",
    "load: 1 # m",
    "- load1",
    "{load1}",
    "load\\1",
    "\tload1\x1b[31m",
    "x\n- {column: y, metric: z}",
    "x\u2029columns: []",
)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_suggested_map_loads_back_to_the_names(name: str, tmp_path: Path) -> None:
    quoted = name.replace('"', '""')
    path = tmp_path / "a\ncolumns: 1\n.csv"
    times = "2026-11-20T08:00:00Z,1,a,1\n2026-11-20T08:00:10Z,2,b,2\n"
    path.write_text(f'time,"{quoted}","{quoted}\ntext","cpu_user\n"\n{times}', encoding="utf-8", newline="")
    text = suggest(path)
    (tmp_path / "map.yaml").write_text(text, encoding="utf-8", newline="")
    loaded = yaml.safe_load(text)
    assert set(loaded) == {"leadline_table", "time", "entity", "columns"}
    (known,) = [column.column for column in read_map(tmp_path / "map.yaml").columns if column.column == "cpu_user"]
    assert known == "cpu_user"
    header = list(read_text_table(Source("a", path)).columns)
    assert header[1] == name.strip()
    named = [column["column"] for column in loaded["columns"]]
    comments = [line for line in text.split("\n") if line.startswith("#")]
    assert header[1] in named or any(yaml.safe_load(repr_of(line)) == header[1] for line in comments[1:-1])
    assert len(text.splitlines()) == text.count("\n")


def repr_of(comment: str) -> str:
    """The name in a comment, as YAML: as it is quoted, or quoted here."""
    name = comment.removeprefix("#   ").rpartition(": ")[0]
    return name if name.startswith('"') and "\\" in name else yaml.safe_dump(name)


@pytest.mark.parametrize("form", ["%Y%Y", "%Y-%m-%d %Y", "%", "%Q"])
def test_a_format_that_reads_no_time_is_one_error(form: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, "time,a\n2026,2\n", f"time: {{column: time, format: '{form}'}}\n")
    assert caught.value.where == f"{tmp_path / 'map.yaml'}:2:22"
    assert f"time.format: '{form}'" in caught.value.found


def test_a_format_that_is_sound_reads(tmp_path: Path) -> None:
    capture = read(tmp_path, "time,a\n20.11.2026 08,2\n", "time: {column: time, format: '%d.%m.%Y %H'}\n")
    (group,) = capture.groups
    assert group.times_ns.tolist() == [int(datetime(2026, 11, 20, 8, tzinfo=UTC).timestamp()) * 10**9]


@pytest.mark.parametrize("mark", [" ", "'", "\u00a0", "_"])
def test_nanoseconds_in_groups_are_exact(mark: str, tmp_path: Path) -> None:
    written = f"{MOMENT_NS:,}".replace(",", mark)
    (group,) = read(tmp_path, f'time,a\n"{written}",2\n', "time: {column: time, unit: ns}\n").groups
    assert group.times_ns.tolist() == [MOMENT_NS]
