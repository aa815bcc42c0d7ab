"""What people put around a recording is taken off, and nothing of the recording with it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from leadline.app.read.dress import command_in, undressed

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
    assert bare is None or (not bare.is_certain and texts(text) == [text.strip("\n")])


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
    assert bare.is_certain
    assert [(piece.text.strip("\n"), piece.command) for piece in bare.pieces] == [(IOSTAT.strip("\n"), command)]


@pytest.mark.parametrize(
    "line",
    ["sda 1.0 2.0", "top - 10:12:01 up 41 days", "# a comment", "> quoted", "free 12 34", "Device: tps", "cat"],
)
def test_a_value_is_no_command(line: str) -> None:
    assert command_in(line) is None


def test_two_commands_are_two_pieces() -> None:
    assert texts(f"$ vmstat 1\n{VMSTAT}$ iostat -x\n{IOSTAT}$ \n") == [VMSTAT.strip("\n"), IOSTAT.strip("\n")]


DRESSES = {
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
        assert [line.split() for line in bare.splitlines()] == [line.split() for line in text.strip("\n").splitlines()], (
            inner,
            outer,
        )


FIELD = Path(__file__).resolve().parents[4] / "shared" / "field"


@pytest.mark.skipif(not FIELD.is_dir(), reason="the field cases are not there")
def test_a_ruling_of_a_report_is_no_fence() -> None:
    text = (FIELD / "formats-not-read" / "awr.txt").read_text()
    assert texts(text) == [text.strip("\n")]
