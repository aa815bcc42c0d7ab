"""What people put around a recording is taken off, and nothing of the recording with it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.dress import command_in, undressed
from leadline.app.read.importing import import_paths
from leadline.app.read.stamped import moment_of, without_stamps
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from tests.conftest import ROOT

IOSTAT = """Linux 6.1.0-13-amd64 (db01) \t11/20/2025 \t_x86_64_\t(8 CPU)

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           2.00    0.00    1.00   30.00    0.00   67.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s  aqu-sz  %util
sda            100.00   1600.00     0.00   0.00   21.00    16.00   50.00    800.00    3.10  99.00
"""
VMSTAT = """procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 6  4      0 181290  46000 778700    0    0   400  3800 1600 2100  5  3  2 90  0
 7  4      0 181290  46000 778700    0    0   400  3800 1600 2100  5  3  2 90  0
"""


def texts(text: str) -> list[str]:
    bare = undressed(text)
    return [piece.text.strip("\n") for piece in bare.pieces] if bare is not None else [text.strip("\n")]


@pytest.mark.parametrize("text", [IOSTAT, VMSTAT])
def test_a_recording_without_dress_is_left_as_it_is(text: str) -> None:
    bare = undressed(text)
    assert bare is None or texts(text) == [text.strip("\n")]


@pytest.mark.parametrize(
    ("dressed", "command"),
    [
        ("[root@db01 ~]# iostat -x 5\n" + IOSTAT, "iostat -x 5"),
        ("postgres@db01:~$ sudo iostat -x 5\n" + IOSTAT + "postgres@db01:~$\n", "sudo iostat -x 5"),
        ("$ LC_ALL=C iostat -x\n" + IOSTAT, "LC_ALL=C iostat -x"),
        ("# iostat -x\n" + IOSTAT, "# iostat -x"[2:]),
        ("C:\\Users\\me> typeperf -qx\n" + IOSTAT, "typeperf -qx"),
        ("iostat -dx 5 3\n" + IOSTAT, "iostat -dx 5 3"),
    ],
)
def test_a_prompt_with_its_command_is_no_line_of_the_output(dressed: str, command: str) -> None:
    bare = undressed(dressed)
    assert bare is not None
    assert [(piece.text.strip("\n"), piece.command) for piece in bare.pieces] == [(IOSTAT.strip("\n"), command)]


@pytest.mark.parametrize(
    "line",
    ["sda 1.0 2.0", "top - 10:12:01 up 41 days", "# a comment", "> quoted", "free 12 34", "Device: tps", "cat"],
)
def test_a_value_is_no_command(line: str) -> None:
    assert command_in(line) is None


def test_two_commands_are_two_pieces() -> None:
    assert texts(f"$ vmstat 1\n{VMSTAT}$ iostat -x\n{IOSTAT}$ \n") == [VMSTAT.strip("\n"), IOSTAT.strip("\n")]


DRESSES: dict[str, Callable[[str], str]] = {
    "indented": lambda text: "".join(f"    {line}" for line in text.splitlines(keepends=True)),
    "quoted": lambda text: "".join(f"> {line}" for line in text.splitlines(keepends=True)),
    "fenced": lambda text: f"Here is what I see, it is slow:\n\n```text\n{text}```\n\nAny idea?\n",
    "host": lambda text: "".join(f"db01.example.org: {line}" for line in text.splitlines(keepends=True)),
    "coloured": lambda text: text.replace("99.00", "\x1b[31m99.00\x1b[0m").replace("90", "\x1b[1;31m90\x1b[0m"),
    "page": lambda text: f"<p>slow</p><pre><code>{text.replace('%', '&#37;')}</code></pre><p>?</p>",
    "bbcode": lambda text: f"slow\n[code]\n{text}[/code]\n",
    "prompt": lambda text: f"[root@db01 ~]# vmstat 1 3\n{text}[root@db01 ~]# \n",
}


@pytest.mark.parametrize("name", DRESSES)
@pytest.mark.parametrize("text", [IOSTAT, VMSTAT])
def test_each_dress_is_taken_off(name: str, text: str) -> None:
    (bare,) = texts(DRESSES[name](text))
    assert [line.split() for line in bare.splitlines()] == [line.split() for line in text.strip("\n").splitlines()]


def test_dresses_over_each_other_are_taken_off() -> None:
    generator = random.Random(32)
    for _ in range(200):
        text = generator.choice((IOSTAT, VMSTAT))
        dressed = text
        inner = generator.sample(["coloured", "prompt"], generator.randrange(3))
        outer = generator.sample(["fenced", "indented", "quoted", "page", "bbcode"], generator.randrange(2))
        for name in (*inner, *outer):
            dressed = DRESSES[name](dressed)
        (bare,) = texts(dressed)
        assert [line.split() for line in bare.splitlines()] == [
            line.split() for line in text.strip("\n").splitlines()
        ], (
            inner,
            outer,
        )


FIELD = ROOT.parent / "shared" / "field"


@pytest.mark.skipif(not FIELD.is_dir(), reason="the field cases are not there")
def test_a_ruling_of_a_report_is_no_fence() -> None:
    text = (FIELD / "formats-not-read" / "awr.txt").read_text()
    assert texts(text) == [text.strip("\n")]


def read(folder: Path, text: str) -> Capture:
    path = folder / "paste.txt"
    path.write_text(text)
    return import_paths([path]).capture


def values(capture: Capture) -> dict[tuple[str, str], list[float]]:
    return {
        (group.metric, str(entity)): np.nan_to_num(row).tolist()
        for group in capture.groups
        for entity, row in zip(group.entities, group.values, strict=True)
    }


@pytest.mark.parametrize("name", DRESSES)
@pytest.mark.parametrize("text", [IOSTAT, VMSTAT])
def test_a_paste_is_read_as_the_recording_in_it(name: str, text: str, tmp_path: Path) -> None:
    plain, dressed = read(tmp_path, text), read(tmp_path, DRESSES[name](text))
    assert values(plain)
    assert values(dressed) == values(plain)


def test_what_was_taken_off_is_said(tmp_path: Path) -> None:
    capture = read(tmp_path, f"$ vmstat 1\n{VMSTAT}$ make coffee\nready\n$ iostat -x\n{IOSTAT}")
    messages = [warning.message for source in capture.sources for warning in source.warnings]
    assert "pasted: command lines taken off" in messages
    assert "left out: 1 output that no importer knows" in messages
    assert {"guest_disk_util_pct", "guest_run_queue_count"} <= set(capture.metrics())


def test_a_paste_of_nothing_known_is_refused_as_it_stands(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="paste"):
        read(tmp_path, "[root@db01 ~]# cat notes\nthe disk is slow\n")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("zzz ***Thu Nov 20 11:01:00 EST 2025 Sample interval: 5 secconds", "2025-11-20T11:01:00-05:00"),
        ("Thu Nov 20 10:00:00 CET 2025", "2025-11-20T10:00:00+01:00"),
        ("Thu 20 Nov 2025 10:00:00 AM CET", "2025-11-20T10:00:00+01:00"),
        ("Thu Nov 20 10:00:00 PM UTC 2025", "2025-11-20T22:00:00+00:00"),
        ("2025-11-20 10:00:00", "2025-11-20T10:00:00"),
        ("2025-11-20T10:00:00+0530", "2025-11-20T10:00:00+05:30"),
        ("Thu Nov 20 10:00:00 IST 2025", "2025-11-20T10:00:00"),  # three zones are called so
        ("Thu Nov 31 10:00:00 CET 2025", None),
        ("10:00:00 up 3 days", None),
    ],
)
def test_a_line_of_time_is_a_time(line: str, expected: str | None) -> None:
    moment = moment_of(line)
    assert (None if moment is None else moment.isoformat()) == expected


def test_a_block_of_vmstat_is_its_mean_without_the_average_since_boot(tmp_path: Path) -> None:
    rows = VMSTAT.splitlines(keepends=True)
    block = "".join([*rows[:2], rows[2].replace("90  0", "10  0"), rows[2], rows[3].replace("90  0", "70  0")])
    text = "".join(f"zzz ***Thu Nov 20 10:{minute:02d}:00 CET 2025\n{block}" for minute in range(12))
    stamped = without_stamps(text)
    assert stamped is not None
    assert stamped.since_boot_count == 11  # the importer knows that of the first block
    capture = read(tmp_path, text)
    (waits,) = capture.of("guest_cpu_iowait_pct")
    assert waits.values[0].tolist() == [80.0] * 12
    assert np.diff(waits.times_ns).tolist() == [60_000_000_000] * 11
    assert int(waits.times_ns[0]) == 1_763_629_202_000_000_000


def test_what_a_tool_puts_before_each_line_is_no_host(tmp_path: Path) -> None:
    lines = "".join(f"progress: {second}.0 s, 100.0 tps, lat 2.5 ms stddev 0.1, 0 failed\n" for second in range(1, 31))
    capture = read(tmp_path, lines)
    assert capture.sources[0].importer == "pgbench"
    assert not any(warning.code == "pasted" for warning in capture.sources[0].warnings)


def test_examples_in_the_documents_of_a_folder_are_no_recordings(tmp_path: Path) -> None:
    (tmp_path / "vmstat.txt").write_text(VMSTAT)
    (tmp_path / "README.md").write_text(DRESSES["fenced"](IOSTAT))
    imported = import_paths([tmp_path])
    assert [Path(source.name).name for source in imported.capture.sources] == ["vmstat.txt"]
    assert import_paths([tmp_path / "README.md"]).capture.sources[0].importer == "iostat"


@pytest.mark.parametrize("prompt", ["mysql> ", "MariaDB [(none)]> ", "postgres=# ", "bench=> ", "SQL> "])
def test_a_database_client_s_prompt_with_its_query_is_no_line_of_the_output(prompt: str) -> None:
    bare = undressed(f"{prompt}SHOW FULL PROCESSLIST;\n| a |\n{prompt}select 1;\n| b |\n")
    assert bare is not None
    assert bare.is_sure
    assert [piece.text.strip("\n") for piece in bare.pieces] == ["| a |", "| b |"]


def test_a_zone_that_may_be_several_is_named(tmp_path: Path) -> None:
    """IST is the time of India, of Israel and of Ireland."""
    text = "".join(f"Thu Nov 20 10:{minute:02d}:00 IST 2025\n{VMSTAT}" for minute in range(12))
    messages = [warning.message for warning in read(tmp_path, text).sources[0].warnings]
    assert "IST may mean several time zones: times were taken as UTC; --timezone sets it" in messages
    assert not any("times have no zone" in message for message in messages)


@pytest.mark.parametrize("prompt", ["C:\\Windows\\system32>", "PS C:\\Users\\me> "])
def test_a_session_of_windows_is_several_recordings_of_one_guest(tmp_path: Path, prompt: str) -> None:
    cluster = "NTFS Volume Serial Number :  0xc42ce3112ce2fcf4\nBytes Per Sector  : 512\nBytes Per Cluster : {}\n\n"
    text = f"{prompt}fsutil fsinfo ntfsinfo D:\n{cluster.format(4096)}{prompt}fsutil fsinfo ntfsinfo e:\n"
    text += f"{cluster.format(65536)}{prompt}powercfg /getactivescheme\n"
    text += f"Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Balanced)\n\n{prompt}\n"
    inventory = read(tmp_path, text).inventory
    sizes = [inventory.get(Entity.parse(f"guest:guest/block-device:{one}:"), "allocation_unit_bytes") for one in "DE"]
    assert sizes == [4096, 65536]
    assert inventory.get(Entity.parse("guest:guest"), "power_plan") == "Balanced"
