"""Every importer against damaged recordings: one error or a whole capture, never anything else.

Seeds are the project's own recordings that the importer recognises, plus small ones below for tools that cannot be run
here; `benches.fuzz_importers` changes and judges them. ``make fuzz`` runs the same for many more inputs, in child
processes with limits of time and memory.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import cast

import pytest

from benches.fuzz_importers import all_seeds, check, fuzz, input_of
from leadline.app.read.importing import importers_for
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Importer
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from tests.conftest import ROOT

IMPORTERS = load_units("importer")
INPUTS = 200  # of each importer
FIRST_INPUTS = 40  # those that `make test` reads; `make test-real` reads the others


@pytest.mark.parametrize("name", IMPORTERS)
def test_has_seeds(name: str) -> None:
    assert all_seeds()[name], f"put a small recording for {name} into tests/fixtures or tests/importers/seeds"


@pytest.mark.parametrize(
    "numbers", [range(FIRST_INPUTS), pytest.param(range(FIRST_INPUTS, INPUTS), marks=pytest.mark.slow)], ids=str
)
@pytest.mark.parametrize("name", IMPORTERS)
def test_damage_is_one_error_or_a_whole_capture(name: str, numbers: range, tmp_path: Path) -> None:
    importer = cast("Importer", IMPORTERS[name])
    for index in numbers:
        file_name, content = input_of(name, 1, index)
        path = tmp_path / file_name
        path.write_bytes(content)
        source = Source(file_name, path)
        try:
            check(importer, source)
            assert name in importers_for(source) or importer.sniff(source) == 0
        except Exception as error:
            error.add_note(f"again: python -m benches.fuzz_importers --importer {name} --start {index} --count 1")
            raise


FOUND = (
    ("fio-text", b"Disk stats (read/write)\n a: ios=util=..%"),
    (
        "fio-text",
        b"l: (groupid=0, jobs=9): err=0: pid=2Fri Nov 2 22:53:02 2026\n write:IOPS=/3"
        + 400 * b"9"
        + b"msec\n issuedrwt:total=8",
    ),
    ("ioping", b"4B <<< ): request=5 time=2s\ngenerated 5 requests in " + 400 * b"9" + b" s, 0K, 6 iops, 0K/s"),
    (
        "vcenter-chart",
        b"Time,Ready for b,Ready for 1,C for 0\n"
        b"Fri Nov 2 08:30:40 GMT+0100 2026,,-1e308,\nFri Nov 2 08:31:00 GMT+0100 2026,,-1e308,",
    ),
    ("vmstat", b"r b d e f a si so i o n s c y d a t\n" + 4 * b"1 0 0 9 6 -1e308 0 0 6 2 3 3 4 1 6 2 0\n"),
)


@pytest.mark.parametrize(("name", "content"), FOUND)
def test_what_fuzzing_found_is_no_foreign_error(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "found.txt"
    path.write_bytes(content)
    check(cast("Importer", IMPORTERS[name]), Source(path.name, path))


def test_most_inputs_are_read_behind_their_first_line(tmp_path: Path) -> None:
    """In a process of its own: the threads that readers begin here would be missing in a child."""
    words = [
        sys.executable,
        "-m",
        "benches.fuzz_importers",
        "--keep",
        str(tmp_path),
        "--count",
        str(5 * len(IMPORTERS)),
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    total = re.search(r"^all +(\d+) +([\d.]+)%", done.stdout, re.MULTILINE)
    assert total is not None
    assert int(total[1]) == 5 * len(IMPORTERS)
    assert float(total[2]) > 40


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fault_is_counted_and_kept_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(source: Source, _: object) -> None:
        if b"CPU" in source.content():
            os.kill(os.getpid(), signal.SIGKILL) if source.content().startswith(b"\xff") else int("x")
        raise InputError(source.name, found="nothing", expected="CPU", advice="None.")

    monkeypatch.setattr(IMPORTERS["vmstat"], "read", read)
    monkeypatch.setattr("benches.fuzz_importers.input_of", lambda *_: ("a.txt", b"one\ntwo\nof CPU 3\nfour\n"))
    tally = fuzz(["vmstat"], range(3), 1, tmp_path)
    assert list(tally.faults.values()) == [3]
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"CPU"]
    monkeypatch.setattr("benches.fuzz_importers.input_of", lambda *_: ("a.txt", b"\xffCPU"))
    tally = fuzz(["vmstat"], range(2), 2, tmp_path)
    assert tally.faults == {"vmstat: the process ended by signal 9": 2}


def test_any_bytes_are_sniffed(tmp_path: Path) -> None:
    rng = Random(1)
    path = tmp_path / "a"
    for _ in range(INPUTS):
        path.write_bytes(rng.randbytes(rng.randrange(3000)))
        source = Source("a", path)
        for module in IMPORTERS.values():
            assert 0 <= cast("Importer", module).sniff(source) <= 100
