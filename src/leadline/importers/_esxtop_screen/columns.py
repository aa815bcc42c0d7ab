"""What the columns of esxtop's screen, and the lines above its tables, become."""

from __future__ import annotations

import re

from leadline.core.contracts.importer import Field
from leadline.core.model.metrics import metric as metric_of

CPU = {
    "%USED": "cpu_used_pct",
    "%RUN": "cpu_run_pct",
    "%SYS": "cpu_system_pct",
    "%WAIT": "cpu_wait_pct",
    "%VMWAIT": "cpu_vmwait_pct",
    "%RDY": "cpu_ready_pct",
    "%IDLE": "cpu_idle_pct",
    "%OVRLP": "cpu_overlap_pct",
    "%CSTP": "cpu_costop_pct",
    "%MLMTD": "cpu_max_limited_pct",
    "%SWPWT": "cpu_swap_wait_pct",
    "%LAT_C": "cpu_latency_pct",
    "%DMD": "cpu_demand_pct",
}
MEMORY = {
    "MEMSZ": "memory_size_mib",
    "GRANT": "memory_granted_mib",
    "CNSM": "memory_consumed_mib",
    "TCHD": "memory_touched_mib",
    "MCTL?": "memory_balloon_driver_flag",
    "MCTLSZ": "memory_balloon_mib",
    "MCTLTGT": "memory_balloon_target_mib",
    "MCTLMAX": "memory_balloon_mib_max",
    "SWCUR": "memory_swapped_mib",
    "SWTGT": "memory_swap_target_mib",
    "SWR/s": "memory_swap_read_mib_per_s",
    "SWW/s": "memory_swap_write_mib_per_s",
    "ZIP/s": "memory_zip_mib_per_s",
    "UNZIP/s": "memory_unzip_mib_per_s",
    "OVHD": "memory_overhead_mib",
    "%ACTV": "memory_active_pct",
    "%LAT_M": "memory_latency_pct",
    "N%L": "numa_local_pct",
}
_RATES = {
    "CMDS/s": "disk_iops",
    "READS/s": "disk_reads_per_s",
    "WRITES/s": "disk_writes_per_s",
    "MBREAD/s": "disk_read_mib_per_s",
    "MBWRTN/s": "disk_write_mib_per_s",
}
DISK = {
    **_RATES,
    "DQLEN": "disk_queue_depth_count",
    "AQLEN": "disk_adapter_queue_depth_count",
    "ACTV": "disk_active_count",
    "QUED": "disk_queued_count",
    "%USD": "disk_queue_used_pct",
    "LOAD": "disk_queue_load_ratio",
    "FCMDS/s": "disk_failed_per_s",
    "ABRTS/s": "disk_aborts_per_s",
    "RESETS/s": "disk_resets_per_s",
    "CONS/s": "disk_conflicts_per_s",
    **{
        f"{letter}AVG/{per}": f"disk_{name}_latency_ms{suffix}"
        for letter, name in (("D", "device"), ("K", "kernel"), ("G", "guest"), ("Q", "queue"))
        for per, suffix in (("cmd", ""), ("rd", "_read"), ("wr", "_write"))
    },
}
VIRTUAL_DISK = {**_RATES, "LAT/rd": "virtual_disk_latency_ms_read", "LAT/wr": "virtual_disk_latency_ms_write"}
HOST = {
    "CPU load average, 1": "host_cpu_load_1m",
    "CPU load average, 2": "host_cpu_load_5m",
    "CPU load average, 3": "host_cpu_load_15m",
    "MEM overcommit avg, 1": "host_memory_overcommit_1m",
    "PCPU USED": "host_cpu_used_pct",
    "PCPU UTIL": "host_cpu_util_pct",
    "PMEM, size": "host_memory_machine_mib",
    "PMEM, free": "host_memory_free_mib",
    "VMKMEM, state": "host_memory_state_count",
    "SWAP, curr": "host_memory_swapped_mib",
    "SWAP, r/s": "host_memory_swap_read_mib_per_s",
    "SWAP, w/s": "host_memory_swap_write_mib_per_s",
    "MEMCTL, curr": "host_memory_balloon_mib",
}
STATES = ("high", "clear", "soft", "hard", "low")  # of the host's memory, from 0
_HOST_MEMORY = re.compile(r"\s{0,4}(PMEM|VMKMEM|SWAP|MEMCTL) {0,4}/MB: {0,20}(.{1,200})")
_AMOUNT = re.compile(r"(\d{1,16}(?:\.\d{1,6})?) {1,16}([a-z/]{1,12})")
_LEADING = re.compile(r"\d{1,16}")


def fields() -> dict[str, Field]:
    """What every column becomes; the screen prints the units of the metrics."""
    named = {**CPU, **MEMORY, **VIRTUAL_DISK, **DISK, **HOST, "%RDY, sum": "cpu_ready_pct_sum"}
    named["GAVG/cmd of {NFS}"] = "datastore_guest_latency_ms"
    return {name: Field(metric, metric_of(metric).unit) for name, metric in named.items()}


def host_memory(line: str) -> dict[str, float]:
    """Metrics of the host in a line above the table of memory; empty where it is none.

    >>> host_memory("PMEM  /MB: 65501   total:  1422     vmk,  35812 other,  28266 free")
    {'host_memory_machine_mib': 65501.0, 'host_memory_free_mib': 28266.0}
    """
    match = _HOST_MEMORY.match(line[:400])
    if match is None:
        return {}
    name, text = match.groups()
    values: dict[str, float] = {}
    if name == "PMEM" and (size := _LEADING.match(text)) is not None:
        values[HOST["PMEM, size"]] = float(size[0])
    for amount, word in _AMOUNT.findall(text):
        metric = HOST.get(f"{name}, {word}")
        if metric is not None:
            values.setdefault(metric, float(amount))
    if name == "VMKMEM":
        number = next((i for i, state in enumerate(STATES) if f"{state} state" in text), None)
        if number is not None:
            values[HOST["VMKMEM, state"]] = float(number)
    return values
