"""Second readers of what sysstat, procps, BSD, nmon and ZFS print: lines are cut at blanks and looked up by heading."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import math
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.importers.independent.reading import NAN, Reading

Series = dict[tuple[str, str], list[float]]
KIB_PER_MIB = 1024
SECTOR_KIB = 0.5


def bsd_iostat(path: Path) -> Reading:
    """`iostat -w 1` of macOS, each line behind a time and a tab."""
    rows = [line.partition("\t")[2].split() for line in path.read_text().splitlines()]
    disks = [name for name in rows[0] if name.startswith("disk")]
    series: Series = {}
    for row in rows:
        if len(row) != 3 * len(disks) + 3 or not row[0][0].isdigit():
            continue
        values = [float(cell) for cell in row]
        for index, disk in enumerate(disks):
            device = f"guest:guest/block-device:{disk}"
            size, tps, mib = values[3 * index : 3 * index + 3]
            series.setdefault(("guest_disk_io_size_kib", device), []).append(size if size else NAN)
            series.setdefault(("disk_iops", device), []).append(tps)
            series.setdefault(("guest_disk_busy_mib_per_s", device), []).append(mib)
        for metric, value in zip(("user", "system", "idle"), values[-3:], strict=True):
            series.setdefault((f"guest_cpu_{metric}_pct", "guest:guest"), []).append(value)
    return Reading(series)


def iostat_extended(path: Path) -> Reading:
    """`iostat -x -m -t` of sysstat 10: await, queue and utilisation of each disk."""
    series: Series = {}
    heading: list[str] = []
    for line in path.read_text().splitlines():
        cells = line.split()
        if cells[:1] == ["Device:"]:
            heading = cells[1:]
        elif not cells:
            heading = []
        elif heading:
            row = dict(zip(heading, map(float, cells[1:]), strict=True))
            device = f"guest:guest/block-device:{cells[0]}"
            reads, writes = row["r/s"], row["w/s"]
            busy = reads + writes > 0 or row["%util"] > 0
            for metric, value in {
                "disk_reads_per_s": reads,
                "disk_writes_per_s": writes,
                "disk_read_mib_per_s": row["rMB/s"],
                "disk_write_mib_per_s": row["wMB/s"],
                "guest_disk_queue_count": row["avgqu-sz"],
                "guest_disk_util_pct": row["%util"],
                "guest_disk_await_ms": row["await"] if busy else NAN,
            }.items():
                series.setdefault((metric, device), []).append(value)
    return Reading(series)


def iostat_blocks(path: Path) -> Reading:
    """`iostat -z -p ALL`: 512-byte blocks a second; a device that a report leaves out was not measured."""
    reports: list[dict[str, list[float]]] = []
    is_device = False
    for line in path.read_text().splitlines():
        cells = line.split()
        if cells[:1] == ["Device:"]:
            reports.append({})
            is_device = True
        elif not cells:
            is_device = False
        elif is_device:
            reports[-1][cells[0]] = [float(cell) for cell in cells[1:]]
    series: Series = {}
    for name in reports[0]:
        device = f"guest:bozo/block-device:{name}"
        rows = [report.get(name, [NAN] * 5) for report in reports]
        series["disk_iops", device] = [row[0] for row in rows]
        series["disk_read_mib_per_s", device] = [row[1] * SECTOR_KIB / KIB_PER_MIB for row in rows]
        series["disk_write_mib_per_s", device] = [row[2] * SECTOR_KIB / KIB_PER_MIB for row in rows]
    return Reading(series)


def mpstat(path: Path) -> Reading:
    """The CPU table of `mpstat -A`, "all" and each processor; averages left out."""
    names = {
        "%usr": "user",
        "%nice": "nice",
        "%sys": "system",
        "%iowait": "iowait",
        "%soft": "softirq",
        "%idle": "idle",
    }
    series: Series = {}
    lines = path.read_text().splitlines()
    host = lines[0].split("(")[1].split(")")[0]
    heading: list[str] = []
    for line in lines[1:]:
        cells = line.split()
        if "CPU" in cells:
            heading = cells[cells.index("CPU") :] if "%usr" in cells or "intr/s" in cells else []
        elif heading and cells and not line.startswith("Average"):
            row = dict(zip(heading, cells[-len(heading) :], strict=True))
            entity = f"guest:{host}" if row["CPU"] == "all" else f"guest:{host}/cpu:{row['CPU']}"
            for name in row.keys() & names.keys():
                series.setdefault((f"guest_cpu_{names[name]}_pct", entity), []).append(float(row[name]))
            if "intr/s" in row:
                series.setdefault(("guest_interrupts_per_s", entity), []).append(float(row["intr/s"]))
        elif not cells:
            heading = []
    return Reading(series)


def vmstat(path: Path) -> Reading:
    """One report of vmstat: counts, KiB, KiB/s, percent."""
    heading, values = (line.split() for line in path.read_text().splitlines()[1:3])
    row = dict(zip(heading, map(float, values), strict=True))
    metrics = {
        "guest_run_queue_count": row["r"],
        "guest_blocked_count": row["b"],
        "guest_memory_free_mib": row["free"] / KIB_PER_MIB,
        "guest_memory_cached_mib": row["cache"] / KIB_PER_MIB,
        "guest_block_in_kib_per_s": row["bi"],
        "guest_block_out_kib_per_s": row["bo"],
        "guest_context_switches_per_s": row["cs"],
        "guest_cpu_idle_pct": row["id"],
    }
    return Reading({(metric, "guest:guest"): [value] for metric, value in metrics.items()})


def vmstat_disks(path: Path) -> Reading:
    """`vmstat -d`: the mean time and size of all requests since boot; a disk without requests has neither."""
    series: Series = {}
    for line in path.read_text().splitlines()[2:]:
        if not (cells := line.split()):
            continue
        reads, _, read_sectors, read_ms, writes, _, written_sectors, write_ms = map(float, cells[1:9])
        device = f"guest:guest/block-device:{cells[0]}"
        if reads:
            series["guest_disk_await_ms_read", device] = [read_ms / reads]
            series["guest_disk_io_size_kib_read", device] = [read_sectors * SECTOR_KIB / reads]
        if writes:
            series["guest_disk_await_ms_write", device] = [write_ms / writes]
            series["guest_disk_io_size_kib_write", device] = [written_sectors * SECTOR_KIB / writes]
        if reads + writes:
            series["guest_disk_await_ms", device] = [(read_ms + write_ms) / (reads + writes)]
    return Reading(series)


def meminfo(path: Path) -> Reading:
    """/proc/meminfo as (time, name, KiB) rows."""
    columns: dict[str, list[float]] = {}
    for _, name, kib in csv.reader(path.read_text().splitlines(), delimiter="\t"):
        columns.setdefault(name, []).append(float(kib))
    names = {"free": "MemFree", "available": "MemAvailable", "cached": "Cached", "dirty": "Dirty", "active": "Active"}
    series = {
        (f"guest_memory_{metric}_mib", "guest:guest"): [kib / KIB_PER_MIB for kib in columns[name]]
        for metric, name in names.items()
    }
    used = [(total - free) / KIB_PER_MIB for total, free in zip(columns["SwapTotal"], columns["SwapFree"], strict=True)]
    series["guest_swap_used_mib", "guest:guest"] = used
    return Reading(series)


def nmon(path: Path) -> Reading:
    """CPU_ALL, MEM and the busy percentage of each disk; all snapshots."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = list(csv.reader(text.decode("latin-1").splitlines()))
    host = next(row[2] for row in rows if row[:2] == ["AAA", "host"])
    series: Series = {}
    headings: dict[str, list[str]] = {}
    for row in rows:
        if len(row) < 3 or row[0] not in {"CPU_ALL", "MEM", "DISKBUSY", "DISKREAD", "PROC"}:
            continue
        if not row[1].startswith("T0"):
            headings[row[0]] = row[2:]
            continue
        values = dict(zip(headings[row[0]], row[2:], strict=False))
        for metric, entity, value in _nmon_metrics(row[0], values):
            series.setdefault((metric, f"guest:{host}{entity}"), []).append(value)
    return Reading(series)


def _nmon_metrics(section: str, values: dict[str, str]) -> list[tuple[str, str, float]]:
    """(metric, entity below the guest, value) of one row."""
    if section == "CPU_ALL":
        names = {"User%": "user", "Sys%": "system", "Wait%": "iowait", "Idle%": "idle"}
        return [(f"guest_cpu_{names[name]}_pct", "", float(values[name])) for name in names]
    if section == "MEM":
        return [("raw.nmon.MEM.Real free(MB)", "", float(values["Real free(MB)"]))]
    if section == "PROC":
        return [("guest_run_queue_count", "", float(values["Runnable"]))]
    metric, divisor = {"DISKBUSY": ("guest_disk_util_pct", 1), "DISKREAD": ("disk_read_mib_per_s", 1024)}[section]
    return [(metric, f"/block-device:{disk}", float(value) / divisor) for disk, value in values.items() if value]


def sar_binary(path: Path) -> Reading:
    """A binary file of sysstat 11, as sadf itself prints it."""
    with tempfile.TemporaryDirectory() as folder:
        binary, converted = Path(folder) / "sa", Path(folder) / "sa12"
        binary.write_bytes(lzma.decompress(path.read_bytes()))
        with converted.open("wb") as stream:
            subprocess.run(["sadf", "-c", str(binary)], check=True, stdout=stream, stderr=subprocess.DEVNULL)
        environment = {**os.environ, "LC_ALL": "C", "S_TIME_FORMAT": "ISO"}
        command = ["sadf", "-j", str(converted), "--", "-u", "ALL", "-d", "-r", "-w", "-q"]
        printed = subprocess.run(command, check=True, capture_output=True, env=environment).stdout
    host = json.loads(printed)["sysstat"]["hosts"][0]
    series: Series = {}

    def add(metric: str, entity: str, value: float) -> None:
        series.setdefault((metric, entity), []).append(value)

    guest = f"guest:{host['nodename']}"
    for report in (each for each in host["statistics"] if "cpu-load" in each):
        cpu = next(row for row in report["cpu-load"] if row["cpu"] == "all")
        for name, printed_name in {"user": "usr", "system": "sys", "iowait": "iowait", "idle": "idle"}.items():
            add(f"guest_cpu_{name}_pct", guest, cpu[printed_name])
        add("guest_context_switches_per_s", guest, report["process-and-context-switch"]["cswch"])
        add("guest_memory_free_mib", guest, report["memory"]["memfree"] / KIB_PER_MIB)
        for disk in report["disk"]:
            add("disk_iops", f"{guest}/block-device:{disk['disk-device']}", disk["tps"])
            add("guest_disk_util_pct", f"{guest}/block-device:{disk['disk-device']}", disk["util-percent"])
            await_ms = disk["await"] if disk["tps"] else NAN
            add("guest_disk_await_ms", f"{guest}/block-device:{disk['disk-device']}", await_ms)
    return Reading({key: values for key, values in series.items() if not all(map(math.isnan, values))})


def sadf_d(path: Path) -> Reading:
    """`sadf -d`: the tables of processors, disks, memory and context switches, by their headings."""
    series: Series = {}
    heading: list[str] = []
    cpu = {"%usr": "user", "%nice": "nice", "%sys": "system", "%iowait": "iowait", "%idle": "idle"}
    plain: dict[str, tuple[str, Callable[[float], float]]] = {
        "cswch/s": ("guest_context_switches_per_s", float),
        "kbmemfree": ("guest_memory_free_mib", lambda kib: kib / KIB_PER_MIB),
        "runq-sz": ("guest_run_queue_count", float),
    }
    for row in csv.reader(path.read_text().splitlines(), delimiter=";"):
        if row[0].startswith("#"):
            heading = row
            continue
        cells = dict(zip(heading, row, strict=False))
        if "RESTART" in row[3]:
            continue
        guest = f"guest:{row[0]}"
        if "%usr" in cells:
            entity = guest if cells["CPU"] == "-1" else f"{guest}/cpu:{cells['CPU']}"
            for name, metric in cpu.items():
                series.setdefault((f"guest_cpu_{metric}_pct", entity), []).append(float(cells[name]))
        for name, (metric, converted) in plain.items():
            if name in cells:
                series.setdefault((metric, guest), []).append(converted(float(cells[name])))
    whole = max(len(values) for values in series.values())
    return Reading({key: values for key, values in series.items() if len(values) == whole})


def zpool_iostat(path: Path) -> Reading:
    """`zpool iostat`: operations and bytes a second since boot, with suffixes of 1024."""
    scale = {"K": 2.0**-10, "M": 1.0, "G": 2.0**10}
    series: Series = {}
    for line in path.read_text().splitlines()[3:-1]:
        name, _, _, reads, writes, read_bytes, written_bytes = line.split()
        device = f"guest:guest/block-device:{name}"
        series["disk_reads_per_s", device] = [float(reads)]
        series["disk_writes_per_s", device] = [float(writes)]
        series["disk_read_mib_per_s", device] = [float(read_bytes[:-1]) * scale[read_bytes[-1]]]
        series["disk_write_mib_per_s", device] = [float(written_bytes[:-1]) * scale[written_bytes[-1]]]
    return Reading(series)
