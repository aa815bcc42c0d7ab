"""What a recording could show: short ones are judged by the size of the effect, and clear nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.answer import Disk, Reason
from leadline.core.model.finding import Diagnosis
from leadline.core.model.vocabulary import Layer, LayerState, Severity
from leadline.faces.words.answers import disk_sentence, headline
from leadline.faces.words.findings import Quotes

DEVICE = "Device   r/s   w/s   rkB/s   wkB/s   r_await   w_await   aqu-sz   %util\n"
VMSTAT = (
    "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n"
    " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
)


def diagnosed(folder: Path, text: str, name: str = "recorded.txt") -> Diagnosis:
    path = folder / name
    path.write_text(text)
    return diagnose(import_paths([path], Request(metrics=metrics_read())).capture)


def iostat(*reports: tuple[float, float, float, float]) -> str:
    """Reports of sdb: writes per second, await of writes, queue, utilisation; the first is since boot."""
    rows = (f"sdb 0.00 {w} 0.00 {8 * w} 0.00 {ms} {queue} {util}\n" for w, ms, queue, util in reports)
    return "Linux 6.1.0 (db01)\t11/20/2026\t_x86_64_\t(4 CPU)\n\n" + "\n".join(DEVICE + row for row in rows)


def vmstat(*rows: tuple[int, int, int, int]) -> str:
    """Lines: blocked tasks, idle, I/O wait, steal."""
    return VMSTAT + "".join(
        f" 2 {b} 0 140000 16000 150000 0 0 60 17 1700 1600 3 2 {i} {wa} {st}\n" for b, i, wa, st in rows
    )


def top_of(diagnosis: Diagnosis) -> str:
    assert diagnosis.top is not None
    return diagnosis.top.rule


def test_a_few_reports_far_beyond_the_limit_name_the_slow_disk(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, iostat((40, 9, 1, 30), *[(250, 310 + n, 78, 99.7) for n in range(3)]))
    assert top_of(diagnosis) == "guest-disk-await-high"
    assert diagnosis.top is not None
    assert diagnosis.top.severity is Severity.MEDIUM
    assert "(limit 10 ms)" in diagnosis.top.summary
    assert any("only 3 s" in one.statement for one in diagnosis.top.evidence)
    assert diagnosis.answer.disk is Disk.YES_AS_SEEN_BY_GUEST


@pytest.mark.parametrize("count", [1, 2, 5, 10, 13])
def test_a_recording_shorter_than_a_rule_asks_for_clears_no_disk(count: int, tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, iostat(*[(100, 1.1, 0.1, 9)] * count))
    assert diagnosis.findings == ()
    assert diagnosis.answer.disk is Disk.UNKNOWN
    assert "are needed to clear a disk" in disk_sentence(diagnosis.answer, Quotes())
    assert diagnosis.layer(Layer.GUEST).state is LayerState.NOT_EXAMINED


def test_a_long_quick_recording_clears_the_disk(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, iostat(*[(100, 1.1, 0.1, 9)] * 40))
    assert diagnosis.answer.because is Reason.QUICK
    clears = {power.rule: power.clears for power in diagnosis.powers}
    assert clears["guest-disk-await-high"]


def test_one_report_of_a_disk_that_completes_nothing_is_a_standstill(tmp_path: Path) -> None:
    cpu = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n  1.00    0.00    0.00   99.00    0.00    0.00\n\n"
    diagnosis = diagnosed(tmp_path, cpu + DEVICE + "sdb 0.00 0.00 0.00 0.00 0.00 0.00 64.00 100.00\n")
    assert top_of(diagnosis) == "guest-disk-stalled"
    assert diagnosis.top is not None
    assert "since boot" in diagnosis.top.evidence[-1].statement
    assert diagnosis.answer.disk is Disk.YES_AS_SEEN_BY_GUEST


def test_steal_in_a_few_lines_is_steal(tmp_path: Path) -> None:
    assert top_of(diagnosed(tmp_path, vmstat(*[(0, 4, 0, 88)] * 4))) == "guest-steal-time"
    assert diagnosed(tmp_path, vmstat(*[(0, 85, 0, 8)] * 4)).findings == ()  # above the limit of 5 %, not twice


def test_waiting_for_io_in_a_few_lines_is_said(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, vmstat((7, 9, 80, 0), (6, 9, 75, 0), (6, 12, 66, 0)))
    assert headline(diagnosis, Quotes()).startswith("I/O wait 70")
    assert diagnosis.answer.because is Reason.IO_WAIT


def test_one_screen_of_top_is_judged_and_doubted(tmp_path: Path) -> None:
    screen = (
        "top - 10:20:19 up 30 days,  7:08,  1 user,  load average: 9.10, 8.20, 8.64\n"
        "Tasks: 209 total,   8 running, 201 sleeping,   0 stopped,   0 zombie\n"
        "%Cpu(s):  4.0 us,  1.0 sy,  0.0 ni, 20.0 id,  0.0 wa,  0.0 hi,  0.0 si, 75.0 st\n"
        "MiB Mem :   7900.0 total,   2113.7 free,   3709.7 used,   2076.6 buff/cache\n"
        "MiB Swap:   1024.0 total,   1024.0 free,      0.0 used.   3958.3 avail Mem\n\n"
        "    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n"
        " 165929 root      20   0  472060 346236 218908 R   1.3   4.3   4:39.99 postgres\n"
    )
    diagnosis = diagnosed(tmp_path, screen)
    assert top_of(diagnosis) == "guest-steal-time"
    assert diagnosis.top is not None
    assert "since boot" in diagnosis.top.evidence[-1].statement


def test_a_disk_near_its_limit_is_not_cleared(tmp_path: Path) -> None:
    """8.6 ms where 10 ms is the limit: empty flushes may hide that writes take twice as long."""
    diagnosis = diagnosed(tmp_path, iostat(*[(400, 8.6, 3.4, 70)] * 60))
    assert disk_sentence(diagnosis.answer, Quotes()) == (
        "Not known: no limit was passed for long, but db01 sdb takes 8.6 ms per request, near the limit of 10 ms."
    )


@pytest.mark.parametrize(("queue", "util"), [(1.6, 96.0), (0.9, 97.0), (1.3, 85.0)])
def test_a_busy_disk_with_requests_waiting_is_not_cleared(queue: float, util: float, tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, iostat(*[(400, 3.2, queue, util)] * 60))
    assert disk_sentence(diagnosis.answer, Quotes()).startswith(
        f"Not known: no limit was passed for long, but db01 sdb is {util:.0f} % busy"
    )


def test_a_disk_that_is_always_busy_at_a_low_latency_is_cleared(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, iostat(*[(20000, 0.3, 6.0, 100)] * 60))
    assert diagnosis.answer.disk is Disk.NO


def test_a_disk_that_is_busy_for_a_tenth_of_the_time_is_cleared(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, iostat(*[(100, 1.0, 0.1, 9)] * 54, *[(400, 3.2, 1.6, 96)] * 6))
    assert diagnosis.answer.disk is Disk.NO


def test_a_disk_that_is_slow_now_and_then_is_not_cleared(tmp_path: Path) -> None:
    """Ten commits a second, of which those of every fifth second wait 45 ms: too few for an average to convict."""
    reports = [(10, 45.0, 0.4, 12) if second % 5 == 0 else (10, 1.0, 0.1, 2) for second in range(60)]
    answer = disk_sentence(diagnosed(tmp_path, iostat(*reports)).answer, Quotes())
    assert answer.startswith("Not known: no limit was passed for long, but db01 sdb takes 45 ms per request in ")


def test_the_time_of_a_cleared_disk_is_the_mean_of_its_requests_not_of_its_reports(tmp_path: Path) -> None:
    """90 requests of 1 ms, then 10 of 2 ms."""
    diagnosis = diagnosed(tmp_path, iostat(*[(9, 1.0, 0.1, 9), (1, 2.0, 0.1, 9)] * 20))
    assert diagnosis.answer.disk is Disk.NO
    assert diagnosis.answer.level is not None
    assert diagnosis.answer.level.value == pytest.approx(1.1, abs=0.01)


def test_a_disk_with_few_requests_that_much_waits_for_is_not_cleared(tmp_path: Path) -> None:
    """Too few requests a second for a rule, each of which takes half a second, in a quarter of the reports."""
    reports = [(3, 500.0, 1.5, 20) if second % 4 == 0 else (0, 0.0, 0.0, 0) for second in range(60)]
    answer = disk_sentence(diagnosed(tmp_path, iostat(*reports)).answer, Quotes())
    assert answer.startswith("Not known: no limit was passed for long, but db01 sdb takes 500 ms per request in ")
    few = [(1, 50.0, 0.1, 2) if second % 4 == 0 else (0, 0.0, 0.0, 0) for second in range(60)]
    assert diagnosed(tmp_path, iostat(*few)).answer.disk is Disk.NO
