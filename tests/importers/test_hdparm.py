"""hdparm -t: rates of disks, never of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.result import Subject
from leadline.importers import hdparm
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "hdparm.txt").read_text()
DIRECT = """
/dev/sdb:
 Timing O_DIRECT cached reads:   484 MB in  2.03 seconds = 238.57 MB/sec
 Timing O_DIRECT disk reads:   2 MB in 19.21 seconds = 106.63 kB/sec
 Timing O_DIRECT disk reads (offset 100 GB): 430 MB in  3.00 seconds = 143.33 MB/sec
"""


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert hdparm.sniff(source) > 90
    return hdparm.read(source, Request())


def test_the_rate_of_the_disk(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    (result,) = capture.results
    assert result.place == "/dev/sda"
    assert result.operations[0].bytes_per_s == pytest.approx(366 * 2**20 / 3.01)
    assert not result.measured(Subject.DISK)
    job = "guest:guest/job:buffered reads /dev/sda"
    assert values_of(capture, "job_mib_per_s_read", job) == pytest.approx([121.6], abs=0.1)
    assert codes(capture) == ["no-times", "no-latency"]


def test_direct_reads_of_a_sick_disk(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED + DIRECT)
    rates = [result.operations[0].bytes_per_s / 2**20 for result in capture.results]
    assert rates == pytest.approx([121.6, 0.104, 143.3], abs=0.1)
    assert capture.results[2].workload == {"filename": "/dev/sdb", "offset": "100 GB"}
    assert capture.results[1].job == "direct reads /dev/sdb 2"


def test_what_is_none_of_its_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:6"):
        read_text(tmp_path, SEED + "hello\n")
    with pytest.raises(InputError, match="above 0"):
        read_text(tmp_path, SEED.replace("3.01", "0.00"))
    assert hdparm.sniff(source_of(tmp_path, SEED.replace("buffered disk", "cached"))) == 0
