"""Second readers of what vSphere's tools, its exporters and Windows' performance monitor write."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.importers.independent.reading import NAN, Reading

Series = dict[tuple[str, str], list[float]]


def _columns(path: Path) -> dict[str, list[float]]:
    """Column name after the host -> values; a blank is NaN."""
    text = path.read_bytes().decode().replace("\r\n", "\n").replace("\r", "\n")
    rows = [row for row in csv.reader(text.split("\n")) if row]
    return {
        name.split("\\", 3)[-1]: [float(row[index]) if row[index].strip() else NAN for row in rows[1:]]
        for index, name in enumerate(rows[0])
        if index and name
    }


def esxtop_saved(path: Path) -> Reading:
    """Six columns that a spreadsheet saved again."""
    columns = _columns(path)
    host = "host:proma-2n-dhcp60.eng.vmware.com"
    series: Series = {}
    for metric, counter in {"host_cpu_used_pct": "% Processor Time", "host_cpu_util_pct": "% Util Time"}.items():
        series[metric, f"{host}/pcpu:0"] = columns[f"Physical Cpu(0)\\{counter}"]
        series[metric, f"{host}/pcpu:1"] = columns[f"Physical Cpu(1)\\{counter}"]
        series[metric, host] = columns[f"Physical Cpu(_Total)\\{counter}"]
    return Reading(series)


def esxtop(path: Path) -> Reading:
    """Host memory, the VM with one vCPU, a device with its latencies: 0.00 without a command, as esxtop prints it."""
    columns = _columns(path)
    host = "host:localhost.home"
    vm = f"{host}/vm:styx"
    device = f"{host}/device:mpx.vmhba0:C0:T5:L0"
    scsi = "Physical Disk SCSI Device(mpx.vmhba0:C0:T5:L0)"
    group = "Group Cpu(1302698:styx)"
    series = {
        ("host_memory_free_mib", host): columns["Memory\\Free MBytes"],
        ("host_memory_balloon_mib", host): columns["Memory\\Memctl Current MBytes"],
        ("host_memory_swapped_mib", host): columns["Memory\\Swap Used MBytes"],
        ("cpu_used_pct", vm): columns[f"{group}\\% Used"],
        ("cpu_ready_pct", vm): columns[f"{group}\\% Ready"],
        ("cpu_costop_pct", vm): columns[f"{group}\\% CoStop"],
        ("disk_iops", device): columns[f"{scsi}\\Commands/sec"],
        ("disk_queue_depth_count", device): columns[f"{scsi}\\Device Q Depth"],
    }
    for metric, layer in {"device": "Driver", "kernel": "Kernel", "guest": "Guest", "queue": "Queue"}.items():
        series[f"disk_{metric}_latency_ms", device] = columns[f"{scsi}\\Average {layer} MilliSec/Command"]
    return Reading(series)


def perfmon_disks(path: Path) -> Reading:
    """Queue lengths of logical disks."""
    columns = _columns(path)
    series: Series = {}
    for disk in ("HarddiskVolume2", "C:", "D:"):
        device = f"guest:IMPC3116/block-device:{disk}"
        series["guest_disk_queue_count", device] = columns[f"LogicalDisk({disk})\\Current Disk Queue Length"]
        for direction in ("Read", "Write"):
            counter = f"Avg. Disk {direction} Queue Length"
            series[f"raw.perfmon.LogicalDisk.{counter}", device] = columns[f"LogicalDisk({disk})\\{counter}"]
    return Reading(series)


def perfmon_processes(path: Path) -> Reading:
    """Bytes of processes."""
    series: Series = {}
    for name, values in _columns(path).items():
        process, _, counter = name.partition("\\")
        series[f"raw.perfmon.Process.{counter}", f"guest:7702-48817743/process:{process}"] = values
    return Reading(series)


def vscsistats(path: Path) -> Reading:
    """The mean of each histogram that has one: latencies in microseconds, I/O lengths in bytes."""
    sections: dict[str, dict[str, float]] = {}
    for row in csv.reader(path.read_text().splitlines()):
        if row[0].startswith("Histogram: "):
            numbers = sections.setdefault(row[0].removeprefix("Histogram: "), {})
        elif row[0] in {"min", "max", "mean", "count"}:
            numbers[row[0]] = float(row[1])
    latency = {name: sections[f"latency of {name}IOs in Microseconds (us)"] for name in ("", "Read ", "Write ")}
    disk = "vm:world group 2099979/virtual-disk:scsi0:0"
    series = {
        ("virtual_disk_latency_ms_read", disk): [latency["Read "]["mean"] / 1000],
        ("virtual_disk_latency_ms_write", disk): [latency["Write "]["mean"] / 1000],
        ("virtual_disk_outstanding_count", disk): [
            sections["number of outstanding IOs when a new IO is issued"]["mean"]
        ],
        ("virtual_disk_io_size_bytes", disk): [sections["IO lengths of commands"]["mean"]],
    }
    results = {
        ("world group 2099979 scsi0:0", operation): {
            "count": numbers["count"],
            "mean": numbers["mean"] / 1000,
            "max": numbers["max"] / 1000,
        }
        for operation, numbers in zip(("all", "read", "write"), latency.values(), strict=True)
    }
    return Reading(series, results)


def vrops_stats(path: Path) -> Reading:
    """Ready time, co-stop, and latencies of each virtual disk."""
    resource = json.loads(path.read_text())["values"][0]
    vm = f"vm:{resource['resourceId']}"
    stats = {
        each["statKey"]["key"]: (each["timestamps"], [float(value) for value in each["data"]])
        for each in resource["stat-list"]["stat"]
    }
    series = {
        ("cpu_ready_pct", vm): stats["cpu|readyPct"][1],
        ("memory_consumed_mib", vm): [kib / 1024 for kib in stats["mem|consumed_average"][1]],
    }
    for disk in ("scsi0:0", "scsi0:1", "scsi0:2"):
        for direction in ("read", "write"):
            values = stats[f"virtualDisk:{disk}|total{direction.title()}Latency_average"][1]
            series[f"virtual_disk_latency_ms_{direction}", f"{vm}/virtual-disk:{disk}"] = values
    return Reading(series)


def vrops_properties(path: Path) -> Reading:
    """The configuration of a VM."""
    rows = {row["name"]: row["value"] for row in json.loads(path.read_text())["property"]}
    vm = f"vm:{rows['config|name']}"
    return Reading(
        facts={
            (vm, "vcpu_count"): int(float(rows["config|hardware|numCpu"])),
            (vm, "memory_mib"): float(rows["config|hardware|memoryKB"]) / 1024,
            (vm, "cpu_shares"): float(rows["config|cpuAllocation|shares|shares"]),
            (vm, "hardware_version"): int(rows["config|version"].removeprefix("vmx-")),
            (vm, "tools_version"): rows["summary|guest|toolsVersion"],
            (vm, "guest_os"): rows["config|guestFullName"],
        }
    )


def vm_config(path: Path) -> Reading:
    """The configuration that govc prints."""
    config = json.loads(path.read_text())
    vm = f"vm:{config['name']}"
    hardware = config["hardware"]
    disk = next(each for each in hardware["device"] if each["_typeName"] == "VirtualDisk")
    return Reading(
        facts={
            (vm, "vcpu_count"): hardware["numCPU"],
            (vm, "memory_mib"): hardware["memoryMB"],
            (vm, "hardware_version"): int(config["version"].removeprefix("vmx-")),
            (vm, "cpu_shares"): config["cpuAllocation"]["shares"]["shares"],
            (f"{vm}/virtual-disk:scsi0:0", "size_gib"): disk["capacityInBytes"] / 2**30,
            (f"{vm}/virtual-disk:scsi0:0", "mode"): disk["backing"]["diskMode"],
            (f"{vm}/adapter:scsi0", "type"): "pvscsi",
        }
    )


def ovf(path: Path) -> Reading:
    """The items of the virtual hardware by their CIM resource type: 3 CPU, 4 memory, 10 Ethernet, 17 disk."""
    root = ET.parse(path).getroot()
    items = [
        {child.tag.rpartition("}")[2]: child.text or "" for child in item}
        for item in root.iter("{http://schemas.dmtf.org/ovf/envelope/1}Item")
    ]
    by_type = {item["ResourceType"]: item for item in items}
    capacity = next(each for each in root.iter() if each.tag.endswith("}Disk"))
    mib = int(capacity.attrib["{http://schemas.dmtf.org/ovf/envelope/1}capacity"])
    vm = "vm:MigrationAssessment"
    return Reading(
        facts={
            (vm, "vcpu_count"): int(by_type["3"]["VirtualQuantity"]),
            (vm, "memory_mib"): float(by_type["4"]["VirtualQuantity"]),
            (f"{vm}/nic:{by_type['10']['ElementName']}", "type"): by_type["10"]["ResourceSubType"].lower(),
            (f"{vm}/virtual-disk:scsi0:0", "size_gib"): mib / 1024,
            (f"{vm}/virtual-disk:scsi0:0", "label"): by_type["17"]["ElementName"],
        }
    )


def vmware_exporter(path: Path) -> Reading:
    """Counters of VMs that run; summations are milliseconds of 20 s, divided by the vCPUs; the last of two counts."""
    samples: dict[tuple[str, str], float] = {}
    for line in path.read_text().splitlines():
        if line.startswith("vmware_vm_"):
            name, _, rest = line.partition("{")
            labels, _, value = rest.rpartition("}")
            samples[name, labels.partition('vm_name="')[2].partition('"')[0]] = float(value)
    series: Series = {}
    for name, vm in list(samples):
        if name != "vmware_vm_cpu_ready_summation":
            continue
        entity = f"host:SOMEHOSTNAME/vm:{vm}"
        vcpu_ms = samples["vmware_vm_num_cpu", vm] * 20_000
        for metric in ("ready", "costop", "idle"):
            series[f"cpu_{metric}_pct", entity] = [samples[f"vmware_vm_cpu_{metric}_summation", vm] * 100 / vcpu_ms]
        series["memory_consumed_mib", entity] = [samples["vmware_vm_mem_consumed_average", vm] / 1024]
        series["memory_active_pct", entity] = [samples["vmware_vm_mem_usage_average", vm] / 100]
    return Reading(series)
