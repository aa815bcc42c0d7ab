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


HEADS = {
    "procps 3.2": (
        "top - 18:48:02 up 41 days,  3:10,  1 user,  load average: 6.41, 3.02, 1.21\n"
        "Tasks:  78 total,   3 running,  75 sleeping,   0 stopped,   0 zombie\n"
        "Cpu(s):  1.0%us,  0.7%sy,  0.0%ni,  0.3%id,  0.0%wa,  0.0%hi,  0.0%si, 98.0%st\n"
        "Mem:    620668k total,   520668k used,   102400k free,    10000k buffers\n"
        "Swap:   917496k total,     2048k used,   915448k free,   100000k cached\n",
        (6.41, 78, 1.0, 0.3, 100, 2),
    ),
    "procps 3.2, each CPU": (
        "top - 18:48:02 up 41 days,  3:10,  1 user,  load average: 6.41, 3.02, 1.21\n"
        "Tasks:  78 total,   3 running,  75 sleeping,   0 stopped,   0 zombie\n"
        "Cpu0  :  2.0%us,  0.0%sy,  0.0%ni, 10.0%id,  0.0%wa,  0.0%hi,  0.0%si, 88.0%st\n"
        "Cpu1  :  0.0%us,  2.0%sy,  0.0%ni, 20.0%id,  0.0%wa,  0.0%hi,  0.0%si, 78.0%st\n",
        (6.41, 78, 1.0, 15.0, None, None),
    ),
    "procps 2": (
        " 10:14am  up 12 days,  3:33,  2 users,  load average: 0.07, 0.02, 0.00\n"
        "58 processes: 57 sleeping, 1 running, 0 zombie, 0 stopped\n"
        "CPU states:  2.0% user,  1.0% system,  0.0% nice, 97.0% idle\n"
        "Mem:   255508K av,  153108K used,  102400K free,       0K shrd,   20000K buff\n"
        "Swap:  530136K av,    2048K used,  528088K free                  90000K cached\n"
        "\n"
        "  PID USER     PRI  NI  SIZE  RSS SHARE STAT %CPU %MEM   TIME COMMAND\n"
        "    1 root      15   0   480  480   424 S     0.0  0.1   0:04 init\n",
        (0.07, 58, 2.0, 97.0, 100, 2),
    ),
    "Solaris": (
        "load averages:  0.17,  0.02,  0.02;   up 5+03:13:49    10:07:31\n"
        "45 processes: 44 sleeping, 1 on cpu\n"
        "CPU states: 99.0% idle,  0.5% user,  0.5% kernel,  0.0% iowait,  0.0% swap\n"
        "Kernel: 282 ctxsw, 1 trap, 548 intr, 196 syscall\n"
        "Memory: 2048M phys mem, 100M free mem, 1024M total swap, 1000M free swap\n",
        (0.17, 45, 0.5, 99.0, 100, None),
    ),
    "FreeBSD": (
        "last pid: 12345;  load averages:  0.17,  0.02,  0.02    up 5+03:13:49  10:07:31\n"
        "45 processes:  1 running, 44 sleeping\n"
        "CPU:  0.4% user,  0.0% nice,  0.4% system,  0.0% interrupt, 99.2% idle\n"
        "Mem: 24M Active, 500M Inact, 300M Wired, 100M Free\n"
        "ARC: 200M Total, 100M MFU\n"
        "Swap: 1024M Total, 2M Used, 1022M Free\n",
        (0.17, 45, 0.4, 99.2, 100, 2),
    ),
    "OpenBSD": (
        "load averages:  0.17,  0.08,  0.06    db01.example.org 10:00:00\n"
        "45 processes: 44 idle, 1 on processor\n"
        "CPU states:  0.4% user,  0.0% nice,  0.1% sys,  0.0% spin,  0.3% intr, 99.2% idle\n"
        "Memory: Real: 50M/300M act/tot Free: 100M Cache: 200M Swap: 2M/1024M\n",
        (0.17, 45, 0.4, 99.2, None, None),
    ),
}
METRICS = (
    "guest_load_1m", "guest_task_count", "guest_cpu_user_pct", "guest_cpu_idle_pct", "guest_memory_free_mib",
    "guest_swap_used_mib",
)  # fmt: skip


@pytest.mark.parametrize("system", HEADS)
def test_heads_alone(system: str, tmp_path: Path) -> None:
    text, expected = HEADS[system]
    source = source_of(tmp_path, f"Everything is slow, top just now:\n\n{text}")
    assert top.sniff(source) == 95
    capture = top.read(source, Request())
    of_machine = [
        float(values_of(capture, metric, GUEST)[0]) if metric in capture.metrics() else None for metric in METRICS
    ]
    assert of_machine == [value if value is None else pytest.approx(value) for value in expected]
    assert group_of(capture, "guest_cpu_user_pct", GUEST).since_boot == ("PID" in text)
    assert "other-lines" in codes(capture)


def test_several_heads_are_several_reports(tmp_path: Path) -> None:
    text, _ = HEADS["procps 3.2"]
    capture = top.read(source_of(tmp_path, text + "\n" + text.replace("18:48:02", "18:48:07").rstrip()), Request())
    assert values_of(capture, "guest_cpu_steal_pct", GUEST).tolist() == [98, 98]
