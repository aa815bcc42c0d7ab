"""Read caches as a scenario, beside libCacheSim where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from leadline.app.measure.simulated import outcome_of
from leadline.core.contracts.scenario import Outcome, System, read_scenario
from leadline.core.model.errors import InputError
from leadline.scenarios import read_cache
from tests.conftest import ROOT
from tests.traces import vscsi_records, write_vscsi

MIB = 2.0**20
SYSTEM = cast("System", read_cache)
PLAIN: dict[str, Any] = {
    "name": "own",
    "timing": {"warm_up_s": 5, "measure_s": 10, "window_s": 1},
    "trace": {
        "rate_iops": 10_000,
        "parts": [{"name": "hot", "weight": 4, "size": "64m", "zipf": 0.9}, {"name": "scan", "size": "256m"}],
    },
    "caches": [{"name": policy, "policy": policy, "size": "8m"} for policy in ("lru", "arc", "s3-fifo")],
}


def run(**change: Any) -> Outcome:
    return outcome_of({"system": "read-cache", **PLAIN, **change})


def hits(own: Outcome, name: str) -> float:
    return own.measure(name, "hit_pct").value


def test_policies_see_one_trace_and_a_scan_spoils_lru() -> None:
    own = run()
    assert min(hits(own, "arc"), hits(own, "s3-fifo")) > hits(own, "lru") + 2.0
    series = {part.entity: part.values for part in own.series}
    assert sum(series["lru"]) / 10 == pytest.approx(hits(own, "lru"))
    share = hits(own, "lru") / 100.0
    assert own.measure("lru", "latency_ms_mean").value == pytest.approx(share * 0.1 + (1 - share) * 5.0)
    assert own.measure("lru", "fetch_mib_per_s").value == pytest.approx((1 - share) * 10_000 * 4096 / MIB)


def test_curves_go_through_what_is_simulated_and_never_fall() -> None:
    sizes = ["1m", "8m", "32m", "512m"]
    own = run(curve={"policies": ["lru", "arc", "s3-fifo"], "sizes": sizes})
    for policy in ("lru", "arc", "s3-fifo"):
        assert hits(own, f"{policy} 8 MiB") == hits(own, policy)
    curve = [hits(own, f"lru {size[:-1]} MiB") for size in sizes]
    assert curve == sorted(curve)
    # A cache of everything misses only what is new after the warm-up.
    assert hits(own, "lru 512 MiB") == hits(own, "arc 512 MiB") == hits(own, "s3-fifo 512 MiB")


def test_lines_fetch_what_lies_around() -> None:
    parts = [{"name": "runs", "size": "1g", "zipf": 0.0, "run": 64}]
    trace = {"rate_iops": 10_000, "parts": parts}
    small, large = (run(trace=trace, line=line) for line in ("4k", "1m"))
    assert hits(small, "lru") < 5.0
    assert hits(large, "lru") > 95.0


def test_recorded_traces_are_read_by_their_times(tmp_path: Path) -> None:
    records = write_vscsi(tmp_path / "disk.vscsi", 20_000)
    text = (
        "name: own\nsystem: read-cache\ntiming: {warm_up_s: 0, measure_s: 15, window_s: 1}\n"
        "trace: {files: [disk.vscsi]}\ncaches: [{name: all, policy: lru, size: 1g}]\n"
    )
    path = tmp_path / "own.yaml"
    path.write_text(text)
    _, scenario = read_scenario(path, lambda _: SYSTEM)
    own = outcome_of(scenario.plain())
    known: set[int] = set()
    total = hit = 0
    begin = records[records["cmd"] == 0x28]["ts"][0]
    for record in records[(records["cmd"] == 0x28)]:
        if record["ts"] - begin < 15_000_000:
            first = int(record["lbn"]) * 512
            for page in range(first // 4096, (first + int(record["len"]) - 1) // 4096 + 1):
                total += 1
                hit += page in known
                known.add(page)
    assert own.measure("all", "iops").value * 15 == pytest.approx(total)
    assert hits(own, "all") == pytest.approx(100.0 * hit / total)
    path.write_text(text.replace("[disk.vscsi]", "[disk.vscsi], disk: other"))
    _, scenario = read_scenario(path, lambda _: SYSTEM)
    with pytest.raises(InputError, match="no disk other"):
        outcome_of(scenario.plain())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trace": {}}, "either parts or files"),
        ({"trace": {"parts": [{"name": "a", "size": "1k"}]}}, "smaller than a block"),
        ({"trace": {"parts": [{"name": "a", "size": "1m"}] * 2}}, "two parts have the same name"),
        ({"caches": [{"name": "a", "policy": "fifo", "size": "1m"}]}, "no policy fifo; there are arc, lru, s3-fifo"),
        ({"caches": [{"name": "a", "size": "1m"}] * 2}, "two caches have the same name"),
        ({"line": "6k"}, "not a number of blocks"),
    ],
)
def test_what_is_no_scenario_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(**change)


def test_too_many_accesses_are_refused() -> None:
    with pytest.raises(InputError, match="uses; expected at most 50000000"):
        run(trace={**PLAIN["trace"], "rate_iops": 1e8})


def test_libcachesim_agrees(tmp_path: Path) -> None:
    """Hits of the same accesses; its ARC and S3-FIFO may differ from the papers' by how they round."""
    libcachesim = pytest.importorskip("libcachesim", reason="libCacheSim has no package for this machine")
    random = np.random.default_rng(1)
    pages = np.minimum(random.zipf(1.2, 100_000), 50_000).astype(np.uint64)
    records = vscsi_records(len(pages), read_share=1.0)
    records["len"], records["lbn"] = 4096, pages * 8
    records.tofile(tmp_path / "disk.vscsi")
    own = run(
        timing={"warm_up_s": 0, "measure_s": 1000, "window_s": 1000},
        trace={"files": [str(tmp_path / "disk.vscsi")]},
    )
    for name, policy in (("lru", "LRU"), ("arc", "ARC"), ("s3-fifo", "S3FIFO")):
        cache = getattr(libcachesim, policy)(cache_size=2048)
        found = sum(cache.get(libcachesim.Request(obj_id=int(page), obj_size=1)) for page in pages)
        assert 100.0 * found / len(pages) == pytest.approx(hits(own, name), abs=1.0), name


def test_the_example_is_about_a_scan() -> None:
    _, scenario = read_scenario(ROOT / "examples" / "scenarios" / "cache-and-scan.yaml", lambda _: SYSTEM)
    own = outcome_of(scenario.plain())
    assert hits(own, "s3-fifo") > hits(own, "lru")
