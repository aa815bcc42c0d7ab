"""Traces characterised: every number against the same computed plainly."""

from __future__ import annotations

import subprocess
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from leadline.app.tracing import DiskTrace, characterise
from leadline.core.errors import InputError
from leadline.core.source import Source
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
        exact = np.quantile(records["rt"], share, method="inverted_cdf") / 1000.0
        assert disk.quantiles("latency_us")[name] == pytest.approx(exact, rel=0.01)
    assert disk.quantiles("io_size_bytes")["p99"] == 65536
    histogram = disk.histogram("latency_us", "read")
    assert histogram is not None
    assert (histogram.unit, histogram.total) == ("ms", disk.facts["read_count"])


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
    assert 0.01 < disk.quantiles("latency_us")["p50"] < 1.0


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
