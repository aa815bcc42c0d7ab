"""The server's log: values counted by hand, prefixes as people set them, and what is refused."""

from __future__ import annotations

import json
import math
import re
import tarfile
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline._core import PostgresqlLog
from leadline.app.diagnose.diagnosing import diagnose
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Severity
from leadline.formats.statements import shown_name, statement_name
from leadline.importers import postgresql_log
from tests.importers import postgresql_log_walks

RECORDED = Path(__file__).parents[2] / "incidents" / "recorded"
PREFIX = "2026-11-23 23:11:{:06.3f} UTC [10139] "


def of(tmp_path: Path, text: str, request: Request | None = None) -> Capture:
    path = tmp_path / "postgresql.log"
    path.write_text(text)
    source = Source("postgresql.log", path)
    assert postgresql_log.sniff(source) >= 90
    return postgresql_log.read(source, request or Request())


def values(capture: Capture, metric: str) -> list[float]:
    (group,) = capture.of(metric)
    return [round(float(value), 6) for value in group.values[0]]


def lines(*texts: tuple[float, str]) -> str:
    return "".join(f"{PREFIX.format(second)}{text}\n" for second, text in texts)


def test_each_kind_of_event_is_counted_in_its_second(tmp_path: Path) -> None:
    capture = of(
        tmp_path,
        lines(
            (18.2, "LOG:  checkpoint starting: wal"),
            (18.9, 'ERROR:  could not extend file "base/1/2": No space left on device'),
            (18.9, "HINT:  Check free disk space."),
            (20.1, "LOG:  checkpoint starting: time"),
            (20.2, 'LOG:  temporary file: path "base/pgsql_tmp/pgsql_tmp4492.0", size 7176192'),
            (20.3, "LOG:  connection received: host=10.0.0.7 port=40312"),
            (20.4, "LOG:  process 11 still waiting for ShareLock on transaction 7 after 1000.100 ms"),
            (20.5, "LOG:  process 11 acquired ShareLock on transaction 7 after 3000.300 ms"),
            (21.0, "FATAL:  connection to client lost"),
        ),
    )
    (group,) = capture.of("db_errors_per_s")
    assert list(group.times_ns[:2]) == [1795475479 * 10**9, 1795475480 * 10**9]
    assert group.entities[0].label() == "guest postgresql"
    assert values(capture, "db_errors_per_s") == [1, 0, 0, 1]
    assert values(capture, "db_out_of_space_errors_per_s") == [1, 0, 0, 0]
    assert values(capture, "db_checkpoints_requested_per_s") == [1, 0, 0, 0]
    assert values(capture, "db_checkpoints_timed_per_s") == [0, 0, 1, 0]
    assert values(capture, "db_temp_bytes_per_s") == [0, 0, 7176192, 0]
    assert values(capture, "db_logons_per_s") == [0, 0, 1, 0]
    waits = capture.of("db_lock_wait_ms")[0].values[0]
    assert waits[2] == pytest.approx(2000.2)
    assert np.isnan(waits[[0, 1, 3]]).all()


def test_what_was_not_logged_is_not_measured(tmp_path: Path) -> None:
    capture = of(tmp_path, lines((18.0, "LOG:  database system is ready to accept connections")))
    assert {group.metric for group in capture.groups} == {"db_errors_per_s", "db_out_of_space_errors_per_s"}


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-11-23 23:11:18 UTC [10139]: user=app,db=shop,app=web,client=10.0.0.7 ",
        "2026-11-24 00:11:18.400 +01 [10139-1] app@shop ",
        "2026-11-23 23:11:18.400 GMT:10.0.0.7(40312):app@shop:[10139]:",
    ],
)
def test_prefixes_people_set(tmp_path: Path, prefix: str) -> None:
    capture = of(tmp_path, f'{prefix}ERROR:  relation "x" does not exist at character 15\n')
    (group,) = capture.of("db_errors_per_s")
    assert (int(group.times_ns[0]), float(group.values[0, 0])) == (1795475479 * 10**9, 1.0)
    assert not capture.sources[0].warnings


def test_a_zone_without_an_offset_is_told_and_can_be_given(tmp_path: Path) -> None:
    text = "2026-11-24 00:11:18.400 CET [1] LOG:  checkpoint starting: wal\n"
    assert [warning.code for warning in of(tmp_path, text).sources[0].warnings] == ["no-zone"]
    capture = of(tmp_path, text, Request(timezone="Europe/Berlin"))
    assert int(capture.groups[0].times_ns[0]) == 1795475479 * 10**9


def test_a_statement_that_quotes_the_message_is_no_error(tmp_path: Path) -> None:
    capture = of(
        tmp_path,
        lines((18.0, "LOG:  ready"), (19.0, "STATEMENT:  select 'ERROR:  No space left on device'")),
    )
    assert values(capture, "db_errors_per_s") == [0, 0]
    assert values(capture, "db_out_of_space_errors_per_s") == [0, 0]


def test_a_long_log_has_a_day_of_values_at_most(tmp_path: Path) -> None:
    text = "2026-11-20 00:00:00 UTC [1] ERROR:  a\n2026-11-22 00:00:00 UTC [1] ERROR:  b\n"
    capture = of(tmp_path, text)
    (group,) = capture.of("db_errors_per_s")
    assert group.interval_s == 3.0
    assert len(group.times_ns) == 57601
    assert float(group.values.sum() * 3.0) == pytest.approx(2.0)


def test_other_texts_are_not_its_own(tmp_path: Path) -> None:
    path = tmp_path / "syslog"
    path.write_text("2026-11-23 23:11:18 UTC kernel: nvme0n1: I/O error\n2026-11-23T23:11:18 INFO: x\n")
    assert postgresql_log.sniff(Source("syslog", path)) == 0
    with pytest.raises(InputError, match="no line with a time and a level"):
        postgresql_log.read(Source("syslog", path), Request())


def test_the_recorded_logs_agree_with_their_lines(tmp_path: Path) -> None:
    recordings = sorted(RECORDED.glob("*/*.tar.xz"))
    if not recordings:
        pytest.skip("the recorded incidents are not there")
    counted = 0
    for recording in recordings[::2]:
        with tarfile.open(recording) as archive:
            name = next((one for one in archive.getnames() if one.endswith("/postgresql.log")), None)
            stream = None if name is None else archive.extractfile(name)
            text = "" if stream is None else stream.read().decode()
        if not text:
            continue
        capture = of(tmp_path, text)
        errors = len(re.findall(r"^20\S+ \S+ UTC \[\d+\] (?:ERROR|FATAL|PANIC):", text, re.MULTILINE))
        sizes = sum(int(size) for size in re.findall(r"LOG:  temporary file: .*size (\d+)$", text, re.MULTILINE))
        assert sum(values(capture, "db_errors_per_s")) == errors
        assert sum(float(group.values.sum()) for group in capture.of("db_temp_bytes_per_s")) == pytest.approx(sizes)
        counted += 1
    assert counted >= 10


_FORMER_LINE = re.compile(
    r"(?P<time>(?:19|20)\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) (?P<zone>[A-Z]{1,5}|[+-]\d\d(?::?\d\d)?)\b"
    r".{0,300}?(?<![A-Za-z])(?P<level>DEBUG[1-5]?|NOTICE|WARNING|ERROR|LOG|FATAL|PANIC|STATEMENT|HINT):  (?P<text>.*)"
)
_TEXTS = (
    "checkpoint starting: time",
    "checkpoint starting: wal time",
    "connection received: host=a",
    'temporary file: path "a, size 3", size 42',
    "temporary file: path x, size ",
    "process 11 acquired ShareLock on x after 1.5 ms after 30.25 ms",
    "process 11 still waiting for Блок on x after 7.5 ms: y",
    "process 11 acquired Lock x after 7.5 ms",
    "could not extend: No space left on device",
    "duration: 1.5 ms  statement: select 'ERROR:  x'",
)
_LINES = st.builds(
    "{}{} {}{}{}:  {}".format,
    st.sampled_from(["2026-11-23 23:11:18", "2026-11-23 23:11:19", "2026-02-30 00:00:00", "2026-11-23 24:11:18", "x"]),
    st.sampled_from(["", ".1", ".810", ".1234567", "."]),
    st.sampled_from(["UTC", "GMT", "+01", "+0100", "-03:30", "+01:0", "CET", "+99", "UTC1", "TOOLONG"]),
    st.sampled_from(["", " ", " [1] ", ":b@c:[1]:", " x:  y ", " " * 298 + "л ", " " * 301, "é" * 299 + " "]),
    st.sampled_from(["LOG", "ERROR", "FATAL", "WARNING", "DEBUG3", "HINT", "XLOG", "STATEMENT", "log", ""]),
    st.sampled_from(_TEXTS),
)


@given(st.lists(_LINES, max_size=20), st.sampled_from(["\n", "\r\n"]))
def test_one_pass_finds_what_an_expression_finds(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], end: str
) -> None:
    """Every line is read as a regular expression over the whole text reads it."""
    events: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    seconds = []
    for line in texts:
        match = _FORMER_LINE.match(line)
        if match is None:
            continue
        zone = "+00:00" if match["zone"] in {"UTC", "GMT", "CET"} else match["zone"]
        try:
            moment = datetime.fromisoformat(match["time"] + zone)
        except ValueError:
            continue
        second = int(moment.astimezone(UTC).timestamp())
        seconds.append(second)
        for metric, value in _former_events(match["level"], match["text"]):
            events[metric][second].append(value)
    path = tmp_path_factory.mktemp("log") / "postgresql.log"
    path.write_bytes("".join(line + end for line in texts).encode())
    if not seconds:
        with pytest.raises(InputError, match="no line with a time"):
            postgresql_log.read(Source("postgresql.log", path), Request())
        return
    capture = postgresql_log.read(Source("postgresql.log", path), Request())
    groups = [group for group in capture.groups if not group.metric.startswith("db_logged_")]
    assert {group.metric for group in groups} == {*events, "db_errors_per_s", "db_out_of_space_errors_per_s"}
    for group in groups:
        assert list(group.times_ns // 10**9) == list(range(min(seconds) + 1, max(seconds) + 2))
        for moment, value in zip(group.times_ns // 10**9 - 1, group.values[0], strict=True):
            found = events[group.metric][int(moment)]
            mean = np.mean(found) if found else np.nan
            assert value == pytest.approx(mean if group.metric.endswith("_ms") else sum(found), nan_ok=True)


def _former_events(level: str, text: str) -> list[tuple[str, float]]:
    bad = level in {"ERROR", "FATAL", "PANIC"}
    found = [("db_errors_per_s", 1.0)] if bad else []
    if (bad or level in {"WARNING", "LOG"}) and "No space left on device" in text:
        found.append(("db_out_of_space_errors_per_s", 1.0))
    if level != "LOG":
        return found
    size = re.match(r"temporary file: path .*, size (\d{1,18})", text)
    wait = re.match(r"process \d+ (?:still waiting for|acquired) \w+ on .* after (\d{1,12}\.\d+) ms", text)
    if text.startswith("checkpoint starting:"):
        kind = "timed" if text.endswith(": time") else "requested"
        found.append((f"db_checkpoints_{kind}_per_s", 1.0))
    elif text.startswith("connection received:"):
        found.append(("db_logons_per_s", 1.0))
    elif size is not None:
        found.append(("db_temp_bytes_per_s", float(size[1])))
    elif wait is not None:
        found.append(("db_lock_wait_ms", float(wait[1])))
    return found


# A migration waits behind a long transaction, everybody else behind the migration; one gives up, one never gets it.
DDL = lines(
    (10.0, "LOG:  connection received: host=10.0.0.7 port=40312"),
    (13.5, "LOG:  process 20 still waiting for AccessExclusiveLock on relation 16401 of database 5 after 1000.000 ms"),
    (13.5, "DETAIL:  Process holding the lock: 77. Wait queue: 20."),
    (13.5, "STATEMENT:  ALTER TABLE accounts ADD COLUMN note text"),
    (15.0, "LOG:  process 10139 still waiting for RowExclusiveLock on relation 16401 of database 5 after 1000.000 ms"),
    (15.0, "DETAIL:  Processes holding the lock: 77, 78. Wait queue: 20, 10139, 22."),
    (16.0, "LOG:  process 22 still waiting for RowExclusiveLock on relation 16401 of database 5 after 1500.000 ms"),
    (16.0, "DETAIL:  Process holding the lock: 77. Wait queue: 20, 10139, 22."),
    (18.0, "ERROR:  canceling statement due to user request"),
    (20.5, "LOG:  process 20 acquired AccessExclusiveLock on relation 16401 of database 5 after 8000.000 ms"),
    (22.0, "LOG:  connection received: host=10.0.0.7 port=40313"),
)


def test_sessions_that_wait_for_locks_are_counted_from_begin_to_end(tmp_path: Path) -> None:
    counted = values(of(tmp_path, DDL), "db_logged_lock_waits_count")
    # 20 waits from 12.5 to 20.5, 10139 from 14.0 until it is canceled at 18.0, 22 from 14.5 to the end at 22.0.
    assert counted == [0.0, 0.0, 0.5, 1.0, 2.5, 3.0, 3.0, 3.0, 2.0, 2.0, 1.5, 1.0, 0.0]


def test_the_longest_queue_is_kept_at_its_line(tmp_path: Path) -> None:
    counted = values(of(tmp_path, DDL), "db_logged_lock_queue_count_max")
    assert [value for value in counted if not math.isnan(value)] == [1.0, 3.0, 3.0]
    assert [index for index, value in enumerate(counted) if not math.isnan(value)] == [3, 5, 6]


def test_a_log_without_queues_has_none(tmp_path: Path) -> None:
    text = lines((13.5, "LOG:  process 20 still waiting for ShareLock on transaction 7 after 1000.000 ms"))
    assert of(tmp_path, text).of("db_logged_lock_queue_count_max") == []


def test_the_process_that_holds_the_lock_is_named_with_what_it_holds(tmp_path: Path) -> None:
    (group,) = of(tmp_path, DDL).of("db_logged_sessions_behind_count")
    assert [entity.name for entity in group.entities] == ["pid 77 (holds relation 16401 of database 5)"]
    assert float(group.values.max()) == 3.0


def test_a_log_without_lock_waits_counts_none(tmp_path: Path) -> None:
    assert (
        of(tmp_path, lines((10.0, "LOG:  connection received: host=a port=1"))).of("db_logged_lock_waits_count") == []
    )


def test_lock_waits_that_only_the_log_saw_are_named(tmp_path: Path) -> None:
    capture = of(tmp_path, DDL)
    findings = [f for f in diagnose(capture).findings if f.rule == "db-lock-waits"]
    assert [f.severity for f in findings] == [Severity.MEDIUM]
    assert "pid 77 (holds relation 16401 of database 5)" in findings[0].evidence[-1].statement


# Two commits and a statement of two lines that end late, a vacuum, and what was only parsed.
DURATIONS = (
    lines(
        (10.0, "LOG:  duration: 3000.000 ms  statement: COMMIT"),
        (12.0, "LOG:  duration: 1000.000 ms  execute S_1: commit"),
        (12.5, "LOG:  duration: 700.000 ms  parse S_2: select 1"),
        (14.0, "LOG:  duration: 4000.000 ms  execute fetch_orders: select *"),
    )
    + "\tfrom shop.orders where id = 7\n"
    + lines(
        (15.0, 'LOG:  automatic vacuum of table "shop.public.items": index scans: 1'),
    )
    + "\tsystem usage: CPU: user: 1.0 s, system: 0.5 s, elapsed: 2.50 s\n"
    + lines((16.0, "LOG:  unexpected EOF on client"))
)


def test_durations_are_told_commits_apart(tmp_path: Path) -> None:
    capture = of(tmp_path, DURATIONS)
    assert values(capture, "db_logged_commit_ms")[:3] == pytest.approx([3000.0, np.nan, 1000.0], nan_ok=True)
    assert values(capture, "db_logged_statement_ms")[4] == 4000.0
    assert sum(values(capture, "db_logged_statements_per_s")) == 1.0
    assert sum(values(capture, "db_autovacuums_per_s")) == 1.0


def test_a_statement_was_at_work_from_its_begin_to_its_end(tmp_path: Path) -> None:
    capture = of(tmp_path, DURATIONS)
    groups = capture.of("db_logged_statement_sessions_count")
    at_work = {e.name: row.tolist() for g in groups for e, row in zip(g.entities, g.values, strict=True)}
    assert at_work == {
        "COMMIT": [1, 1, 1, 0, 1, 0, 0, 0, 0, 0],
        "SELECT ... FROM shop.orders": [0, 0, 0, 1, 1, 1, 1, 0, 0, 0],
    }
    (worker,) = capture.of("db_worker_sessions_count")
    assert worker.entities[0].name == "autovacuum worker on items"
    assert float(np.nansum(worker.values)) == 2.5
    assert b"id = 7" not in repr(capture).encode()


SYNCED = (
    "LOG:  checkpoint complete: wrote 16774 buffers (1.6%); 0 WAL file(s) added, 0 removed, 30 recycled; "
    "write=72.542 s, sync=2.164 s, total=89.733 s; sync files=885, longest=1.812 s, average=0.019 s"
)


def test_the_sync_of_a_checkpoint_is_told_while_it_lasts(tmp_path: Path) -> None:
    capture = of(tmp_path, lines((10.0, "LOG:  ready"), (15.5, SYNCED), (16.0, "LOG:  ready")))
    nan = np.nan
    sync = [nan, nan, nan, 2164.0, 2164.0, 2164.0, nan]
    assert values(capture, "db_checkpoint_sync_ms") == pytest.approx(sync, nan_ok=True)
    longest = [nan, nan, nan, 1812.0, 1812.0, 1812.0, nan]
    assert values(capture, "db_checkpoint_sync_longest_ms") == pytest.approx(longest, nan_ok=True)
    write = [nan, nan, nan, nan, nan, 72542.0, nan]
    assert values(capture, "db_checkpoint_write_ms") == pytest.approx(write, nan_ok=True)
    findings = [f for f in diagnose(capture).findings if f.rule == "db-checkpoint-sync-slow"]
    assert [f.severity for f in findings] == [Severity.MEDIUM]
    assert "slowest file took up to 1,812 ms" in findings[0].evidence[-1].statement


def test_a_sync_before_the_first_line_begins_with_it(tmp_path: Path) -> None:
    capture = of(tmp_path, lines((15.5, SYNCED), (16.0, "LOG:  ready")))
    assert values(capture, "db_checkpoint_sync_ms") == pytest.approx([2164.0, np.nan], nan_ok=True)
    assert values(capture, "db_errors_per_s") == [0.0, 0.0]


FIELD = Path(__file__).parents[3] / "shared" / "field"


def test_the_field_case_of_slow_syncs(tmp_path: Path) -> None:
    path = FIELD / "pg-checkpoint-sync" / "postgresql.log"
    if not path.exists():
        pytest.skip("the field cases are not there")
    capture = of(tmp_path, path.read_text())
    assert np.nanmax(capture.of("db_checkpoint_sync_ms")[0].values) == 17164.0
    assert [f.severity for f in diagnose(capture).findings if f.rule == "db-checkpoint-sync-slow"] == [Severity.HIGH]


def series(capture: Capture) -> dict[tuple[str, str], tuple[list[int], list[float]]]:
    return {
        (group.metric, entity.label()): (group.times_ns.tolist(), np.round(row, 6).tolist())
        for group in capture.groups
        for entity, row in zip(group.entities, group.values, strict=True)
    }


def assert_same(one: Capture, other: Capture) -> None:
    left, right = series(one), series(other)
    assert left.keys() == right.keys()
    for key, (times, numbers) in left.items():
        assert times == right[key][0], key
        assert numbers == pytest.approx(right[key][1], nan_ok=True), key


FORM_ENTRIES = (
    (10.0, 7, "LOG", "checkpoint starting: time"),
    (11.5, 8, "LOG", "duration: 1500.000 ms  statement: select *\n\tfrom shop.orders\n\twhere a = 'ERROR:  x'"),
    (12.0, 20, "LOG", "process 20 still waiting for ShareLock on transaction 7 after 1000.000 ms"),
    (12.0, 20, "DETAIL", "Process holding the lock: 77. Wait queue: 20."),
    (13.0, 20, "ERROR", 'canceling statement "x", due to user request'),
    (13.5, 9, "LOG", 'temporary file: path "base/pgsql_tmp/a", size 42'),
)


def as_text(prefix: str = "2026-11-23 23:11:{second:06.3f} UTC [{pid}] ", each: str = "") -> str:
    texts = []
    for second, pid, level, text in FORM_ENTRIES:
        whole = prefix.format(second=second, pid=pid, epoch=1795475460 + second) + f"{level}:  {text}"
        texts += [each.format(second=second) + line for line in whole.split("\n")]
    return "\n".join(texts) + "\n"


def as_csv() -> str:
    rows: list[str] = []
    for second, pid, level, text in FORM_ENTRIES:
        quoted = text.replace("\t", "").replace('"', '""')
        if level == "DETAIL":
            rows[-1] = rows[-1].replace(",,,,,", f',"{quoted}",,,,', 1)
            continue
        session = f'"app","shop",{pid},"[local]",5f.1,1,"SELECT",2026-11-23 23:00:00 UTC,3/1,0'
        head = f"2026-11-23 23:11:{second:06.3f} UTC,{session}"
        rows.append(f'{head},{level},00000,"{quoted}",,,,,,,,,"web","client backend",,0\n')
    return "".join(rows)


def as_json() -> str:
    rows: list[dict[str, object]] = []
    for second, pid, level, text in FORM_ENTRIES:
        if level == "DETAIL":
            rows[-1]["detail"] = text
            continue
        stamp = f"2026-11-23 23:11:{second:06.3f} UTC"
        rows.append({"timestamp": stamp, "pid": pid, "error_severity": level, "message": text.replace("\t", "")})
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_syslog(head: str, *, tab: str = "#011") -> str:
    texts, number = [], 0
    for second, pid, level, text in FORM_ENTRIES:
        number += 1
        for part, line in enumerate(text.split("\n"), 1):
            start = f"app@shop {level}:  " if part == 1 else ""
            body = line.replace("\t", tab)
            texts.append(f"{head.format(second=second, pid=pid)}[{number}-{part}] {start}{body}\n")
            texts.append(f"{head.format(second=second, pid=1).replace('postgres', 'cron')}(root) CMD (x)\n")
    return "".join(texts)


FORMS = {
    "csvlog": as_csv(),
    "csvlog, cut at its head": 'from a\nwhere b = "",c",,,,,"web"\n' + as_csv(),
    "jsonlog": as_json(),
    "pid first": as_text("{pid} 2026-11-23 23:11:{second:06.3f} UTC 10.0.0.5 "),
    "epoch": as_text("{epoch:.3f} [{pid}] app@shop "),
    "session's begin first": as_text("2026-11-23 22:00:00 UTC [{pid}]: 2026-11-23 23:11:{second:06.3f} UTC "),
    "RDS": as_text("2026-11-23 23:11:{second:06.3f} UTC:10.0.0.5(51234):app@shop:[{pid}]:"),
    "docker": as_text("[{pid}] ", "2026-11-23T23:11:{second:06.3f}000001Z "),
    "kubernetes": as_text("[{pid}] ", "2026-11-23T23:11:{second:06.3f}000001Z stderr F "),
    "cut at its head": "\twhere a = 'LOG:  x'\n" + as_text(),
    "docker json": "".join(
        json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-11-23T23:59:59.1Z"}) + "\n"
        for line in as_text().splitlines()
    ),
    "cloud, many lines": json.dumps(
        [{"insertId": "a", "textPayload": line, "labels": {"a": "b"}} for line in as_text().splitlines()], indent=2
    ),
    "RFC 5424": as_syslog("<134>1 2026-11-23T23:11:{second:06.3f}Z db01 postgres {pid} - - "),
    "rsyslog, ISO": as_syslog("2026-11-23T23:11:{second:06.3f}+00:00 db01 postgres[{pid}]: "),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_series(tmp_path: Path, form: str) -> None:
    expected = of(tmp_path, as_text())
    assert "db_logged_sessions_behind_count" in {metric for metric, _ in series(expected)}
    capture = of(tmp_path, FORMS[form])
    assert_same(capture, expected)


def test_syslog_without_a_year_is_of_the_last_that_fits(tmp_path: Path) -> None:
    text = as_syslog("Nov 23 23:11:{second:02.0f} db01 postgres[{pid}]: ")
    capture = of(tmp_path, text, Request(date="2026-12-01"))
    assert capture.of("db_errors_per_s")[0].times_ns[0] == 1795475471 * 10**9
    assert {"no-year", "no-zone"} <= {warning.code for warning in capture.sources[0].warnings}
    assert [e.name for g in capture.of("db_logged_statement_sessions_count") for e in g.entities] == [
        "SELECT ... FROM shop.orders"
    ]


def test_a_log_without_times_is_refused_with_what_to_set(tmp_path: Path) -> None:
    path = tmp_path / "postgresql.log"
    path.write_text(as_text("[{pid}] app@shop "))
    source = Source("postgresql.log", path)
    assert postgresql_log.sniff(source) == 90
    with pytest.raises(InputError, match="no line with a time, and 6 with a level") as refused:
        postgresql_log.read(source, Request())
    assert "log_line_prefix" in refused.value.advice


def test_another_programs_log_is_not_its_own(tmp_path: Path) -> None:
    for text in (
        "INFO:     Started server process [1]\nWARNING:  StatReload detected\nERROR:    x\n",
        "2026-11-23T23:11:18Z INFO:  Started\n2026-11-23T23:11:18Z WARNING:  x\n",
        '{"message": "x", "timestamp": "2026-11-23T23:11:18Z", "level": "ERROR"}\n',
        "Nov 23 23:11:18 db01 kernel: x\n",
    ):
        path = tmp_path / "other"
        path.write_text(text)
        assert postgresql_log.sniff(Source("other", path)) == 0, text


@pytest.mark.parametrize("name", ["csvlog.csv", "jsonlog.json", "syslog.log"])
def test_the_field_cases_of_forms(tmp_path: Path, name: str) -> None:
    path = FIELD / "pg-log-forms" / name
    if not path.exists():
        pytest.skip("the field cases are not there")
    capture = of(tmp_path, path.read_text(), Request(timezone="Europe/Berlin", date="2025-11-20"))
    (checkpoints,) = capture.of("db_checkpoints_timed_per_s")
    assert checkpoints.times_ns[0] == 1763629201 * 10**9
    assert float(np.nansum(checkpoints.values)) == path.read_text().count("checkpoint starting: time")
    assert np.nanmax(capture.of("db_checkpoint_sync_ms")[0].values) == 17164.0


def test_the_pass_agrees_with_the_walks(tmp_path: Path) -> None:
    """The statements and the waits are those that expressions find line by line."""
    for text in (DURATIONS, DDL, as_text()):
        every = text.splitlines(keepends=True)
        waits = postgresql_log_walks.logged_waits(every, _utc_s)
        spans = list(
            postgresql_log_walks.logged_spans(every, lambda line: postgresql_log_walks.line_time(line, _utc_s))
        )
        capture = of(tmp_path, text)
        counts = capture.of("db_logged_lock_waits_count")
        waited = sum(wait.end_s - wait.start_s for wait in waits)
        assert sum(float(g.values.sum()) for g in counts) == pytest.approx(waited)
        for metric, is_worker in (("db_logged_statement_sessions_count", False), ("db_worker_sessions_count", True)):
            for group in capture.of(metric):
                for entity, row in zip(group.entities, group.values, strict=True):
                    first = int(group.times_ns[0]) // 10**9 - 1
                    expected = postgresql_log_walks.at_work(spans, [(entity.name, is_worker)], first, 1, len(row))
                    assert row.tolist() == pytest.approx(expected[entity.name, is_worker].tolist(), abs=1e-6)


def _utc_s(stamp: str, _: str) -> float:
    return datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp()


_WORDS = st.sampled_from(
    ["select", "FROM", "update", "insert", "into", "only", "table", "lock", "vacuum", "analyze", "autovacuum:",
     "commit", "a.b", "a.b.c", "t", "T1", "'x'", "*", "(a,", "b)", "$1", "é", "tablé", ";", ".",
     "x" * 70, "do", "selects", "t$"]
)  # fmt: skip


@given(st.lists(st.tuples(_WORDS, st.sampled_from([" ", "  ", "\n\t", ""])), min_size=1, max_size=8))
def test_statements_have_the_names_that_expressions_give(words: list[tuple[str, str]]) -> None:
    query = "".join(word + blank for word, blank in words)
    text = f"2026-11-23 23:11:18 UTC [1] LOG:  duration: 1.000 ms  statement: {query}"
    log = PostgresqlLog.from_bytes(text.encode(), "log", (1970, 2199), (2026, 12, 31))
    assert [work[0] for work in log.works] == [shown_name(statement_name(query))]


def test_settings_that_were_changed_are_told_with_values_that_are_no_secret(tmp_path: Path) -> None:
    capture = of(
        tmp_path,
        lines(
            (18.2, "LOG:  received SIGHUP, reloading configuration files"),
            (18.2, 'LOG:  parameter "commit_delay" changed to "50000"'),
            (18.2, 'LOG:  parameter "primary_conninfo" changed to "host=db02 password=hush"'),
            (18.2, 'LOG:  parameter "shared_preload_libraries" cannot be changed without restarting the server'),
            (18.2, 'LOG:  parameter "log_directory" changed to "/srv/hush"'),
            (20.1, 'LOG:  parameter "commit_delay" removed from configuration file, reset to default'),
            (21.0, 'ERROR:  parameter "work_mem" changed to "1"'),
        ),
    )
    groups = capture.of("db_setting_changes_per_s")
    changes = {entity: group.values[row].tolist() for group in groups for row, entity in enumerate(group.entities)}
    assert {entity.name: rates for entity, rates in changes.items()} == {
        "commit_delay = 50000": [1, 0, 0, 0],
        "primary_conninfo changed": [1, 0, 0, 0],
        "log_directory changed": [1, 0, 0, 0],
        "commit_delay reset to its default": [0, 0, 1, 0],
    }
    known = {entity.name: capture.inventory.get(entity, "value") for entity in changes}
    assert known["commit_delay = 50000"] == "50000"
    assert known["primary_conninfo changed"] is None
    assert "hush" not in str(capture.inventory)


def test_a_log_without_changed_settings_has_no_series_of_them(tmp_path: Path) -> None:
    capture = of(tmp_path, lines((18.2, "LOG:  checkpoint starting: wal")))
    assert not capture.of("db_setting_changes_per_s")
