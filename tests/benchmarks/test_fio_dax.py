"""Device DAX as a target: what is planned, from a made sysfs; the device of the tests is /dev/full by another name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leadline.app.measure.workloads import fio_job_text
from leadline.benchmarks import fio
from leadline.benchmarks._fio import binding, dax
from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import UsageError
from leadline.core.model.workload import Workload
from leadline.core.system import safety

MIB = 1024**2
FULL = (1, 7)  # nobody has it open, and it can be opened


def workload(settings: dict[str, Any] | None = None, **stream: Any) -> Workload:
    return Workload.model_validate(
        {
            "name": "tried",
            "io": [{"block": "4k", "read_pct": 50, **stream}],
            "io_settings": {"working_set": "33m", **(settings or {})},
            "timing": {"warm_up_s": 0, "measure_s": 1, "rounds": 1},
        }
    )


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What Linux says of a device of 254 MiB; returns the folder of the device."""
    top = tmp_path / "sys"
    device = top / "dev" / "char" / f"{FULL[0]}:{FULL[1]}"
    device.mkdir(parents=True)
    (top / "bus" / "dax").mkdir(parents=True)
    (device / "subsystem").symlink_to(top / "bus" / "dax")
    # As Linux 6.1 showed them of an NVDIMM of 256 MiB.
    for name, text in (("size", "266338304"), ("align", "2097152"), ("numa_node", "1")):
        (device / name).write_text(f"{text}\n")
    monkeypatch.setattr(dax, "SYSFS", top)
    return device


@pytest.fixture
def device(tmp_path: Path, sysfs: Path) -> str:
    path = tmp_path / "dax0.0"
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(*FULL))
        path.open("rb").close()
    except OSError:
        pytest.skip("only root makes devices, and not everywhere")
    del sysfs
    return str(path)


def test_a_mapped_device_gets_its_engine_a_whole_size_and_no_direct_io(device: str) -> None:
    plan = fio.plan(workload(oio=4, jobs=2), Target(device, destroy=device))
    (place,) = plan.places.values()
    assert (plan.engine, place.engine, place.is_made) == ("dev-dax", "dev-dax", False)
    assert place.size_bytes == 34 * MIB  # a multiple of the alignment
    lines = fio.job_file(plan, Step("round-1", 1.0, 1)).splitlines()
    section = lines[lines.index("[io]") if "[io]" in lines else lines.index("", 1) + 1 :]
    for line in (
        "ioengine=dev-dax",
        "direct=0",
        "iodepth=1",
        "numjobs=8",
        f"size={34 * MIB}",
        "filename=t0",
        "bs=4096",
    ):
        assert line in section
    assert any("one request at a time" in note for note in plan.notes)
    fill = fio.fill_words(plan, place)
    assert {"--ioengine=dev-dax", "--direct=0", f"--size={34 * MIB}", "--filename=t0"} <= set(fill)


def test_a_working_set_ends_with_the_device(device: str) -> None:
    plan = fio.plan(workload({"working_set": "1g"}), Target(device, destroy=device))
    (place,) = plan.places.values()
    assert place.size_bytes == 254 * MIB
    assert any("254 MiB, all the target has" in note for note in plan.notes)


def test_it_is_overwritten_only_by_its_name(device: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--destroy-data"):
        fio.plan(workload(), Target(device))
    with pytest.raises(UsageError, match="--destroy-data"):
        fio.plan(workload(), Target(device, destroy=str(tmp_path)))
    assert fio.plan(workload(read_pct=100), Target(device)).read_only
    address = f"dax://{device}"
    with pytest.raises(UsageError, match="--destroy-data"):
        fio.plan(workload(), Target(address))
    (place,) = fio.plan(workload(), Target(address, destroy=address)).places.values()
    assert (place.path, place.engine) == (device, "dev-dax")


def test_a_link_leads_to_it(device: str, tmp_path: Path) -> None:
    link = tmp_path / "pmem"
    link.symlink_to(device)
    assert fio.plan(workload(), Target(str(link), destroy=device)).engine == "dev-dax"


@pytest.mark.parametrize(
    ("settings", "stream", "problem"),
    [
        ({"buffered": True}, {}, "no page cache"),
        ({"engine": "libaio"}, {}, "engine"),
        ({}, {"block": 512, "read_pct": 0, "sync_every": 1}, "multiple of"),
        ({}, {"request_burst": {"requests": 4, "gap_s": "100ms"}}, "one request at a time"),
    ],
)
def test_what_a_mapping_cannot_do_is_refused(
    device: str, settings: dict[str, Any], stream: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        fio.job_file(fio.plan(workload(settings, **stream), Target(device, destroy=device)), Step("round-1", 1.0, 1))


def test_a_block_without_flushes_may_be_smaller_than_a_page(device: str) -> None:
    assert fio.plan(workload(block=512), Target(device, destroy=device)).engine == "dev-dax"


def test_a_device_smaller_than_its_alignment_is_refused(device: str, sysfs: Path) -> None:
    (sysfs / "size").write_text("4096\n")
    with pytest.raises(UsageError, match="alignment"):
        fio.plan(workload(), Target(device, destroy=device))


def test_another_character_device_is_no_target(device: str, sysfs: Path) -> None:
    (sysfs / "subsystem").unlink()
    (sysfs / "subsystem").symlink_to(sysfs.parent)
    with pytest.raises(UsageError, match="neither file nor block device"):
        fio.plan(workload(), Target(device, destroy=device))
    with pytest.raises(UsageError, match="no DAX device"):
        fio.plan(workload(), Target(f"dax://{device}", destroy=device))


def test_only_the_load_of_mapped_memory_takes_it(device: str) -> None:
    """Tools that read and write by calls get nothing from it."""
    with pytest.raises(UsageError, match="neither file nor block device"):
        safety.usable(Path(device), device, writes=True)


def test_a_device_that_another_process_has_open_is_refused(device: str) -> None:
    text = "import sys; f = open(sys.argv[1], 'rb'); print(flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", text, device]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(UsageError, match=f"process {other.pid} has it open or mapped"):
            fio.plan(workload(), Target(device, destroy=device))
        assert fio.plan(workload(read_pct=100), Target(device)).read_only
        other.communicate(b"")


def test_a_device_that_is_mapped_but_closed_is_refused(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "proc" / "77").mkdir(parents=True)
    maps = f"7f6e40000000-7f6e48000000 rw-s 00000000 00:06 393 {' ' * 20} {device}\n"
    (tmp_path / "proc" / "77" / "maps").write_text(maps)
    monkeypatch.setattr(dax, "PROCESSES", tmp_path / "proc")
    with pytest.raises(UsageError, match="process 77"):
        fio.plan(workload(), Target(device, destroy=device))


def test_the_node_of_its_memory(device: str, sysfs: Path) -> None:
    assert binding.node_of(Path(device), sysfs.parent.with_name("block")) == 1


def test_the_job_file_for_another_machine_knows_it_by_its_name() -> None:
    text = fio_job_text(workload(), "/dev/dax1.0")
    for line in ("filename=/dev/dax1.0", "ioengine=dev-dax", "direct=0", f"size={34 * MIB}"):
        assert f"\n{line}\n" in text
    assert "ioengine=dev-dax" not in fio_job_text(workload(), "/dev/sda")
