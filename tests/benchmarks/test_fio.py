"""The fio driver: the job file it writes, what it refuses, and real runs of fio on files."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import LoadPlan, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import InputError, LeadlineError, ToolError, UsageError
from leadline.core.model.result import Tick
from leadline.core.model.workload import Workload, parse_workload
from leadline.formats.json_documents import json_documents


def workload(streams: str, settings: str = "{working_set: 8m}") -> Workload:
    return parse_workload(f"name: t\nio_settings: {settings}\nio: {streams}\n", "t.yaml")


def job(streams: str, folder: Path, settings: str = "{working_set: 8m}") -> dict[str, dict[str, str]]:
    """The sections of the job file as mappings."""
    made = fio.plan(workload(streams, settings), Target(str(folder)))
    sections: dict[str, dict[str, str]] = {}
    for line in fio.job_file(made, Step("round-1", 5.0, 7)).splitlines():
        if line.startswith("["):
            own = sections.setdefault(line.strip("[]"), {})
        elif line:
            key, _, value = line.partition("=")
            own[key] = value
    return sections


def test_streams_become_jobs(tmp_path: Path) -> None:
    found = job(
        "[{name: data, block: {8k: 60, 64k: 40}, read_pct: 70, oio: 16, jobs: 2}, "
        "{name: wal, block: 8k, read_pct: 0, random_pct: 0, sync_every: 1}]",
        tmp_path,
    )
    data, wal = found["data"], found["wal"]
    assert (data["rw"], data["rwmixread"], data["bssplit"]) == ("randrw", "70", "8192/60:65536/40")
    assert (data["iodepth"], data["numjobs"], data["size"]) == ("16", "2", str(8 * 2**20))
    assert (wal["rw"], wal["bs"], wal["fdatasync"]) == ("write", "8192", "1")
    assert found["global"]["randseed"] == "7"
    assert found["global"]["direct"] == "1"
    assert (data["filename"], wal["filename"]) == ("t0", "t1")
    assert data["allow_file_create"] == wal["allow_file_create"] == "0"


def test_a_depth_the_ring_would_round_up_is_kept_by_another_engine(tmp_path: Path) -> None:
    made = fio.plan(workload("[{name: a, oio: 64}, {name: b, oio: 116}]"), Target(str(tmp_path)))
    text = fio.job_file(replace(made, engine="io_uring"), Step("round-1", 5.0, 7))
    engines = [line for line in text.splitlines() if line.startswith("ioengine=")]
    assert engines == ["ioengine=io_uring", "ioengine=libaio"]


def test_an_engine_that_is_asked_for_is_taken(tmp_path: Path) -> None:
    streams = "[{name: a, oio: 6, jobs: 2}]"
    mapped = job(streams, tmp_path, "{working_set: 8m, engine: mmap, buffered: true}")
    assert (mapped["a"]["ioengine"], mapped["a"]["iodepth"], mapped["a"]["numjobs"]) == ("mmap", "1", "12")
    assert mapped["global"]["direct"] == "0"
    plain = job(streams, tmp_path, "{working_set: 8m, engine: libaio}")["a"]
    assert (plain["ioengine"], plain["iodepth"], plain["numjobs"]) == ("libaio", "6", "2")
    made = fio.plan(workload(streams, "{working_set: 8m, engine: psync}"), Target(str(tmp_path)))
    assert made.notes == ("psync has one request at a time per job, so jobs are multiplied by oio",)
    for settings, message in (
        ("{engine: mmap}", "buffered must be true"),
        ("{engine: libaio, buffered: true}", "waits at every buffered request"),
        ("{engine: splice}", "'auto', 'io_uring'"),
    ):
        with pytest.raises(InputError, match=message):
            workload(streams, settings)


def test_io_uring_is_refused_where_it_may_not_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fio, "io_uring_usable", lambda: False)
    with pytest.raises(UsageError, match="does not allow it"):
        fio.plan(workload("[{}]", "{engine: io_uring}"), Target(str(tmp_path)))
    settings = {"{working_set: 8m}": "libaio", "{working_set: 8m, buffered: true}": "psync"}
    assert {text: fio.plan(workload("[{}]", text), Target(str(tmp_path))).engine for text in settings} == settings


@pytest.mark.real
@pytest.mark.parametrize("engine", ["psync", "mmap"])
def test_engines_with_one_request_at_a_time_run(engine: str, tmp_path: Path) -> None:
    settings = f"{{working_set: 8m, engine: {engine}, buffered: true}}"
    made = fio.plan(workload("[{block: 8k, read_pct: 50, oio: 2}]", settings), Target(str(tmp_path)))
    fio.prepare(made, tmp_path, lambda _: None)
    found = fio.measure(made, Step("round-1", 1.0, 1), tmp_path, lambda _: True)
    fio.clean(made)
    last = json_documents(found.files[0].read_text(), "x").documents[-1].value
    assert last["global options"].get("ioengine", last["jobs"][0]["job options"]["ioengine"]) == engine
    assert all(last["jobs"][0][way]["total_ios"] > 0 for way in ("read", "write"))


def test_rates_are_per_job_and_bursts_pause(tmp_path: Path) -> None:
    found = job("[{name: a, read_pct: 70, rate_iops: 100, jobs: 2}, {name: b, burst: {on_s: 2, off_s: 8}}]", tmp_path)
    assert (found["a"]["rate_iops"], found["a"]["rate_process"]) == ("35,15", "poisson")
    assert (found["b"]["thinktime"], found["b"]["thinktime_iotime"]) == ("8000000us", "2000000us")
    compressed = job("[{}]", tmp_path, "{working_set: 8m, compress_pct: 50, dedupe_pct: 20}")["global"]
    assert (compressed["buffer_compress_percentage"], compressed["dedupe_percentage"]) == ("50", "20")


@pytest.mark.real
def test_a_rate_of_flushed_writes_is_offered_evenly_and_runs(tmp_path: Path) -> None:
    """Fio before 3.42 ends at the first flush among random arrivals."""
    stream = "{block: 8k, read_pct: 0, sync_every: 1, rate_iops: 50}"
    made = fio.plan(workload(f"[{stream}]"), Target(str(tmp_path)))
    fio.prepare(made, tmp_path, lambda _: None)
    result = fio.measure(made, Step("round-1", 2.0, 1), tmp_path, lambda _: True)
    fio.clean(made)
    (job,) = json_documents(result.files[0].read_text(), "x").documents[-1].value["jobs"]
    assert job["job options"]["rate_process"] == "linear"
    assert job["write"]["iops"] == pytest.approx(50.0, rel=0.2)
    with pytest.raises(UsageError, match="Leave arrivals out"):
        fio.plan(workload(f"[{stream[:-1]}, arrivals: poisson}}]"), Target(str(tmp_path)))


def test_shares_of_sizes_are_whole_percents_and_none_is_dropped(tmp_path: Path) -> None:
    found = job("[{name: a, block: {512: 0.4, 4k: 33.3, 8k: 66.3}}, {name: b, block: {4k: 99.8, 8k: 0.2}}]", tmp_path)
    assert (found["a"]["bssplit"], found["b"]["bssplit"]) == ("512/1:4096/33:8192/66", "4096/99:8192/1")
    sizes = ", ".join(f"{4 * number}k: 6.25" for number in range(1, 17))
    mix = job(f"[{{block: {{{sizes}}}}}]", tmp_path)["io"]["bssplit"]
    shares = [int(part.partition("/")[2]) for part in mix.split(":")]
    assert (len(shares), sum(shares), min(shares)) == (16, 100, 6)


@pytest.mark.real
def test_a_rate_at_even_distances_holds_for_a_mix_of_sizes(tmp_path: Path) -> None:
    """Fio keeps such a rate in bytes of the smallest size: asked for 100/s it would do 40/s of this mix."""
    made = fio.plan(workload("[{block: {4k: 50, 16k: 50}, rate_iops: 100, arrivals: even}]"), Target(str(tmp_path)))
    fio.prepare(made, tmp_path, lambda _: None)
    found = fio.measure(made, Step("round-1", 3.0, 1), tmp_path, lambda _: True)
    last = json_documents(found.files[0].read_text(), "x").documents[-1].value
    assert last["jobs"][0]["read"]["total_ios"] == pytest.approx(300, rel=0.25)
    fio.clean(made)


def test_data_is_not_overwritten_unless_the_very_same_target_is_named(tmp_path: Path) -> None:
    held, other = tmp_path / "held.dat", tmp_path / "other.dat"
    for path in (held, other):
        path.write_bytes(b"x" * 2**21)
    writes = workload("[{read_pct: 50}]")
    with pytest.raises(UsageError, match="--destroy-data"):
        fio.plan(writes, Target(str(held)))
    with pytest.raises(UsageError, match="data that would be overwritten"):
        fio.plan(writes, Target(str(held), destroy=str(other)))
    made = fio.plan(writes, Target(str(held), destroy=str(held)))
    assert not made.places["io"].is_made
    fio.clean(made)
    assert held.exists()
    assert fio.plan(workload("[{}]"), Target(str(held))).read_only


def test_targets_that_cannot_be(tmp_path: Path) -> None:
    for name in (tmp_path / "none" / "file", tmp_path / "none"):
        with pytest.raises(UsageError, match=r"no such folder, file or device.* Make the folder first: mkdir -p"):
            fio.plan(workload("[{}]"), Target(str(name)))
    with pytest.raises(ToolError, match="GiB that may be used"):
        fio.plan(workload("[{}]", "{working_set: 900t}"), Target(str(tmp_path)))
    (tmp_path / "tiny").write_bytes(b"x")
    with pytest.raises(UsageError, match="at least 1 MiB"):
        fio.plan(workload("[{}]"), Target(str(tmp_path / "tiny")))
    place = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(place)  # there and allowed, but nothing that can be opened
        with pytest.raises(UsageError, match="neither file nor block device"):
            fio.plan(workload("[{}]"), Target(place, place))
    with pytest.raises(UsageError, match="a target of kind ftp"):
        fio.plan(workload("[{}]"), Target("ftp://host/x"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look at the root filesystem's device")
def test_a_mounted_device_is_refused_even_when_named() -> None:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        device = line.split(" - ")[1].split()[1]
        if device.startswith("/dev/") and Path(device).is_block_device():
            with pytest.raises(UsageError, match="never writes to a mounted device"):
                fio.plan(workload("[{read_pct: 0}]"), Target(device, destroy=device))
            return
    pytest.skip("no mounted block device here")


@pytest.mark.real
def test_a_real_run_ends_when_it_is_told_to_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    made = fio.plan(workload("[{name: data, read_pct: 70, oio: 4}]"), Target(str(tmp_path)))
    fio.prepare(made, folder, lambda _: None)
    path = Path(made.places["data"].path)
    assert path.stat().st_size == 8 * 2**20
    assert len(set(path.read_bytes()[:4096])) > 200  # random, not holes
    seen: list[Tick] = []

    def watch(tick: Tick) -> bool:
        seen.append(tick)
        return len(seen) < 2

    began = time.monotonic()
    found = fio.measure(made, Step("warm-up", 60.0, 1), folder, watch)
    assert time.monotonic() - began < 20.0
    assert found.ended_early
    assert all(tick.per_s > 0 and tick.p99_ms > 0 for tick in seen)
    last = json_documents(found.files[0].read_text(), "x").documents[-1].value
    counted = sum(last["jobs"][0][way]["total_ios"] for way in ("read", "write"))
    assert counted > seen[0].per_s
    fio.clean(made)
    fio.clean(made)
    assert not path.exists()


@pytest.mark.real
@pytest.mark.smoke
def test_a_known_number_of_requests_is_counted(tmp_path: Path) -> None:
    """Measure the measurer: 9,973 requests of 8 KiB are asked of fio, and 9,973 are in its report."""
    folder = tmp_path / "files"
    folder.mkdir()
    made = fio.plan(
        workload("[{name: data, read_pct: 0, random_pct: 0, oio: 4}]", "{working_set: 80m}"), Target(str(tmp_path))
    )
    fio.prepare(made, folder, lambda _: None)
    job_text = fio.job_file(made, Step("round-1", 60.0, 1))
    known = folder / "known.fio"
    known.write_text(job_text.replace("time_based=1\n", "").replace("[data]", "number_ios=9973\n\n[data]"))
    subprocess.run(
        ["fio", "--output-format=json+", f"--output={folder / 'known.json'}", str(known)],
        check=True,
        timeout=60,
        cwd=made.targets.folder,
        pass_fds=made.targets.descriptors,
    )
    from leadline.app.read.importing import import_paths

    results = import_paths([folder / "known.json"]).capture.results
    operation = results[0].operation("write")
    assert operation is not None
    assert operation.count == 9973
    assert operation.histogram is not None
    assert operation.histogram.total == 9973
    fio.clean(made)


@pytest.mark.real
def test_a_target_that_fails_is_one_error(tmp_path: Path) -> None:
    made = fio.plan(workload("[{}]"), Target("nbd://127.0.0.1:1/none"))
    with pytest.raises(LeadlineError, match="fio failed"):
        fio.measure(made, Step("round-1", 2.0, 1), tmp_path, lambda _: True)


def test_a_relative_target_is_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "on").mkdir()
    (tmp_path / "held").write_bytes(b"x" * 2**21)
    monkeypatch.chdir(tmp_path)
    for name, path in (("on", "on/leadline-bench-io.dat"), ("held", "held")):
        made = fio.plan(workload("[{}]"), Target(name))
        assert made.places["io"].path == str(tmp_path / path)
        assert made.read_only == (name == "held")


def test_plans_know_what_they_write(tmp_path: Path) -> None:
    made: LoadPlan = fio.plan(workload("[{name: a}, {name: b, working_set: 16m}]"), Target(str(tmp_path)))
    assert made.written_bytes == 24 * 2**20
