"""A damaged line costs itself and nothing else: what is sound is read, what was left out is counted and named."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read import damage
from leadline.app.read.importing import import_paths
from leadline.core.model.answer import Disk, Reason
from leadline.core.model.capture import LEFT_OUT, Capture
from leadline.core.model.errors import InputError
from tests.app.read.test_dress import IOSTAT, VMSTAT

ROWS = 200
STRAY = ("Connection to db01 closed.", "-bash: syntax error", "*** 3 messages", "kernel: [12.5] oom", "~")


def vmstat(rows: int = ROWS) -> list[str]:
    head = VMSTAT.splitlines()[:2]
    return [
        *head,
        *(
            f" {n % 7}  1      0 181290  46000 778700    0    0  {n:4d}  3800 1600 2100  5  3  2 90  0"
            for n in range(rows)
        ),
    ]


def iostat(reports: int = 30) -> list[str]:
    head, cpu, disk = IOSTAT.split("\n\n")
    row = disk.splitlines()[1]
    blocks = [head, ""]
    for n in range(reports):
        blocks += [
            *cpu.splitlines(),
            "",
            disk.splitlines()[0],
            row.replace("100.00", f"{100 + n}.00"),
            row.replace("sda", "sdb"),
            "",
        ]
    return blocks


def perfmon(rows: int = ROWS) -> list[str]:
    names = ["(PDH-CSV 4.0) (UTC)(0)", *(f"\\\\SQL01\\PhysicalDisk({n} C:)\\Disk Reads/sec" for n in range(4))]
    quoted = [",".join(f'"{name}"' for name in names)]
    for n in range(rows):
        cells = [f"11/20/2026 10:{n // 60:02}:{n % 60:02}.000", *(f"{n + d}.5" for d in range(4))]
        quoted.append(",".join(f'"{cell}"' for cell in cells))
    return quoted


def read(path: Path, lines: list[str], ending: str = "\n") -> Capture:
    path.write_bytes((ending.join(lines) + ending).encode())
    return import_paths([path]).capture


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def said(capture: Capture) -> list[tuple[int, str]]:
    return [(w.count, w.message) for one in capture.sources for w in one.warnings if w.code == LEFT_OUT]


def sums(capture: Capture) -> dict[tuple[str, str], tuple[int, float]]:
    """Of every series, how many values and their sum."""
    return {
        (group.metric, entity.label()): (int(np.isfinite(values).sum()), float(np.nansum(values)))
        for group in capture.groups
        for entity, values in zip(group.entities, group.values, strict=True)
    }


@pytest.mark.parametrize("make", [vmstat, iostat, perfmon])
@pytest.mark.parametrize("stray", STRAY)
def test_a_stray_line_loses_nothing(tmp_path: Path, make: Callable[[], list[str]], stray: str) -> None:
    lines = make()
    whole = read(tmp_path / "whole.csv", lines)
    middle = len(lines) // 2
    damaged = read(tmp_path / "damaged.csv", [*lines[:middle], stray, *lines[middle:]])
    assert sums(damaged) == sums(whole)
    ((count, message),) = said(damaged)
    assert count == 1
    assert f"line {middle + 1}" in message
    assert stray[:20] in message


def test_torn_rows_are_counted_and_named_and_the_others_read(tmp_path: Path) -> None:
    lines = vmstat()
    torn = (50, 51, 120)
    capture = read(tmp_path / "vmstat.txt", [line[: 20 if n in torn else 200] for n, line in enumerate(lines)])
    (group,) = capture.of("guest_block_in_kib_per_s")
    kept = [n for n in range(ROWS) if n + 2 not in torn]
    assert group.values[0].tolist() == kept[1:]  # the first is since boot
    ((count, message),) = said(capture)
    assert count == 3
    assert f"left out: 3 damaged lines of {ROWS + 2} (lines 51, 52, 121); of the first: " in message
    assert "is not a heading or 17 numbers" in message


def test_a_message_that_came_again_and_again_costs_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "PASSES_MAX", 3)
    lines = [part for line in vmstat() for part in (line, "Timeout, server not responding.")]
    del lines[1]
    capture = read(tmp_path / "vmstat.txt", lines)
    assert said(capture)[0][0] == ROWS + 1
    assert f"(lines 3, 5, 7, 9, 11 and {ROWS - 4} more)" in said(capture)[0][1]


def test_a_blank_line_in_a_table_loses_no_row(tmp_path: Path) -> None:
    lines = iostat()
    at = next(n for n, line in enumerate(lines) if line.startswith("sdb") and n > 60)
    assert sums(read(tmp_path / "blank", [*lines[:at], "", *lines[at:]])) == sums(read(tmp_path / "whole", lines))


def test_line_ends_of_an_old_mac(tmp_path: Path) -> None:
    lines = perfmon()
    capture = read(tmp_path / "mac.csv", [*lines[:50], "Connection closed", *lines[50:]], ending="\r")
    assert said(capture)[0][0] == 1
    assert sums(capture) == sums(read(tmp_path / "whole.csv", lines))


def test_a_file_in_utf16(tmp_path: Path) -> None:
    lines = perfmon()
    path = tmp_path / "wide.csv"
    path.write_text(
        "\r\n".join([*lines[:50], "Connection closed", *lines[50:]]) + "\r\n", encoding="utf-16", newline=""
    )
    capture = import_paths([path]).capture
    assert said(capture)[0][0] == 1
    assert sums(capture) == sums(read(tmp_path / "whole.csv", lines))


def test_a_file_of_which_nothing_is_sound_is_refused_at_its_first_line(tmp_path: Path) -> None:
    lines = vmstat()
    with pytest.raises(InputError, match=r"vmstat.txt:3: '0 torn'; expected a heading or 17 numbers"):
        read(tmp_path / "vmstat.txt", [*lines[:2], *(f"{n} torn" for n in range(40))])


def test_too_much_damage_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "PASSES_MAX", 10)
    lines = vmstat()
    with pytest.raises(InputError, match=r"vmstat.txt:3: '0 torn'"):
        read(tmp_path / "vmstat.txt", [*lines[:2], *(f"{n} torn" for n in range(40)), *lines[2:]])


def test_damage_in_a_paste_is_counted_in_its_part(tmp_path: Path) -> None:
    lines = vmstat(20)
    lines[10] = lines[10][:30]
    pasted = ["[root@db01 ~]# vmstat 1", *lines, "[root@db01 ~]# iostat -x", *IOSTAT.splitlines()]
    capture = read(tmp_path / "paste.txt", pasted)
    assert {one.importer for one in capture.sources} == {"vmstat", "iostat"}
    assert [count for count, _ in said(capture)] == [1]


def test_a_document_that_breaks_off_in_a_line(tmp_path: Path) -> None:
    report = '{"jobs": [\n{"jobname": "a"}\n]}\n'
    with pytest.raises(InputError, match=r"broken\.json"):
        read(tmp_path / "broken.json", report.splitlines())


def test_random_damage_costs_the_damaged_lines_alone(tmp_path: Path) -> None:
    generator = random.Random(7)
    lines = vmstat(500)
    for trial in range(10):
        torn = set(generator.sample(range(3, len(lines)), 3))
        damaged = [line[: len(line) // 2] if n in torn else line for n, line in enumerate(lines)]
        strays = generator.sample(range(3, len(damaged)), 2)
        for at in sorted(strays, reverse=True):
            damaged.insert(at, generator.choice(STRAY))
        capture = read(tmp_path / f"{trial}.txt", damaged)
        (group,) = capture.of("guest_block_in_kib_per_s")
        assert group.values[0].tolist() == [n for n in range(1, 500) if n + 2 not in torn]  # the first is since boot
        assert sum(count for count, _ in said(capture)) == 5


def test_rows_that_somebody_left_out_cost_no_others(tmp_path: Path) -> None:
    lines = iostat()
    dotted = [part for line in lines for part in (("...", line) if line.startswith("sda") else (line,))]
    assert sums(read(tmp_path / "dotted", dotted)) == sums(read(tmp_path / "whole", lines))


def test_rows_torn_while_the_disk_may_have_been_slow_clear_nothing(tmp_path: Path) -> None:
    lines = iostat(90)
    rows = [n for n, line in enumerate(lines) if line.startswith("sd")]
    slow = {"21.00": "0.70", "99.00": "5.00", "30.00": "0.10"}
    quick = [re.sub(r"(?<= )(?:21|99|30)\.00", lambda match: slow[match[0]], line) for line in lines]
    whole = diagnose(import_paths([written(tmp_path / "whole", quick)]).capture)
    assert (whole.answer.disk, whole.answer.because) == (Disk.NO, Reason.QUICK)
    torn = [line[:40] if n in rows[60:100] else line for n, line in enumerate(quick)]
    damaged = diagnose(import_paths([written(tmp_path / "torn", torn)]).capture)
    assert (damaged.answer.disk, damaged.answer.because) == (Disk.UNKNOWN, Reason.DAMAGED)
    few = [line[:40] if n in rows[60:64] else line for n, line in enumerate(quick)]
    assert diagnose(import_paths([written(tmp_path / "few", few)]).capture).answer.disk is Disk.NO
