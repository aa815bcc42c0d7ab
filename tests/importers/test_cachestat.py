"""cachestat: hits of the page cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import cachestat
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "cachestat.txt").read_text()
GUEST = "guest:guest"


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert cachestat.sniff(source) == 94
    return cachestat.read(source, Request())


def test_hits_and_sizes(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    np.testing.assert_array_equal(values_of(capture, "guest_cache_hit_pct", GUEST), [95.09, np.nan, 50])
    assert values_of(capture, "guest_memory_cached_mib", GUEST).tolist() == [90223, 90230, 90381]
    group = group_of(capture, "guest_cache_hit_pct", GUEST)
    assert seconds(group) == [1795132799, 1795132800, 1795132801]  # the last on 2026-11-20
    assert codes(capture) == ["no-date"]


def test_without_times(tmp_path: Path) -> None:
    text = "    HITS   MISSES  DIRTIES HITRATIO   BUFFERS_MB  CACHED_MB\n"
    text += "     132        0      211  100.00%           93        782\n"
    group = group_of(read_text(tmp_path, text), "guest_cache_hit_pct", GUEST)
    assert (group.values[0].tolist(), group.times_ns.tolist()) == ([100], [MTIME_NS])


def test_other_lines_are_counted(tmp_path: Path) -> None:
    assert codes(read_text(tmp_path, SEED + "what\n00:00:02 1 2")) == ["cut", "left-out", "no-date"]


def test_a_heading_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no row of numbers"):
        read_text(tmp_path, SEED.partition("\n")[0] + "\n")


def test_a_size_in_percent_is_no_row(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED + "00:00:02     5000     5000       20   50.00%           14%      90381\n")
    assert len(values_of(capture, "guest_memory_cached_mib", GUEST)) == 3
    assert "left-out" in codes(capture)
