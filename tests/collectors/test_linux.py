"""The recorder of this machine: what it writes is what the kernel said, and iostat beside it agrees."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from leadline.app.measure.recording import record, recording
from leadline.app.read.importing import import_paths
from leadline.collectors import linux
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.tools import find_program

pytestmark = pytest.mark.real


def means(capture: Capture, metric: str, kind: EntityKind) -> dict[str, float]:
    found = {}
    for group in capture.of(metric, kind):
        for row, entity in enumerate(group.entities):
            found[entity.name] = float(np.nanmean(group.values[row]))
    return found


@pytest.mark.skipif(find_program("iostat") is None or find_program("fio") is None, reason="needs iostat and fio")
def test_iostat_beside_it_agrees(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "iostat.json"
    load = ["fio", "--name=x", f"--filename={tmp_path / 'file'}", "--size=32m", "--rw=randrw", "--bs=8k", "--iodepth=4"]
    load += ["--direct=1", "--time_based", "--runtime=6", "--ioengine=libaio", "--rate_iops=500,500"]
    own.mkdir()
    with subprocess.Popen(load, stdout=subprocess.DEVNULL) as running, other.open("wb") as stream:
        time.sleep(1.0)
        with recording({"linux": ""}, own, every_s=0.2) as notes:
            command = ["iostat", "-x", "-t", "-y", "-d", "-o", "JSON", "4", "1"]
            subprocess.run(command, check=True, stdout=stream, env={"S_TIME_FORMAT": "ISO", "PATH": "/usr/bin:/bin"})
        running.wait(30)
    assert notes == []
    mine, theirs = (import_paths([path], Request()).capture for path in (own, other))
    end = int(theirs.of("disk_writes_per_s", EntityKind.BLOCK_DEVICE)[0].times_ns[-1])
    busiest = max(means(theirs, "disk_writes_per_s", EntityKind.BLOCK_DEVICE).items(), key=lambda pair: pair[1])
    assert busiest[1] > 300
    for metric in ("disk_reads_per_s", "disk_writes_per_s", "disk_read_mib_per_s", "disk_write_mib_per_s"):
        expected = means(theirs, metric, EntityKind.BLOCK_DEVICE)[busiest[0]]
        # iostat tells the end of its 4 s in whole seconds, and other tests may load the same disk: its mean is one of
        # those over 4 s that end within that second.
        found = [over(mine, metric, busiest[0], end + shift * 10**8 - 4 * 10**9, 4 * 10**9) for shift in range(-1, 13)]
        assert min(found) * 0.9 <= expected <= max(found) * 1.1, metric


def over(capture: Capture, metric: str, name: str, start_ns: int, span_ns: int) -> float:
    """The mean of a rate over a span, each sample counting as long as it lasted."""
    for group in capture.of(metric, EntityKind.BLOCK_DEVICE):
        for row, entity in enumerate(group.entities):
            if entity.name == name:
                ends = np.clip(group.times_ns - start_ns, 0, span_ns)
                lasting = np.diff(ends, prepend=0)
                known = (lasting > 0) & np.isfinite(group.values[row])
                return float(np.average(group.values[row][known], weights=lasting[known]))
    raise AssertionError(name)


def test_cpus_memory_and_the_guests_name_are_there(tmp_path: Path) -> None:
    done = record("linux", "", tmp_path, every_s=0.2, seconds=1.0)
    assert done.sample_count == 6
    capture = import_paths([tmp_path], Request()).capture
    name = Path("/proc/sys/kernel/hostname").read_text().strip()
    assert [guest.name for guest in capture.inventory.of_kind(EntityKind.GUEST)] == [name]
    shares = [
        means(capture, f"guest_cpu_{part}_pct", EntityKind.GUEST)[name]
        for part in ("user", "nice", "system", "iowait", "irq", "softirq", "steal", "guest", "idle")
    ]
    assert sum(shares) == pytest.approx(100.0, abs=0.5)
    total = float(Path("/proc/meminfo").read_text().split()[1]) / 1024
    assert 0 < means(capture, "guest_memory_available_mib", EntityKind.GUEST)[name] < total
    assert means(capture, "guest_context_switches_per_s", EntityKind.GUEST)[name] > 0
    assert len(means(capture, "guest_cpu_idle_pct", EntityKind.CPU)) >= 1


def test_a_recording_that_was_cut_keeps_its_whole_samples(tmp_path: Path) -> None:
    record("linux", "", tmp_path, every_s=0.1, seconds=0.5)
    path = tmp_path / linux.FILE_NAME
    path.write_bytes(path.read_bytes()[:-40])
    capture = import_paths([tmp_path], Request()).capture
    assert [warning.code for warning in capture.sources[0].warnings] == ["cut"]
    assert capture.span_ns() is not None


def test_it_names_no_target(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the machine itself"):
        record("linux", "db1", tmp_path, every_s=1.0, seconds=1.0)


def test_a_file_that_leadline_did_not_write_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / linux.FILE_NAME
    for text in ("my notes on linux\n", "# 2026-11-21T00:00:00+00:00\n## /proc/diskstats\n8 0 sda 1\n"):
        path.write_text(text)
        with pytest.raises(UsageError, match="Leadline did not write it") as caught:
            record("linux", "", tmp_path, every_s=0.1, seconds=0.1)
        assert str(path) in caught.value.where
        assert "Name another folder" in caught.value.advice
        assert path.read_text() == text
    path.unlink()
    for _ in range(2):  # its own is continued
        record("linux", "", tmp_path, every_s=0.1, seconds=0.1)
    assert path.read_bytes().count(b"## /proc/sys/kernel/hostname") == 2


def test_a_counter_that_fell_is_not_measured(tmp_path: Path) -> None:
    blocks = []
    for second, reads in enumerate((100, 200, 50, 150)):
        line = f"8 0 sda {reads} 0 {reads * 16} {reads} 0 0 0 0 0 {reads} {reads} 0 0 0 0 0 0"
        blocks.append(f"# 2026-11-21T00:00:0{second}+00:00\n## /proc/diskstats\n{line}\n")
    (tmp_path / "x.txt").write_text("".join(blocks))
    (group,) = import_paths([tmp_path / "x.txt"], Request()).capture.of("disk_reads_per_s")
    assert group.values[0].tolist() == [100.0, 100.0]
    (latency,) = import_paths([tmp_path / "x.txt"], Request()).capture.of("guest_disk_await_ms_read")
    assert latency.values[0].tolist() == [1.0, 1.0]


def test_runs_are_recorded_and_diagnosed(tmp_path: Path) -> None:
    from leadline.app.measure.benching import capture_of, plan, run
    from leadline.core.contracts.load_target import Target
    from leadline.core.model.workload import parse_workload
    from leadline.stores.runs import RunStore, document

    text = "name: t\nio_settings: {working_set: 8m}\ntiming: {warm_up_s: 0, measure_s: 3, rounds: 1}\nio: [{}]\n"
    (tmp_path / "on").mkdir()
    store = RunStore(tmp_path / "home")
    done = run(plan(parse_workload(text, "t"), Target(str(tmp_path / "on"))), store)
    assert list((tmp_path / "on").iterdir()) == []
    assert json.loads(json.dumps(document(done)))["state"] == "done"
    capture = capture_of(done.id, store)
    assert {"fio", "psi"} <= {source.importer for source in capture.sources}
    assert means(capture, "disk_reads_per_s", EntityKind.BLOCK_DEVICE) != {}
