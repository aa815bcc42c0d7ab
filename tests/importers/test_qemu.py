"""What QEMU's host records: counters become rates per vCPU and disk; and a real QEMU, recorded."""

from __future__ import annotations

import json
import math
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from leadline.app.measure.recording import record
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError, ToolError, UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.processes import running
from leadline.core.system.qmp import connect, iops_limits
from leadline.importers import qemu

HOST = Entity(EntityKind.HOST, "kvm01")
VM = Entity(EntityKind.VM, "db01", HOST)
QDEV = "/machine/peripheral/later/virtio-backend"  # as libvirt names a disk of virtio to QEMU


def line(second: int, waits: int = 1, **changes: object) -> str:
    guest = {
        "vcpus": {"0": [second * 500_000_000, waits * second * 250_000_000], "1": [0, waits * second * 750_000_000]},
        "others": [second * 200_000_000, 0],
        "blocks": {
            "data": {
                "rd_operations": second * 100,
                "rd_bytes": second * 100 * 8192,
                "rd_total_time_ns": second * 100 * 4_000_000,
                "wr_operations": 0,
                "wr_bytes": 0,
                "wr_total_time_ns": 0,
            }
        },
    }
    plain = {
        "qemu": 1,
        "time": f"2026-11-21T08:00:{second:02d}.000+00:00",
        "host": "kvm01",
        "cpus": {"0": [second * 100, 0], "1": [second * 25, second * 75]},
        "devices": {"sda": [second * 100, 0, second * 819200, 0, second * 30, 0], "sdb": [0, 0, 0, 0, 0, 0]},
        "guests": {"db01": guest},
    }
    return json.dumps({**plain, **changes}) + "\n"


def read_strictly(folder: Path, text: str) -> Capture:
    path = folder / "qemu.jsonl"
    path.write_text(text)
    return qemu.read(Source(str(path), path), Request())


def read(folder: Path, text: str) -> Capture:
    path = folder / "qemu.jsonl"
    path.write_text(text)
    return import_paths([path]).capture


def values(capture: Capture, metric: str, entity: Entity) -> list[float]:
    row = next(row for group in capture.of(metric) if (row := group.row(entity)) is not None)
    return [float(value) for value in row]


def test_counters_become_rates(tmp_path: Path) -> None:
    capture = read(tmp_path, line(1) + line(2) + line(4))
    vcpu = [Entity(EntityKind.VCPU, name, VM) for name in ("0", "1")]
    assert values(capture, "cpu_run_pct", vcpu[0]) == pytest.approx([50.0, 50.0])
    assert values(capture, "cpu_ready_pct", vcpu[1]) == pytest.approx([75.0, 75.0])
    assert values(capture, "cpu_ready_pct", VM) == pytest.approx([50.0, 50.0])  # the mean of its vCPUs
    assert values(capture, "cpu_system_pct", VM) == pytest.approx([10.0, 10.0])
    assert values(capture, "host_cpu_util_pct", Entity(EntityKind.PCPU, "1", HOST)) == pytest.approx([25.0, 25.0])
    assert values(capture, "host_cpu_util_pct", HOST) == pytest.approx([62.5, 62.5])
    disk = Entity(EntityKind.VIRTUAL_DISK, "data", VM)
    assert values(capture, "disk_reads_per_s", disk) == pytest.approx([100.0, 100.0])
    assert values(capture, "disk_read_mib_per_s", disk) == pytest.approx([100 / 128, 100 / 128])
    assert values(capture, "virtual_disk_latency_ms_read", disk) == pytest.approx([4.0, 4.0])
    assert not capture.of("virtual_disk_latency_ms_write")  # nothing was written: not measured
    assert capture.inventory.get(VM, "vcpu_count") == 2
    device = Entity(EntityKind.DEVICE, "sda", HOST)
    assert values(capture, "disk_device_latency_ms", device) == pytest.approx([0.3, 0.3])
    assert values(capture, "disk_iops", device) == pytest.approx([100.0, 100.0])
    assert [e.name for group in capture.of("disk_iops", EntityKind.DEVICE) for e in group.entities] == ["sda"]


def test_a_kernel_without_wait_times_has_no_ready_time(tmp_path: Path) -> None:
    capture = read(tmp_path, line(1, 0) + line(2, 0))
    assert not capture.of("cpu_ready_pct")


def test_a_guest_that_ended_and_a_cut_line(tmp_path: Path) -> None:
    capture = read(tmp_path, line(1) + line(2) + line(3, guests={}) + line(4)[:50])
    shown = values(capture, "cpu_run_pct", VM)
    assert shown[0] == pytest.approx(25.0)
    assert shown[1] != shown[1]
    assert any(warning.code == "cut" for warning in capture.sources[0].warnings)


def test_a_counter_that_is_no_number_is_not_measured(tmp_path: Path) -> None:
    capture = read(tmp_path, line(1) + line(2, cpus={"0": ["", 10**300], "1": [50, 150]}) + line(3) + line(4))
    shown = values(capture, "host_cpu_util_pct", Entity(EntityKind.PCPU, "0", HOST))
    assert [math.isnan(value) for value in shown] == [True, True, False]


def test_a_guest_whose_vcpus_come_later_has_no_run_time(tmp_path: Path) -> None:
    guest = {"vcpus": {}, "others": [0, 0], "blocks": {}}
    capture = read(tmp_path, line(1, guests={"db01": guest}) + line(2) + line(3))
    assert not capture.of("cpu_run_pct")
    assert capture.of("cpu_system_pct")


def test_damage_is_one_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"qemu.jsonl:2"):
        read_strictly(tmp_path, line(1) + "{}\n" + line(2))
    damages: tuple[dict[str, Any], ...]
    damages = ({"time": "10 o'clock"}, {"guests": {"db01": {}}}, {"guests": {"db01": 1}}, {"cpus": []})
    for changes in damages:
        with pytest.raises(InputError, match=r"qemu.jsonl:2"):
            read_strictly(tmp_path, line(1) + line(2, **changes) + line(3))
    with pytest.raises(InputError, match=r"qemu.jsonl:2"):
        read_strictly(tmp_path, line(1) + '{"guests":' + "[" * 100_000 + "\n" + line(3))
    with pytest.raises(InputError, match="a year from 1678 to 2261"):
        read_strictly(tmp_path, line(1) + line(2, time="2262-04-12T10:00:00+00:00") + line(3))
    for counters in ([1], {"run": 1, "wait": 2}, 7):
        few = {"db01": {"vcpus": {"0": counters}, "others": [1], "blocks": {}}}
        with pytest.raises(InputError, match=r"qemu.jsonl:2"):
            read_strictly(tmp_path, line(1) + line(2, guests=few) + line(3))
    with pytest.raises(InputError, match="no two samples"):
        read_strictly(tmp_path, line(1))


def test_the_limit_of_a_disk_is_what_it_was_at_the_time(tmp_path: Path) -> None:
    text = "".join(line(second, guests={"db01": limited(second, 900 if second < 3 else 40)}) for second in range(1, 5))
    disk = Entity(EntityKind.VIRTUAL_DISK, "data", VM)
    assert values(read(tmp_path, text), "disk_iops_limit", disk) == [900.0, 40.0, 40.0]
    assert not read(tmp_path, line(1) + line(2)).of("disk_iops_limit")


def limited(second: int, limit: int) -> dict[str, Any]:
    guest: dict[str, Any] = json.loads(line(second))["guests"]["db01"]
    return {**guest, "iops_limits": {"data": limit}}


@pytest.mark.real
@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="QEMU is not installed")
def test_the_limits_of_a_real_qemu_are_recorded_however_they_are_set(tmp_path: Path) -> None:
    """By `-drive`, by a throttle group below the disk, and by the command that virsh and Proxmox use."""
    sock, words = tmp_path / "qmp", ["qemu-system-x86_64", "-name", "db01", "-M", "q35", "-m", "64", "-nodefaults"]
    words += ["-display", "none", "-accel", "tcg", "-S", "-qmp", f"unix:{sock},server=on,wait=off"]
    for name in ("drive", "group", "later", "free"):
        (tmp_path / name).write_bytes(bytes(1 << 20))
    group = {"qom-type": "throttle-group", "id": "gold", "limits": {"iops-total": 300}}
    chain = {"driver": "throttle", "node-name": "g", "throttle-group": "gold"}
    file = {"driver": "raw", "file": {"driver": "file", "filename": str(tmp_path / "group")}}
    words += ["-drive", f"if=none,id=d,format=raw,file={tmp_path / 'drive'},throttling.iops-total=200"]
    words += ["-object", json.dumps(group), "-blockdev", json.dumps({**chain, "file": file})]
    words += ["-device", "virtio-blk-pci,drive=d,id=drive", "-device", "virtio-blk-pci,drive=g,id=group"]
    for name in ("later", "free"):
        words += ["-blockdev", f"driver=file,node-name={name}-node,filename={tmp_path / name}"]
        words += ["-device", f"virtio-blk-pci,drive={name}-node,id={name}"]
    with running(words, output=tmp_path / "log", folder=tmp_path, stop_signal=signal.SIGTERM):
        guest = connect(sock)
        guest.execute("human-monitor-command", command_line=f"block_set_io_throttle {QDEV} 0 0 0 150 0 0")
        assert iops_limits(guest) == {"drive": 200.0, "group": 300.0, "later": 150.0}
        guest.execute("qom-set", path="/objects/gold", property="limits", value={"iops-total": 7})
        assert iops_limits(guest)["group"] == 7.0
        guest.close()


@pytest.mark.real
@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="QEMU is not installed")
def test_a_real_qemu_is_recorded(tmp_path: Path) -> None:
    image, sock = tmp_path / "disk.raw", tmp_path / "qmp"
    image.write_bytes(bytes(1 << 20))
    words = ["qemu-system-x86_64", "-name", "db01", "-M", "q35", "-m", "64", "-nodefaults", "-display", "none"]
    words += ["-accel", "tcg", "-smp", "2", "-blockdev", f"driver=file,node-name=d,filename={image}"]
    words += ["-device", "virtio-blk-pci,drive=d,id=data", "-qmp", f"unix:{sock},server=on,wait=off"]
    with running(words, output=tmp_path / "log", folder=tmp_path, stop_signal=signal.SIGTERM) as process:
        connect(sock).close()
        done = record("qemu", str(sock), tmp_path / "out", every_s=0.5, seconds=2.0)
        assert done.sample_count >= 3
        guest = connect(sock)
        assert guest.pid == process.pid
        with pytest.raises(ToolError, match="no-such-command"):
            guest.execute("no-such-command")
        guest.close()
    capture = import_paths([tmp_path / "out"]).capture
    (vm,) = capture.inventory.of_kind(EntityKind.VM)
    assert vm.name == "db01"
    run = values(capture, "cpu_run_pct", Entity(EntityKind.VCPU, "0", vm))
    assert 0.0 <= max(run) <= 110.0
    disk = Entity(EntityKind.VIRTUAL_DISK, "data", vm)
    assert values(capture, "disk_reads_per_s", disk)[-1] >= 0.0
    with pytest.raises(ToolError):
        record("qemu", str(tmp_path / "none"), tmp_path / "out", every_s=1.0, seconds=2.0)
    with pytest.raises(UsageError):
        record("qemu", "", tmp_path / "out", every_s=1.0, seconds=2.0)
