"""iozone's tables: blank columns, direct and synced runs, runs of the page cache."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.result import Subject
from leadline.importers import iozone
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "iozone.txt").read_text()
OLD = """
\tO_DIRECT feature enabled
\tAuto Mode
\tFile size set to 16384 KB
\tRecord Size 4 KB
\tCommand line used: iozone -I -a -s 16M -r 4 -i 0 -i 2
\tOutput is in Kbytes/sec
                                                            random  random    bkwd   record   stride
              KB  reclen   write rewrite    read    reread    read   write    read  rewrite     read   fwrite frewrite
           16384       4   44632   42865                     24719   11304
"""


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert iozone.sniff(source) > 90
    return iozone.read(source, Request())


def test_direct_records_tell_the_latency(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert [result.job for result in capture.results] == [
        "write 4 kB /mnt/pg/t",
        "rewrite 4 kB /mnt/pg/t",
        "random read 4 kB /mnt/pg/t",
        "random write 4 kB /mnt/pg/t",
    ]
    (writes,) = capture.results[3].measured(Subject.DISK)
    assert writes.mean_ms == pytest.approx(4 / 143 * 1000)
    assert writes.bytes_per_s == 143 * 1024
    job = "guest:guest/job:random read 4 kB /mnt/pg/t"
    assert values_of(capture, "job_latency_ms", job) == pytest.approx([5])
    assert codes(capture) == ["no-times"]


def test_old_tables_and_indentation(tmp_path: Path) -> None:
    stripped = "\n".join(line.strip() for line in OLD.splitlines()) + "\n"
    for text in (OLD, stripped):
        jobs = [result.job for result in read_text(tmp_path, text).results]
        assert jobs == ["write 4 kB", "rewrite 4 kB", "random read 4 kB", "random write 4 kB"]


def test_without_direct_the_page_cache_was_measured(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED.replace("\tO_DIRECT feature enabled\n", ""))
    assert not any(result.measured(Subject.DISK) for result in capture.results)
    assert "page-cache" in codes(capture)
    synced = read_text(tmp_path, SEED.replace("O_DIRECT feature enabled", "SYNC Mode. "))
    assert [result.operations[0].name for result in synced.results] == [
        "open_sync",
        "open_sync",
        "buffered random read",
        "open_sync",
    ]


def test_operations_per_second(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED.replace("kBytes/sec", "ops/sec"))
    assert capture.results[0].operations[0].mean_ms == pytest.approx(1000 / 304)
    with pytest.raises(InputError, match="without -N"):
        read_text(tmp_path, SEED.replace("kBytes/sec", "microseconds/op"))


def test_what_is_none_of_its_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:25"):
        read_text(tmp_path, SEED.replace("800 ", "8x0 "))
    with pytest.raises(InputError, match="no row"):
        read_text(tmp_path, "".join(SEED.splitlines(keepends=True)[:24]))
    assert math.isnan(read_text(tmp_path, SEED).results[0].duration_s)
