"""top in batch mode."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import top
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

GUEST = "guest:guest"


@pytest.fixture
def recorded(fixtures: Path) -> str:
    return (fixtures / "top" / "b-n3.txt").read_text()


def test_machine_and_processes(recorded: str, tmp_path: Path) -> None:
    source = source_of(tmp_path, recorded)
    assert top.sniff(source) == 95
    capture = top.read(source, Request())
    shares = [float(share) for share in re.findall(r"([\d.]+) us,", recorded)]
    user = group_of(capture, "guest_cpu_user_pct", GUEST)
    assert user.values[0].tolist() == shares
    assert user.since_boot
    free = float(re.findall(r"Mem :.* ([\d.]+) free", recorded)[0])
    assert values_of(capture, "guest_memory_free_mib", GUEST)[0] == pytest.approx(free)
    busy = next(e for g in capture.groups for e in g.entities if e.name.startswith("sha1sum["))
    cells = [line.split() for line in recorded.splitlines() if line.endswith("sha1sum")]
    assert values_of(capture, "process_cpu_pct", str(busy)).tolist() == [float(row[8]) for row in cells]
    assert values_of(capture, "process_memory_resident_kib", str(busy)).tolist() == [float(row[5]) for row in cells]


def test_counts_of_chosen_processes_are_not_those_of_the_machine(recorded: str, tmp_path: Path) -> None:
    capture = top.read(source_of(tmp_path, recorded), Request())
    assert "guest_task_count" not in capture.metrics()
    assert "tasks" in codes(capture)
    whole = top.read(
        source_of(tmp_path, recorded.replace("  2 total,   1 running", "112 total,   3 running")), Request()
    )
    assert values_of(whole, "guest_task_count", GUEST)[0] == 112


def test_date_and_zone_are_assumed_or_given(recorded: str, tmp_path: Path) -> None:
    source = source_of(tmp_path, re.sub(r"top - \d\d:\d\d:\d\d", "top - 10:00:00", recorded, count=1))
    assert {"no-date", "no-zone"} <= set(codes(top.read(source, Request())))
    told = top.read(source, Request(date="2026-11-20", timezone="UTC"))
    assert seconds(group_of(told, "guest_load_1m", GUEST))[0] == 1_795_132_800 + 10 * 3600
    assert {"no-date", "no-zone"}.isdisjoint(codes(told))


def test_sizes_with_letters(recorded: str, tmp_path: Path) -> None:
    line = next(line for line in recorded.splitlines() if line.endswith("sha1sum"))
    changed = line.replace(f" {line.split()[4]} ", " 1.5g ", 1)
    capture = top.read(source_of(tmp_path, recorded.replace(line, changed, 1)), Request())
    name = f"{GUEST}/process:sha1sum[{line.split()[0]}]"
    assert values_of(capture, "process_memory_virtual_kib", name)[0] == 1.5 * 1024**2


def test_cut_last_line_is_left_out(recorded: str, tmp_path: Path) -> None:
    assert "cut" in codes(top.read(source_of(tmp_path, recorded.rstrip()[:-5]), Request()))


def test_garbage_in_the_middle_is_refused_with_its_line(recorded: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:2: .*Tusks"):
        top.read(
            source_of(tmp_path, recorded.replace("Tasks:   2 total", "Tusks: two all", 1).replace("1 r", "r")),
            Request(),
        )


def test_sample(samples: Path) -> None:
    name = "kellyjonbrazil__jc__centos77_top-b-n3.out"
    source = Source(name, samples / "sysstat" / name)
    chosen = recognise(source, load_units("importer"))
    assert chosen is not None
    assert chosen[0] == "top"
    capture = chosen[1].read(source, Request())
    assert values_of(capture, "guest_load_1m", GUEST).tolist() == [0.23, 0.23, 0.21]
    assert values_of(capture, "guest_task_count", GUEST)[0] == 112
    assert values_of(capture, "process_cpu_pct", f"{GUEST}/process:top[1935]")[0] == 6.2
