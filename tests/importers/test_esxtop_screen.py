"""esxtop's interactive screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import esxtop_screen
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "esxtop-screen.txt").read_text()
FIELD = ROOT.parent / "shared" / "field" / "hypervisor-esxtop-screen-text"
VM = "host:esxi/vm:db01 of shop"
DAY = 1_795_132_800  # 2026-11-20


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return esxtop_screen.read(source_of(folder, text), request or Request())


def one(capture: Capture, metric: str, entity: str) -> float:
    return float(values_of(capture, metric, entity)[-1])


def test_is_recognised(tmp_path: Path) -> None:
    chosen = recognise(source_of(tmp_path, SEED), load_units("importer"))
    assert chosen is not None
    assert chosen[0] == "esxtop-screen"


def test_vms_without_known_vcpus_keep_ready_as_a_sum(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert one(capture, "cpu_ready_pct_sum", VM) == 114.2
    assert one(capture, "raw.esxtop-screen.cpu_used_pct_sum", VM) == 176.1
    assert "cpu_ready_pct" not in {g.metric for g in capture.groups for e in g.entities if str(e) == VM}
    assert "no-vcpu-count" in codes(capture)


def test_expanded_vms_have_vcpus(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert one(capture, "cpu_ready_pct", "host:esxi/vm:app01/vcpu:1") == 20
    vms = {e.name: capture.inventory.get(e, "vcpu_count") for e in capture.inventory.facts if e.kind == "vm"}
    assert vms == {"db01 of shop": None, "app01": 2}


def test_the_only_vm_has_the_vcpus_of_the_first_line(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED.replace("2 VMs, 60 vCPUs", "1 VM, 4 vCPUs"))
    assert one(capture, "cpu_ready_pct", VM) == pytest.approx(28.55)
    assert one(capture, "cpu_costop_pct", VM) == pytest.approx(2.425)


def test_host_and_memory(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert one(capture, "host_cpu_used_pct", "host:esxi") == 92
    assert one(capture, "host_cpu_util_pct", "host:esxi/pcpu:2") == 97
    assert one(capture, "host_cpu_load_5m", "host:esxi") == 1.49
    assert one(capture, "host_memory_overcommit_1m", "host:esxi") == 0.5
    assert one(capture, "host_memory_machine_mib", "host:esxi") == 65501
    assert one(capture, "host_memory_free_mib", "host:esxi") == 28266
    assert one(capture, "host_memory_state_count", "host:esxi") == 2
    assert one(capture, "host_memory_swap_read_mib_per_s", "host:esxi") == 0.25
    assert one(capture, "memory_balloon_mib", VM) == 512
    assert one(capture, "memory_balloon_driver_flag", VM) == 1


def test_disks(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    device, volume = "host:esxi/device:naa.6001405aabbccdd", "host:esxi/datastore:my store"
    assert [one(capture, f"disk_{name}_latency_ms", device) for name in ("queue", "kernel", "device")] == [
        9.7,
        9.8,
        5.6,
    ]
    assert one(capture, "disk_queued_count", device) == 48
    assert one(capture, "datastore_guest_latency_ms", volume) == 35.4
    assert one(capture, "disk_kernel_latency_ms", "host:esxi/adapter:vmhba0") == 1796.42
    assert one(capture, "virtual_disk_latency_ms_write", f"{VM}/virtual-disk:scsi0:1") == 4.5
    assert one(capture, "disk_iops", VM) == 100
    # The last column's name was cut, its values are nobody's.
    assert not [g for g in capture.groups if g.metric == "disk_guest_latency_ms_write"]


def test_screens_are_samples(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    loads = group_of(capture, "host_cpu_load_1m", "host:esxi")
    assert seconds(loads) == [DAY + 9 * 3600 + 42 * 60 + 43 + s for s in (0, 20, 30, 40)]
    assert loads.interval_s == 10
    assert not capture.sources[0].clock_known
    assert codes(capture) == ["parts", "no-date", "no-zone", "no-vcpu-count"]


def test_past_noon_and_midnight(tmp_path: Path) -> None:
    late = SEED.replace(" 9:42:43am", "11:59:59pm").replace(" 9:42:53am", "12:00:09am")
    capture = read_text(tmp_path, late, Request(timezone="UTC", date="2026-11-20"))
    assert seconds(group_of(capture, "host_cpu_used_pct", "host:esxi")) == [DAY + 86399]
    assert seconds(group_of(capture, "memory_size_mib", VM)) == [DAY + 86409]


def test_a_table_alone_is_one_sample_of_the_file(tmp_path: Path) -> None:
    lines = SEED.splitlines()
    start = next(i for i, line in enumerate(lines) if "DEVICE" in line)
    capture = read_text(tmp_path, "\n".join(lines[start : start + 2]) + "\n[root@esx01:~] \n")
    group = group_of(capture, "disk_queued_count", "host:esxi/device:naa.6001405aabbccdd")
    assert group.times_ns.tolist() == [MTIME_NS]
    assert group.interval_s == 5
    assert codes(capture) == ["lines", "no-times", "one-screen"]


def test_a_screen_without_rows_names_the_batch_command(tmp_path: Path) -> None:
    lines = SEED.splitlines()
    heading = next(line for line in lines if "DEVICE" in line)
    with pytest.raises(InputError, match=r"esxtop -b -a -d 5 -n 120 > esxtop\.csv"):
        read_text(tmp_path, f"{lines[0]}\n{heading}\n naa.6001 - 32\n")


def test_the_screens_of_a_report(tmp_path: Path) -> None:
    if not FIELD.is_dir():
        pytest.skip("the field cases are not beside this checkout")
    disk = esxtop_screen.read(Source("disk.txt", FIELD / "disk.txt"), Request())
    assert one(disk, "disk_queue_latency_ms", "host:esxi/device:naa.6001405aabbccdd") == 9.7
    cpu = esxtop_screen.read(Source("cpu.txt", FIELD / "cpu.txt"), Request())
    assert one(cpu, "cpu_ready_pct_sum", "host:esxi/vm:db01") == 114.2
