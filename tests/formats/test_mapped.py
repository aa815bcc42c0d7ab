"""Tables by a map: ten shapes that people export, each against values worked out by hand or by another reader."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from benches.mutations import mutated
from leadline.app.read.importing import import_paths
from leadline.app.read.suggesting import suggest
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError, LeadlineError
from leadline.formats.mapped.reading import as_numbers, read_mapped
from leadline.formats.mapped.table_map import read_map
from tests.conftest import ROOT

START = datetime(2026, 11, 20, 8, tzinfo=UTC)
START_NS = int(START.timestamp()) * 10**9
NS = 10**9
HEAD = "leadline_table: 1\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "export.csv"


def read(path: Path, text: str, table_map: str) -> Capture:
    path.write_text(text, encoding="utf-8")
    map_file = path.with_suffix(".map.yaml")
    map_file.write_text(HEAD + table_map, encoding="utf-8")
    return import_paths([path], Request(map_file=map_file)).capture


def series(capture: Capture, metric: str, entity: str = "") -> tuple[list[int], list[float]]:
    """Times since the start [s] and values of one series."""
    (group,) = [g for g in capture.of(metric) if not entity or any(e.name == entity for e in g.entities)]
    row = next(index for index, e in enumerate(group.entities) if not entity or e.name == entity)
    return [int((time - START_NS) // NS) for time in group.times_ns], group.values[row].tolist()


def warned(capture: Capture) -> set[str]:
    return {warning.code for source in capture.sources for warning in source.warnings}


def test_wide_with_iso_times_as_grafana_writes_them(table: Path) -> None:
    text = '"Time","cpu idle","load"\n2026-11-20T08:00:00Z,97.5%,1\n2026-11-20T08:00:15Z,,2\n'
    columns = (
        "columns:\n  - {column: cpu idle, metric: guest_cpu_idle_pct}\n  - {column: load, metric: guest_load_1m}\n"
    )
    capture = read(table, text, "time: {column: Time}\nentity: {kind: guest, name: db01}\n" + columns)
    times, values = series(capture, "guest_cpu_idle_pct", "db01")
    assert times == [0, 15]
    assert_allclose(values, [97.5, np.nan])
    assert series(capture, "guest_load_1m")[1] == [1.0, 2.0]
    assert warned(capture) == set()


def test_decimal_commas_semicolons_and_local_times(table: Path) -> None:
    text = "Zeit;Leerlauf;Gelesen\n20.11.2026 09:00:00;97,5;1.024,5\n20.11.2026 09:00:10;1.000;0,5\n"
    table_map = """decimal: ","
time: {column: Zeit, format: "%d.%m.%Y %H:%M:%S", timezone: Europe/Berlin}
columns:
  - {column: Leerlauf, metric: guest_cpu_idle_pct}
  - {column: Gelesen, metric: disk_read_mib_per_s, unit: kib_per_s, entity: {kind: block-device, name: sda}}
"""
    capture = read(table, text, table_map)
    assert series(capture, "guest_cpu_idle_pct") == ([0, 10], [97.5, 1000.0])
    assert_allclose(series(capture, "disk_read_mib_per_s", "sda")[1], [1024.5 / 1024, 0.5 / 1024])


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_epoch_numbers_in_every_unit(table: Path, unit: str, factor: int) -> None:
    first = START_NS // (NS // factor)
    text = f"ts,idle\n{first},1\n{first + 5 * factor},2\n"
    for given in ("", f", unit: {unit}"):
        table_map = f"time: {{column: ts{given}}}\ncolumns:\n  - {{column: idle, metric: guest_cpu_idle_pct}}\n"
        capture = read(table, text, table_map)
        assert capture.of("guest_cpu_idle_pct")[0].times_ns.tolist() == [START_NS, START_NS + 5 * NS]


def test_counters_amounts_and_resets(table: Path) -> None:
    rows = [(0, 1000, 0.0, 40), (10, 6000, 5.0, 80), (20, 200, 7.5, 120), (40, 1200, 8.0, 10)]
    text = "t,reads,busy,sent\n" + "".join(f"{int(START.timestamp()) + t},{a},{b},{c}\n" for t, a, b, c in rows)
    table_map = """time: {column: t}
columns:
  - {column: reads, metric: disk_reads_per_s, unit: count, counts: counter, entity: {kind: block-device, name: sda}}
  - {column: busy, metric: guest_cpu_user_pct, unit: s, counts: counter}
  - {column: sent, metric: net_tx_mbit_per_s, unit: mb, counts: amount, entity: {kind: nic, name: eth0}}
"""
    capture = read(table, text, table_map)
    assert_allclose(series(capture, "disk_reads_per_s", "sda")[1], [np.nan, 500.0, np.nan, 50.0])
    assert_allclose(series(capture, "guest_cpu_user_pct")[1], [np.nan, 50.0, 25.0, 2.5])
    assert_allclose(series(capture, "net_tx_mbit_per_s", "eth0")[1], [32.0, 64.0, 96.0, 4.0])
    assert "reset" in warned(capture)


def test_long_tables_with_an_entity_column(table: Path) -> None:
    text = "time,instance,metric,value\n"
    for second in (0, 30):
        moment = (START + timedelta(seconds=second)).isoformat()
        for host, load in (("db01", 1.0 + second), ("db02", 5.0)):
            text += f"{moment},{host},node_load1,{load}\n{moment},{host},other,7\n"
    table_map = """time: {column: time}
entity: {kind: guest, column: instance}
long: {name: metric, value: value}
columns:
  - {column: node_load1, metric: guest_load_1m}
"""
    capture = read(table, text, table_map)
    assert series(capture, "guest_load_1m", "db01") == ([0, 30], [1.0, 31.0])
    assert series(capture, "guest_load_1m", "db02") == ([0, 30], [5.0, 5.0])
    assert series(capture, "raw.table.other", "db02")[1] == [7.0, 7.0]


def test_a_row_for_each_device_and_gaps(table: Path) -> None:
    text = "timestamp\tdevice\tawait_ms\n"
    rows = [(0, "sda", "0.5"), (0, "sdb", "9"), (10, "sda", ""), (60, "sda", "1.5"), (60, "sdb", "-")]
    text += "".join(f"{(START + timedelta(seconds=t)):%Y-%m-%d %H:%M:%S}\t{d}\t{v}\n" for t, d, v in rows)
    table_map = """time: {column: timestamp}
entity: {kind: block-device, column: device}
columns:
  - {column: await_ms, metric: guest_disk_await_ms}
"""
    capture = read(table, text, table_map)
    times, values = series(capture, "guest_disk_await_ms", "sda")
    assert times == [0, 10, 60]
    assert_allclose(values, [0.5, np.nan, 1.5])
    assert warned(capture) == {"no-zone"}


def test_names_of_entities_in_names_of_columns(table: Path) -> None:
    text = f"t|sda util|sdb util|note\n{int(START.timestamp())}|10|20|fine\n{int(START.timestamp()) + 1}|30|40|fine\n"
    table_map = """time: {column: t}
entity: {kind: guest, name: db01}
columns:
  - {match: "(?P<entity>sd\\\\w+) util", kind: block-device, metric: guest_disk_util_pct}
"""
    capture = read(table, text, table_map)
    assert series(capture, "guest_disk_util_pct", "sdb")[1] == [20.0, 40.0]
    (group,) = capture.of("guest_disk_util_pct")
    assert {str(entity.parent) for entity in group.entities} == {"guest:db01"}


def test_json_lines_as_cloudwatch_streams_them(table: Path) -> None:
    rows = [
        {
            "timestamp": (START_NS + second * NS) // 10**6,
            "dimensions": {"InstanceId": "i-1"},
            "name": name,
            "value": value,
        }
        for second in (0, 60)
        for name, value in (("CPUUtilization", 12.5), ("NetworkIn", 3e8))
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    table_map = """time: {column: timestamp}
entity: {kind: guest, column: dimensions.InstanceId}
long: {name: name, value: value}
columns:
  - {column: CPUUtilization, metric: guest_cpu_user_pct}
  - {column: NetworkIn, metric: net_rx_mbit_per_s, unit: bytes, counts: amount}
"""
    capture = read(table, text, table_map)
    assert series(capture, "guest_cpu_user_pct", "i-1") == ([0, 60], [12.5, 12.5])
    assert series(capture, "net_rx_mbit_per_s", "i-1")[1] == [40.0, 40.0]


def test_seconds_from_a_start_of_their_own(table: Path) -> None:
    text = "second,idle\n1,90\n2,80\n"
    known = read(
        table,
        text,
        "time: {column: second, start: 2026-11-20T08:00:00Z}\ncolumns: [{column: idle, metric: guest_cpu_idle_pct}]\n",
    )
    assert series(known, "guest_cpu_idle_pct")[0] == [1, 2]
    unknown = read(table, text, "time: {column: second}\ncolumns: [{column: idle, metric: guest_cpu_idle_pct}]\n")
    assert warned(unknown) == {"no-start"}
    assert unknown.of("guest_cpu_idle_pct")[0].times_ns[-1] == table.stat().st_mtime_ns


def test_every_number_of_a_wide_export_is_kept(table: Path) -> None:
    """94 columns, the values as polars reads them."""
    random = np.random.default_rng(1)
    names = [f"column {number}" for number in range(93)]
    values = random.normal(0.0, 1e4, (200, 93)).round(3)
    times = int(START.timestamp()) + np.arange(200)
    lines = [",".join(["Epoch", *names])]
    lines += [",".join([str(time), *map(str, row)]) for time, row in zip(times, values.tolist(), strict=True)]
    text = "\n".join(lines) + "\n"
    capture = read(table, text, "time: {column: Epoch}\n")
    frame = pl.read_csv(io.StringIO(text))
    for name in names:
        assert series(capture, f"raw.table.{name}")[1] == frame[name].to_list()


@pytest.mark.parametrize(
    ("table_map", "message"),
    [
        ("time: {column: zeit}\n", "column 'zeit', which .* does not have"),
        ("time: {column: t}\ncolumns: [{column: Idle, metric: guest_cpu_idle_pct}]\n", "column 'Idle', which"),
        (
            "time: {column: t}\ncolumns: [{column: text, metric: guest_cpu_idle_pct}]\n",
            r"export.csv:2: column text: 'busy'",
        ),
        ("time: {column: t}\ncolumns: [{column: idle, metric: cpu_idle_percent}]\n", "idle: metric cpu_idle_percent"),
        ("time: {column: t}\ncolumns: [{column: idle, metric: guest_cpu_idle_pct, unit: ms}]\n", "idle: "),
        ("time: {column: t}\ncolumns: [{column: idle, metric: guest_cpu_idle_pct, counts: counter}]\n", "unit None"),
        ("time: {column: text}\n", "column text: 'busy'; expected an ISO 8601 time"),
        ("time: {column: t}\ncolumns: [{match: '(', metric: guest_cpu_idle_pct}]\n", "no regular expression"),
        (
            "time: {column: t}\nlong: {name: text, value: idle}\ncolumns: [{column: x, metric: guest_load_1m}]\n",
            "'x', which column text",
        ),
    ],
)
def test_a_bad_map_is_one_error_that_names_the_column(table: Path, table_map: str, message: str) -> None:
    text = f"t,idle,text\n{int(START.timestamp())},1,busy\n"
    with pytest.raises(InputError, match=message):
        read(table, text, table_map)


def test_damaged_tables(table: Path) -> None:
    table_map = "time: {column: t}\n"
    with pytest.raises(InputError, match=r"export.csv:3: 1 cells; expected 2"):
        read(table, "t,a\n1,2\n3\n4,5\n", table_map)
    assert "cut" in warned(read(table, "t,a\n1,2\n3", table_map))
    with pytest.raises(InputError, match="'a' twice"):
        read(table, "t,a,a\n1,2,3\n", table_map)
    with pytest.raises(InputError, match=r"export.csv:2: '\[1\]'; expected a JSON object"):
        read(table, '{"t": 1}\n[1]\n{"t": 2}\n', table_map)


SEEDS = (
    (b"t,idle,util\n1700000000,1.5,2\n1700000001,2.5,\n1700000002,1e3,4\n", "time: {column: t}\n"),
    (
        b"Zeit;Leerlauf\n20.11.2026 09:00:00;97,5\n20.11.2026 09:00:10;1.000\n",
        'decimal: ","\ntime: {column: Zeit, format: "%d.%m.%Y %H:%M:%S", timezone: Europe/Berlin}\n'
        "columns: [{column: Leerlauf, metric: guest_cpu_idle_pct}]\n",
    ),
    (
        b'{"time": "2026-11-20T08:00:00Z", "d": {"host": "a"}, "k": "x", "v": 1}\n'
        b'{"time": "2026-11-20T08:00:01Z", "d": {"host": "b"}, "k": "x", "v": 2.5}\n',
        "time: {column: time}\nentity: {kind: guest, column: d.host}\nlong: {name: k, value: v}\n"
        "columns: [{column: x, metric: guest_disk_util_pct, unit: ms, counts: counter}]\n",
    ),
)


@pytest.mark.parametrize(("content", "table_map"), SEEDS)
def test_damage_is_one_error_or_a_whole_capture(tmp_path: Path, content: bytes, table_map: str) -> None:
    map_file = tmp_path / "map.yaml"
    map_file.write_text(HEAD + table_map, encoding="utf-8")
    path = tmp_path / "damaged.csv"
    accepted_count = 0
    for seed in range(400):
        path.write_bytes(mutated(content, [seed_content for seed_content, _ in SEEDS], Random(seed)))
        try:
            capture = read_mapped(Source("damaged.csv", path), Request(), map_file)
        except LeadlineError as error:
            assert error.where.startswith(("damaged.csv", str(map_file), "the time "))
            assert "\n" not in str(error)
            continue
        accepted_count += 1
        for group in capture.groups:
            assert group.values.shape == (len(group.entities), len(group.times_ns))
            assert (np.diff(group.times_ns) > 0).all()
            assert not np.isinf(group.values).any()
    assert 10 < accepted_count < 390


def test_thousands_are_no_decimals() -> None:
    assert as_numbers(["1,5"], ".") is None
    assert as_numbers(["1,500", "1 500"], ".") == pytest.approx([1500.0, 1500.0])
    assert as_numbers(["1.500,5", "0,25"], ",") == pytest.approx([1500.5, 0.25])
    assert as_numbers(["1.5"], ",") is None


def test_a_draft_reads_its_own_table(table: Path, tmp_path: Path) -> None:
    text = "date;cpu_idle;note;what\n20.11.2026 08:00;97,5;x;1,5\n20.11.2026 08:01;90,5;y;2,5\n"
    table.write_text(text, encoding="utf-8")
    draft = suggest(table)
    map_file = tmp_path / "draft.yaml"
    map_file.write_text(draft, encoding="utf-8")
    table_map = read_map(map_file)
    assert (table_map.delimiter, table_map.decimal, table_map.time.format) == (";", ",", "%d.%m.%Y %H:%M")
    capture = import_paths([table], Request(map_file=map_file)).capture
    assert series(capture, "guest_cpu_idle_pct")[1] == [97.5, 90.5]
    assert "what: 1.5 to 2.5" in draft
    assert "note: text, 2 different: 'x', 'y'" in draft


def test_a_recording_that_is_known_needs_no_map(tmp_path: Path) -> None:
    recording = next(path for path in (ROOT / "tests" / "fixtures" / "iostat").rglob("*") if path.is_file())
    with pytest.raises(InputError, match="a recording of"):
        suggest(recording)
    empty = tmp_path / "numbers.csv"
    empty.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="no column of times"):
        suggest(empty)
