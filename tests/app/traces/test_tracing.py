"""Traces characterised: every number against the same computed plainly."""

from __future__ import annotations

import re
import subprocess
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.app.traces.tracing import DiskTrace, characterise
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import vscsistats
from tests.traces import READ, vscsi_records, write_vscsi


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[np.ndarray, DiskTrace]:
    path = tmp_path_factory.mktemp("trace") / "db01.vscsi"
    records = write_vscsi(path, 9973)
    reports, passed = characterise([path])
    assert passed == []
    assert reports[0].notes == ()
    return records, reports[0].disks[0]


def test_counts_and_shares_are_those_of_the_records(made: tuple[np.ndarray, DiskTrace]) -> None:
    records, disk = made
    facts = disk.facts
    reads = records["cmd"] == READ
    assert disk.name == "db01"
    assert disk.request_count == 9973
    assert facts["read_count"] == reads.sum()
    assert facts["write_bytes"] == records["len"][~reads].sum()
    assert disk.duration_s == pytest.approx(float(records["ts"][-1] - records["ts"][0]) / 1e6)


def test_tables_count_as_the_limits_say(made: tuple[np.ndarray, DiskTrace]) -> None:
    records, disk = made
    tables = {(table.kind, table.way): table for table in disk.tables()}
    times = records["ts"].astype(np.int64)
    ends = records["lbn"].astype(np.int64) + records["len"].astype(np.int64) // 512
    known = {
        "io_size_bytes": records["len"].astype(np.int64),
        "latency_us": records["rt"].astype(np.int64),
        "interarrival_us": np.diff(times),
        "seek_distance_blocks": records["lbn"][1:].astype(np.int64) - ends[:-1],
    }
    for kind, values in known.items():
        table = tables[kind, "all"]
        expected = np.bincount(np.searchsorted(table.limits, values), minlength=len(table.counts))
        assert table.counts == tuple(expected), kind
        assert (table.low, table.high) == (values.min(), values.max())
        assert table.mean == pytest.approx(values.mean())


def test_outstanding_counts_the_request_itself(made: tuple[np.ndarray, DiskTrace]) -> None:
    records, disk = made
    done = (records["ts"] + records["rt"]).astype(np.int64)
    depth = [int((done[:i] > records["ts"][i]).sum()) + 1 for i in range(len(records))]
    table = next(t for t in disk.tables() if (t.kind, t.way) == ("outstanding_count", "all"))
    assert (table.low, table.high) == (1, max(depth))
    assert table.mean == pytest.approx(np.mean(depth))


def test_percentiles_are_within_one_percent(made: tuple[np.ndarray, DiskTrace]) -> None:
    records, disk = made
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        exact = np.quantile(records["rt"], share, method="inverted_cdf")
        assert disk.quantiles("latency_us")[name] == pytest.approx(exact, rel=0.01)
    assert disk.quantiles("io_size_bytes")["p99"] == 65536
    histogram = disk.histogram("latency_us", "read")
    assert histogram is not None
    assert (histogram.unit, histogram.total) == ("ms", disk.facts["read_count"])


UNIT = re.compile(r"_(ns|us|ms|s|pct|bytes|kib|mib|gib)(_p\d+)?$")
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


def with_units(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Numbers of a document below a key that ends in a unit, or of a histogram of such a kind."""
    if isinstance(node, dict):
        named = (*path, str(node["kind"]), str(node["way"])) if {"kind", "way"} <= set(node) else path
        for key, value in node.items():
            if key not in ("count", "buckets"):
                yield from with_units(value, (*named, key))
    elif isinstance(node, list):
        for item in node:
            yield from with_units(item, path)
    elif isinstance(node, int | float) and any(UNIT.search(step) for step in path) and not np.isnan(node):
        yield path, float(node)


@pytest.mark.parametrize("seed", range(5))
def test_every_number_of_the_document_is_in_the_unit_of_its_key(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    records = vscsi_records(int(random.integers(200, 3000)), mean_gap_us=float(10 ** random.uniform(1, 5)), seed=seed)
    records.tofile(tmp_path / "db01.vscsi")
    disk = characterise([tmp_path / "db01.vscsi"])[0][0].to_dict()["disks"][0]
    ways = {"all": records["cmd"] > 0, "read": records["cmd"] == READ, "write": records["cmd"] != READ}
    columns = {"io_size_bytes": "len", "latency_us": "rt", "interarrival_us": "ts"}
    gaps = np.diff(records["ts"].astype(np.int64))
    whole_us = float(records["ts"][-1] - records["ts"][0])
    first, end = records["lbn"].astype(np.int64) * 512, (records["lbn"] * 512 + records["len"]).astype(np.int64)
    pages = {page for a, b in zip(first, end, strict=True) for page in range(a // 4096, -(-b // 4096))}
    single = {
        ("duration_s",): whole_us / 1e6,
        ("facts", "duration_ns"): whole_us * 1e3,
        ("facts", "pause_ns"): float(gaps[gaps >= 500_000].sum()) * 1e3,
        ("facts", "read_bytes"): float(records["len"][ways["read"]].sum()),
        ("facts", "write_bytes"): float(records["len"][ways["write"]].sum()),
        ("facts", "end_bytes"): float(end.max()),
        ("facts", "working_set_bytes"): 4096.0 * len(pages),
    }
    checked = 0
    for path, value in with_units(disk):
        if path in single:
            assert value == pytest.approx(single[path]), path
        elif path[0] in ("percentiles", "histograms"):
            _, kind, way, name = path
            values = records[ways[way]][columns[kind]].astype(np.float64)
            values = np.diff(values) if kind == "interarrival_us" else values
            summary: dict[str, Callable[[], Any]] = {"min": values.min, "max": values.max, "mean": values.mean}
            exact = np.quantile(values, SHARES[name], method="inverted_cdf") if name in SHARES else summary[name]()
            assert value == pytest.approx(exact, rel=0.01), path
        elif path == ("burstiness", "window_s"):
            assert value in (0.01, 0.1, 1.0, 10.0)
        else:
            assert path[-1] in ("cache_bytes", "read_stream_bytes_p50", "write_stream_bytes_p50"), path
        checked += 1
    assert checked > 50


def test_the_curve_is_that_of_an_lru_list(made: tuple[np.ndarray, DiskTrace]) -> None:
    records, disk = made
    pages = [
        page
        for lbn, length in zip(records["lbn"].tolist(), records["len"].tolist(), strict=True)
        for page in range(lbn * 512 // 4096, (lbn * 512 + length - 1) // 4096 + 1)
    ]
    assert disk.facts["working_set_bytes"] == len(set(pages)) * 4096
    curve = dict(disk.curve())
    for size in (2**20, 4 * 2**20):
        cache: OrderedDict[int, None] = OrderedDict()
        misses = 0
        for page in pages:
            misses += page not in cache
            cache[page] = None
            cache.move_to_end(page)
            if len(cache) > size // 4096:
                cache.popitem(last=False)
        assert curve[size] == pytest.approx(misses / len(pages), abs=0.01)


def test_a_poisson_process_has_a_dispersion_of_about_one(made: tuple[np.ndarray, DiskTrace]) -> None:
    _, disk = made
    first = disk.burstiness()[0]
    assert first.window_s == 0.01
    assert first.dispersion == pytest.approx(1.0, abs=0.15)
    assert disk.facts["pause_count"] == 0


def test_streams_and_pauses_are_found(tmp_path: Path) -> None:
    records = vscsi_records(200, read_share=1.0)
    records["len"] = 8192
    records["lbn"][:100] = 10**6 + np.arange(100) * 16  # one stream, then random requests
    records["ts"][150:] += 2_000_000
    records.tofile(tmp_path / "a.vscsi")
    disk = characterise([tmp_path / "a.vscsi"])[0][0].disks[0]
    facts = disk.facts
    assert facts["read_stream_count"] == 1
    assert facts["sequential_read_count"] >= 99
    assert facts["read_stream_bytes_p50"] == pytest.approx(100 * 8192, rel=0.01)
    assert facts["pause_count"] == 1
    assert facts["pause_ns"] == pytest.approx(2e9, rel=0.01)


def test_a_folder_gives_its_traces_and_names_the_rest(tmp_path: Path) -> None:
    write_vscsi(tmp_path / "db01.vscsi", 100)
    (tmp_path / "notes.txt").write_text("hello\n")
    reports, passed = characterise([tmp_path])
    assert [report.files.format for report in reports] == ["vscsi"]
    assert passed == [str(tmp_path / "notes.txt")]
    (tmp_path / "db01.vscsi").unlink()
    with pytest.raises(InputError, match="no I/O trace"):
        characterise([tmp_path])


def test_errors_name_the_byte(tmp_path: Path) -> None:
    records = vscsi_records(100)
    records["ver"][50] = 0x0100
    records.tofile(tmp_path / "a.vscsi")
    with pytest.raises(InputError, match=r"a\.vscsi: byte 2000: a record that is not of version 2"):
        characterise([tmp_path / "a.vscsi"])


def test_progress_and_interruption(tmp_path: Path) -> None:
    write_vscsi(tmp_path / "a.vscsi", 200_000)
    seen: list[tuple[int, int]] = []
    characterise([tmp_path / "a.vscsi"], lambda done, total, _: seen.append((done, total)))
    assert seen[-1] == (8_000_000, 8_000_000)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        characterise([tmp_path / "a.vscsi"], stop)


def test_the_limits_are_those_of_a_real_vscsistats(samples: Path, made: tuple[np.ndarray, DiskTrace]) -> None:
    path = next((samples / "vscsistats").glob("*.csv"))
    blocks = {(b.kind, b.way): tuple(b.limits[:-1]) for b in vscsistats._blocks(Source(path.name, path))}
    own = {(table.kind, table.way): table.limits for table in made[1].tables()}
    assert set(blocks) == set(own)
    assert blocks == own


def test_a_real_blktrace_recording(samples: Path) -> None:
    reports, _ = characterise([samples / "blocktrace"])
    assert [(report.files.format, len(report.files.paths)) for report in reports] == [("blktrace", 8)]
    disk = reports[0].disks[0]
    assert (disk.name, disk.facts["read_count"], disk.facts["write_count"]) == ("8,52", 0, 1153)
    assert 10 < disk.quantiles("latency_us")["p50"] < 1000


def test_a_real_iolog(samples: Path) -> None:
    reports, _ = characterise([samples / "fio" / "axboe__fio__t0038.iolog"])
    disk = reports[0].disks[0]
    assert (disk.name, disk.request_count) == ("/dev/null", 10)
    assert disk.histogram("latency_us") is None
    assert np.isnan(disk.quantiles("latency_us")["p50"])


@pytest.mark.real
def test_a_known_number_of_requests_of_a_real_fio(tmp_path: Path) -> None:
    """Measure the measurer: 9,973 requests are asked of fio, and its iolog has 9,973, three quarters of them reads."""
    words = ["fio", "--name=known", "--rw=randrw", "--rwmixread=75", "--bs=8k", "--size=16m", "--number_ios=9973"]
    words += ["--io_size=1g", "--filename=known.dat", "--write_iolog=known.iolog", "--randrepeat=1", "--norandommap"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    report = characterise([tmp_path / "known.iolog"])[0][0]
    disk = report.disks[0]
    assert report.files.format == "fio-iolog"
    assert disk.request_count == 9973
    assert disk.facts["read_share"] == pytest.approx(0.75, abs=0.02)
    assert disk.facts["end_bytes"] <= 16 * 2**20
    assert disk.quantiles("io_size_bytes")["p50"] == 8192
    assert disk.duration_s > 0.0
