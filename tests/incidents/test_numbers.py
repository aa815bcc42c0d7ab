"""The numbers a recording is checked by, read from the tools' own text."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from incidents.contract import felt, near, rises, unfelt
from incidents.numbers import Numbers, Phase, read, wait_shares

IOSTAT = """Linux 6.1 (db01) \t11/23/26 \t_x86_64_\t(2 CPU)

{blocks}"""
BLOCK = """2026-11-23T22:00:{second:02d}+0000
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           5.00    0.00    5.00   10.00    1.00   79.00

Device            r/s     rkB/s   r_await     w/s     wkB/s w_await     f/s f_await  aqu-sz  %util
loop1            {reads}     16.00     {wait}    0.00      0.00    0.00    0.00    0.00    0.50   20.00

"""


def at(second: float) -> datetime:
    return datetime(2026, 11, 23, 22, 0, tzinfo=UTC).replace(
        second=int(second), microsecond=round(second % 1 * 1_000_000)
    )


PHASES = [Phase("healthy", at(0), at(10)), Phase("fault", at(10), at(30))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    blocks = "".join(
        BLOCK.format(second=second, reads=f"{100 if second < 10 else 40}.00", wait=f"{1 if second < 10 else 12}.50")
        for second in range(30)
    )
    (tmp_path / "iostat.txt").write_text(IOSTAT.format(blocks=blocks))
    start = at(0).timestamp()
    lines = [f"progress: {start + s:.3f} s, {90 if s < 10 else 0}.0 tps, lat 2.000 ms stddev 1.0\n" for s in range(30)]
    (tmp_path / "pgbench.txt").write_text("pgbench (15.18)\n" + "".join(lines))
    return tmp_path


def test_medians_inside_and_outside(folder: Path) -> None:
    numbers = read(folder, PHASES, {"data": "loop1"})
    assert (numbers.outside["data_read_ms"], numbers.inside["data_read_ms"]) == (1.5, 12.5)
    assert (numbers.outside["data_reads_per_s"], numbers.inside["data_reads_per_s"]) == (100.0, 40.0)
    assert numbers.inside["cpu_busy_pct"] == 11.0
    assert "data_write_ms" not in numbers.inside, "no write: its latency was not measured"
    # The last transaction ended at second 9, the last sample of the fault is that of second 29.
    assert numbers.largest_inside["standstill_s"] == 20.0


def test_what_a_fault_shows(folder: Path) -> None:
    numbers = read(folder, PHASES, {"data": "loop1"})
    assert rises(numbers, "data_read_ms", 8.0).is_true
    assert not rises(numbers, "data_read_ms", 9.0).is_true
    assert not rises(numbers, "wal_read_ms").is_true, "what was not recorded shows nothing"
    assert near(numbers, "data_reads_per_s", 36.0, 0.15).is_true
    assert not near(numbers, "data_reads_per_s", 30.0, 0.15).is_true
    assert felt(numbers).is_true
    assert not unfelt(numbers).is_true


def test_a_load_that_did_nothing_is_neither_felt_nor_healthy() -> None:
    nothing = Numbers({}, {}, {}, {}, {}, {})
    assert not felt(nothing).is_true
    assert not unfelt(nothing).is_true


def test_shares_of_waiting(tmp_path: Path) -> None:
    path = tmp_path / "pg_active_sessions.csv"
    rows = ["now,pid,datname,backend_type,state,wait_event_type,wait_event"]
    for tenth in range(100):
        now = at(10 + tenth / 10).isoformat(sep=" ")
        rows.append(f"{now},11,bench,client backend,active,Lock,tuple")
        rows.append(f"{now},12,bench,client backend,{'active' if tenth % 2 else 'idle in transaction'},,")
        rows.append(f"{now},13,,checkpointer,active,IO,DataFileWrite")
    rows.append(f"{at(29.9).isoformat(sep=' ')},,,,,,")
    path.write_text("\n".join(rows) + "\n")
    shares = wait_shares(path, PHASES[1])
    assert shares == {"Lock:tuple": pytest.approx(2 / 3), "CPU": pytest.approx(1 / 3)}
    assert wait_shares(path, PHASES[0]) == {}
