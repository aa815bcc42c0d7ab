"""bonnie++: the CSV line of its versions."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import bonnie
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "bonnie.txt").read_text()
OLD = (
    "db01,8G,31250,95,61234,17,24912,5,34211,88,65321,6,187.4,0,16,2153,12,+++++,+++,1732,5,2201,11,+++++,+++,5601,15\n"
)


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert bonnie.sniff(source) > 90
    return bonnie.read(source, Request())


def test_the_line_below_the_table(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    (result,) = capture.results
    assert [one.name for one in result.operations] == ["write", "rewrite", "read", "seek"]
    write, _, reads, seeks = result.operations
    assert write.bytes_per_s == 184320 * 1024
    assert write.latency_ms == {"max": 12.053}
    assert reads.latency_ms == {"max": 4.072}
    assert (seeks.per_s, seeks.latency_ms["max"]) == (412.3, 18.726)
    assert math.isnan(seeks.mean_ms)
    assert (result.host, result.tool_version, result.workload) == ("vm", "2.00a", {"size": "16G", "bs": "8192"})
    assert values_of(capture, "job_mib_per_s_write", "guest:guest/job:write").tolist() == [180]
    assert codes(capture) == ["no-times", "no-latency"]


def test_the_old_line(tmp_path: Path) -> None:
    (result,) = read_text(tmp_path, OLD).results
    rates = {one.name: (one.bytes_per_s / 1024, one.per_s) for one in result.operations}
    assert rates["write"][0] == 61234
    assert rates["rewrite"][0] == 24912
    assert rates["read"][0] == 65321
    assert rates["seek"][1] == 187.4


def test_what_was_too_short_to_measure_is_left_out(tmp_path: Path) -> None:
    short = SEED.replace("184320,21", "+++++,+++")
    assert [one.name for one in read_text(tmp_path, short).results[0].operations] == ["rewrite", "read", "seek"]
    for rate in ("81920,11", "202752,14", "412.3,9"):
        short = short.replace(rate, "+++++,+++")
    with pytest.raises(InputError, match="no measured test"):
        read_text(tmp_path, short)


def test_other_lines(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:1"):
        read_text(tmp_path, "hello, world\n" + SEED)
    assert bonnie.sniff(source_of(tmp_path, "a,1,2,3,4,5,6,7,8,9,10,11,12\n")) == 0
    assert bonnie.sniff(source_of(tmp_path, SEED.replace("1.98,2.00a", "x"))) == 0
