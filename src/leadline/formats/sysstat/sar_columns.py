"""What sar's columns mean: shared by recordings of sar and reports that hold its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from leadline.core.contracts.importer import Field, Request
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.sysstat.text import SysstatTables, TableLayout, add_cpu_busy, clock_of, column_layout, times_of
from leadline.formats.tables import Columns, TableScheme, emit

# What a request took, or was: without one sar prints 0.00.
_OF_REQUESTS = frozenset({"guest_disk_await_ms", "guest_disk_service_ms", "guest_disk_io_size_kib"})
# Canonical metric, unit with an optional multiplier, then the names in text and CSV, in JSON, in XML.
_TABLE = """
guest_cpu_user_pct              pct            CPU:%usr CPU:%user cpu-load.usr cpu-load.user cpu.usr cpu.user %usr
guest_cpu_nice_pct              pct            CPU:%nice cpu-load.nice cpu.nice
guest_cpu_system_pct            pct            CPU:%sys CPU:%system cpu-load.sys cpu-load.system cpu.sys cpu.system %sys
guest_cpu_iowait_pct            pct            CPU:%iowait cpu-load.iowait cpu.iowait %wio
guest_cpu_steal_pct             pct            CPU:%steal cpu-load.steal cpu.steal
guest_cpu_irq_pct               pct            CPU:%irq cpu-load.irq cpu.irq
guest_cpu_softirq_pct           pct            CPU:%soft cpu-load.soft cpu.soft
guest_cpu_guest_pct             pct            CPU:%guest cpu-load.guest cpu.guest
guest_cpu_idle_pct              pct            CPU:%idle cpu-load.idle cpu.idle %idle
guest_forks_per_s               per_s          proc/s fork/s process-and-context-switch.proc processes.proc
guest_context_switches_per_s    per_s          cswch/s pswch/s process-and-context-switch.cswch context-switch.cswch
guest_interrupts_per_s          per_s          INTR:all INTR:intr/s interrupts.all irq.value
guest_swap_in_kib_per_s         4*kib_per_s    pswpin/s swap-pages.pswpin
guest_swap_out_kib_per_s        4*kib_per_s    pswpout/s swap-pages.pswpout
guest_page_in_kib_per_s         kib_per_s      pgpgin/s paging.pgpgin
guest_page_out_kib_per_s        kib_per_s      pgpgout/s paging.pgpgout
guest_page_faults_per_s         per_s          fault/s paging.fault
guest_major_faults_per_s        per_s          majflt/s paging.majflt
guest_block_in_kib_per_s        0.5*kib_per_s  bread/s io-reads.bread
guest_block_out_kib_per_s       0.5*kib_per_s  bwrtn/s io-writes.bwrtn
guest_memory_free_mib           kib            kbmemfree memory.memfree
guest_memory_available_mib      kib            kbavail memory.avail
guest_memory_used_pct           pct            %memused memory.memused-percent
guest_memory_buffers_mib        kib            kbbuffers memory.buffers
guest_memory_cached_mib         kib            kbcached memory.cached
guest_memory_committed_pct      pct            %commit memory.commit-percent
guest_memory_active_mib         kib            kbactive memory.active
guest_memory_inactive_mib       kib            kbinact memory.inactive
guest_memory_dirty_mib          kib            kbdirty memory.dirty
guest_swap_used_mib             kib            kbswpused memory.swpused
guest_swap_used_pct             pct            %swpused memory.swpused-percent
guest_run_queue_count           count          runq-sz queue.runq-sz
guest_task_count                count          plist-sz queue.plist-sz
guest_load_1m                   count          ldavg-1 queue.ldavg-1
guest_load_5m                   count          ldavg-5 queue.ldavg-5
guest_load_15m                  count          ldavg-15 queue.ldavg-15
guest_blocked_count             count          blocked queue.blocked
disk_iops                       per_s          DEV:tps device:r+w/s disk.tps disk-device.tps
disk_read_mib_per_s             kib_per_s      DEV:rkB/s disk.rkB disk-device.rkB
disk_read_mib_per_s             0.5*kib_per_s  DEV:rd_sec/s disk.rd_sec disk-device.rd_sec
disk_write_mib_per_s            kib_per_s      DEV:wkB/s disk.wkB disk-device.wkB
disk_write_mib_per_s            0.5*kib_per_s  DEV:wr_sec/s disk.wr_sec disk-device.wr_sec
guest_disk_discard_mib_per_s    kib_per_s      DEV:dkB/s disk.dkB disk-device.dkB
guest_disk_busy_mib_per_s       0.5*kib_per_s  device:blks/s
guest_disk_io_size_kib          kib            DEV:areq-sz disk.areq-sz disk-device.areq-sz
guest_disk_io_size_kib          sectors        DEV:avgrq-sz disk.avgrq-sz disk-device.avgrq-sz
guest_disk_queue_count          count          DEV:aqu-sz DEV:avgqu-sz device:avque disk.aqu-sz disk.avgqu-sz
guest_disk_queue_count          count          disk-device.aqu-sz disk-device.avgqu-sz
guest_disk_await_ms             ms             DEV:await disk.await disk-device.await
guest_disk_service_ms           ms             DEV:svctm disk.svctm disk-device.svctm
guest_disk_util_pct             pct            DEV:%util device:%busy disk.util-percent disk-device.util-percent
net_rx_packets_per_s            per_s          IFACE:rxpck/s net-dev.rxpck
net_tx_packets_per_s            per_s          IFACE:txpck/s net-dev.txpck
net_rx_mbit_per_s               kib_per_s      IFACE:rxkB/s net-dev.rxkB
net_rx_mbit_per_s               bytes_per_s    IFACE:rxbyt/s net-dev.rxbyt
net_tx_mbit_per_s               kib_per_s      IFACE:txkB/s net-dev.txkB
net_tx_mbit_per_s               bytes_per_s    IFACE:txbyt/s net-dev.txbyt
net_util_pct                    pct            IFACE:%ifutil net-dev.ifutil-percent
net_rx_errors_per_s             per_s          IFACE:rxerr/s net-edev.rxerr
net_tx_errors_per_s             per_s          IFACE:txerr/s net-edev.txerr
net_rx_dropped_per_s            per_s          IFACE:rxdrop/s net-edev.rxdrop
net_tx_dropped_per_s            per_s          IFACE:txdrop/s net-edev.txdrop
net_tcp_segments_per_s          per_s          oseg/s net-tcp.oseg
net_tcp_retransmits_per_s       per_s          retrans/s net-etcp.retrans
guest_pressure_cpu_some_pct     pct            %scpu-10 psi-cpu.some_avg10
guest_pressure_io_some_pct      pct            %sio-10 psi-io.some_avg10
guest_pressure_io_full_pct      pct            %fio-10 psi-io.full_avg10
guest_pressure_memory_some_pct  pct            %smem-10 psi-mem.some_avg10
guest_pressure_memory_full_pct  pct            %fmem-10 psi-mem.full_avg10
"""
_KINDS = {
    **dict.fromkeys(("CPU", "cpu-load", "cpu"), EntityKind.CPU),
    **dict.fromkeys(("DEV", "device", "disk", "disk-device"), EntityKind.BLOCK_DEVICE),
    **dict.fromkeys(("IFACE", "net-dev", "net-edev"), EntityKind.NIC),
}


def _parsed() -> tuple[dict[str, Field], dict[str, float]]:
    fields: dict[str, Field] = {}
    scales: dict[str, float] = {}
    for line in _TABLE.strip().splitlines():
        metric, unit, *names = line.split()
        multiplier, star, plain = unit.rpartition("*")
        for name in names:
            fields[name] = Field(metric, plain)
            if star:
                scales[name] = float(multiplier)
    return fields, scales


FIELDS, _SCALES = _parsed()

GROUPS = frozenset("CPU NODE INTR TTY IFACE DEV FCHOST FILESYSTEM MOUNTPOINT BUS BAT FAN TEMP IN DEVICE device".split())
_PAGE_KIB = 4.0
_SUMS_OF_INTERRUPTS = frozenset({"sum", "sum/all"})
_FOUR_KIB_MACHINES = re.compile(r"x86_64|i[3-6]86|amd64|s390x?|armv\d")
_INTERRUPT_GROUPS = frozenset({"INTR", "interrupts", "irq"})


def is_heading(line: str) -> bool:
    """Whether a line is a heading of sar, with or without its clock."""
    clock = clock_of(line)
    words = clock[1].split() if clock else []
    if "PID" in words or "TGID" in words:
        return False
    layout = column_layout(words, GROUPS, FIELDS)
    return layout is not None and (layout.strict or all(word.endswith("/s") for word in words[1:]))


def layout_of(words: list[str]) -> TableLayout | None:
    """The layout below a heading of sar."""
    return column_layout(words, GROUPS, FIELDS)


def emit_tables(
    recording: SysstatTables,
    guest: Entity,
    builder: CaptureBuilder,
    request: Request,
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add every table of a recording: the guest's series, its CPUs', disks' and network interfaces'.

    ``names`` are those of items the recording calls otherwise.
    """

    def entity(group: str, item: str) -> Entity | None:
        kind = _KINDS.get(group)
        if kind is not None and not (kind is EntityKind.CPU and item == "all"):
            return Entity(kind, names.get(item, item), guest)
        whole = not item or kind is EntityKind.CPU or (group in _INTERRUPT_GROUPS and item in _SUMS_OF_INTERRUPTS)
        return guest if whole else None

    machine = recording.banners[0].machine if recording.banners else None
    fields = FIELDS
    if machine is not None and not _FOUR_KIB_MACHINES.match(machine):
        fields = {name: known for name, known in fields.items() if _SCALES.get(name) != _PAGE_KIB}
        builder.warn("page-size", f"the page size of {machine} is not known: swap rates were left out")
    scheme = TableScheme("sar", fields, entity, scales=_SCALES, derive=_derive, guest=guest)
    for table in recording.tables.values():
        emit(table, times_of(recording, table, request, builder), scheme, builder, request)


def _derive(columns: Columns) -> None:
    """Add busy time, and turn the 0.00 that sar prints for the time or size of no request into "not measured"."""
    add_cpu_busy(columns)
    if "disk_iops" not in columns:
        return
    idle = ~(columns["disk_iops"] > 0)
    for metric in _OF_REQUESTS & columns.keys():
        columns[metric] = np.where(idle & (columns[metric] == 0), np.nan, columns[metric])
