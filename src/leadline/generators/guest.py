"""What the guest of a model host's VM would have recorded: iostat text of its disks, and the inventory that links them.

The guest sees of each virtual disk what the hypervisor delivers: its rates, and its latency plus a little of its own.
So a fault injected below shows in the guest as it would, and a diagnosis of both recordings can be asked which layer it
is.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from leadline.core.io.outputs import mark

if TYPE_CHECKING:
    from leadline.generators.host_model import HostModel

GUEST_OVERHEAD_MS = 0.08  # block layer and interrupt of the guest
IO_SIZE_KIB = 8.0  # PostgreSQL's page
_HEADER = (
    "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await "
    "wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util"
)


def device_name(disk: int) -> str:
    """What the guest calls its n-th virtual disk: sda, sdb, ..."""
    return f"sd{chr(ord('a') + disk)}"


def iostat_text(model: HostModel, vm: int) -> str:
    """``iostat -x -t`` text of a VM's disks over the model's whole time, since-boot report included."""
    shape = model.shape
    disks = list(range(vm * shape.disks_per_vm, (vm + 1) * shape.disks_per_vm))
    latency = model.disk_latency()[disks] + GUEST_OVERHEAD_MS
    reads, writes = model.disk_reads[disks], model.disk_writes[disks]
    busy = model.used[model.vcpus_of(vm)].mean(axis=0)
    step_ns = round(shape.interval_s * 1e9)
    start = _stamp(shape.start_ns)
    lines = [f"Linux 6.1.0 ({model.vm_names[vm]}) \t{start[:10]} \t_x86_64_\t({shape.vcpus_per_vm} CPU)", ""]
    for sample in range(-1, shape.sample_count):
        at = max(sample, 0)  # the first report, since boot, repeats the first sample
        outstanding = float(((reads + writes) * latency)[:, at].sum()) / 1000.0
        waiting = min(10.0 * outstanding / shape.vcpus_per_vm, 60.0)
        cpu = float(busy[at])
        lines += [
            _stamp(shape.start_ns + (sample + 1) * step_ns),
            "avg-cpu:  %user   %nice %system %iowait  %steal   %idle",
            f"{0.8 * cpu:16.2f}    0.00 {0.2 * cpu:7.2f} {waiting:7.2f}    0.00 {max(100 - cpu - waiting, 0):7.2f}",
            "",
            _HEADER,
        ]
        lines += [
            _row(device_name(i), float(reads[i, at]), float(writes[i, at]), float(latency[i, at]))
            for i in range(len(disks))
        ]
        lines += ["", ""]
    return "\n".join(lines)


def _row(name: str, reads: float, writes: float, latency: float) -> str:
    queue = (reads + writes) * latency / 1000.0
    return (
        f"{name:<12}{reads:9.2f} {reads * IO_SIZE_KIB:9.2f}     0.00   0.00 {latency:7.2f} {IO_SIZE_KIB:8.2f} "
        f"{writes:7.2f} {writes * IO_SIZE_KIB:9.2f}     0.00   0.00 {latency:7.2f} {IO_SIZE_KIB:8.2f} "
        f"   0.00      0.00     0.00   0.00    0.00     0.00    0.00    0.00 {queue:7.2f} "
        f"{float(np.minimum(100.0 * queue, 100.0)):6.2f}"
    )


def _stamp(time_ns: int) -> str:
    """ISO time with a zone, as iostat prints it with S_TIME_FORMAT=ISO."""
    return datetime.fromtimestamp(time_ns / 1e9, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S+0000")


def inventory_text(model: HostModel, vm: int) -> str:
    """The inventory that says which guest disk is which virtual disk on which LUN."""
    shape = model.shape
    disks: list[dict[str, Any]] = []
    devices: list[dict[str, Any]] = []
    for i in range(shape.disks_per_vm):
        disk = vm * shape.disks_per_vm + i
        name = f"scsi{i % 4}:{i // 4}"
        disks.append({"name": name, "device": model.lun_name(int(model.disk_lun[disk]))})
        devices.append({"name": device_name(i), "virtual_disk": name})
    document = {
        "leadline_inventory": 1,
        "vms": [{"name": model.vm_names[vm], "guest": model.vm_names[vm], "disks": disks}],
        "guests": [{"name": model.vm_names[vm], "cpu_count": shape.vcpus_per_vm, "devices": devices}],
    }
    return mark("leadline generate") + yaml.safe_dump(document, sort_keys=False)
