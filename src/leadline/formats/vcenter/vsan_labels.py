"""Labels of vSAN's performance service, which exporters pass on, as metrics.

A label is ``type.label``: the type of entity the service measured, and what of it.

Source: VMware KB 2144493, vSAN performance graphs (labels and units). vSAN performance dashboards of HCIBench.
"""

from __future__ import annotations

from leadline.core.contracts.importer import Field

_US, _RATE, _BYTES, _COUNT = "us", "per_s", "bytes_per_s", "count"
_CONGESTIONS = ("ssd", "log", "mem", "slab", "comp", "iops")


def _of(types: tuple[str, ...], labels: dict[str, Field]) -> dict[str, Field]:
    return {f"{kind}.{label}": field for kind in types for label, field in labels.items()}


_CLIENT = {
    "latencyAvgRead": Field("vsan_client_latency_us_read", _US),
    "latencyAvgWrite": Field("vsan_client_latency_us_write", _US),
    "latencyStddev": Field("vsan_client_latency_us_stddev", _US),
    "iopsRead": Field("vsan_client_iops", _RATE),
    "iopsWrite": Field("vsan_client_iops", _RATE),
    "throughputRead": Field("vsan_client_bytes_per_s", _BYTES),
    "throughputWrite": Field("vsan_client_bytes_per_s", _BYTES),
    "oio": Field("vsan_client_outstanding_count", _COUNT),
    "congestion": Field("vsan_congestion_count", _COUNT),
    "readCongestion": Field("vsan_congestion_count", _COUNT),
    "writeCongestion": Field("vsan_congestion_count", _COUNT),
    "clientCacheHitRate": Field("vsan_read_cache_hit_pct", "pct"),
}
_BACKEND = {
    "latencyAvgRead": Field("vsan_backend_latency_us_read", _US),
    "latencyAvgWrite": Field("vsan_backend_latency_us_write", _US),
    "iopsResyncRead": Field("vsan_resync_iops", _RATE),
    "iopsRecWrite": Field("vsan_resync_iops", _RATE),
    "latAvgResyncRead": Field("vsan_resync_latency_us", _US),
    "latencyAvgRecWrite": Field("vsan_resync_latency_us", _US),
}
_NET = {
    "rxPacketsLossRate": Field("vsan_net_loss_permille", "permille"),
    "txPacketsLossRate": Field("vsan_net_loss_permille", "permille"),
    "portRxDrops": Field("vsan_net_port_drops_permille", "permille"),
    "portTxDrops": Field("vsan_net_port_drops_permille", "permille"),
    "rxThroughput": Field("vsan_net_bytes_per_s", _BYTES),
    "txThroughput": Field("vsan_net_bytes_per_s", _BYTES),
}
_DISK_RATE = {"iopsDevRead": Field("disk_iops", _RATE), "iopsDevWrite": Field("disk_iops", _RATE)}


def _device(metric: str) -> dict[str, Field]:
    labels = ("latencyDevRead", "latencyDevWrite", "latencyDevDAvg")
    return {label: Field(metric, _US) for label in labels} | _DISK_RATE


_CACHE = _device("vsan_cache_device_latency_us") | {
    "wbFreePct": Field("vsan_write_buffer_free_pct", "pct"),
    "plogTotalTputDrained": Field("vsan_destage_bytes_per_s", _BYTES),
    "rcHitRate": Field("vsan_read_cache_hit_pct", "pct"),
}
_VSCSI = {
    "iopsRead": Field("disk_reads_per_s", _RATE),
    "iopsWrite": Field("disk_writes_per_s", _RATE),
    "throughputRead": Field("disk_read_mib_per_s", _BYTES),
    "throughputWrite": Field("disk_write_mib_per_s", _BYTES),
    "latencyRead": Field("virtual_disk_latency_ms_read", _US),
    "latencyWrite": Field("virtual_disk_latency_ms_write", _US),
}
_WORLDS = ("dom-world-cpu", "lsom-world-cpu", "nic-world-cpu", "cmmds-world-cpu", "rdt-world-cpu", "vsan-cpu")

VSAN_LABELS: dict[str, Field] = {
    **_of(("cluster-domclient", "host-domclient"), _CLIENT),
    **_of(("cluster-domcompmgr", "host-domcompmgr"), _BACKEND),
    **_of(("disk-group",), {f"{k}Congestion": Field("vsan_disk_group_congestion_count", _COUNT) for k in _CONGESTIONS}),
    **_of(("cache-disk",), _CACHE),
    **_of(("capacity-disk",), _device("vsan_capacity_device_latency_us")),
    **_of(("vsan-esa-disk-scsifw", "vsan-esa-disk-layer"), _device("vsan_esa_device_latency_us")),
    **_of(("vsan-host-net", "vsan-vnic-net", "vsan-pnic-net"), _NET),
    "vsan-host-net.tcpTxRexmitRate": Field("vsan_net_retransmit_permille", "permille"),
    "vsan-vnic-net.tcpTxRexmitRate": Field("vsan_net_retransmit_permille", "permille"),
    "vsan-host-net.tcpRxErrRate": Field("vsan_net_retransmit_permille", "permille"),
    "vsan-pnic-net.pauseCount": Field("vsan_net_pause_permille", "permille"),
    **_of(("rdt-network-latency",), {"avgLatency": Field("vsan_net_rdt_latency_us", _US)}),
    **_of(_WORLDS, {"readyPct": Field("vsan_kernel_ready_pct", "pct")}),
    **_of(("host-memory-heap",), {"heapUtil": Field("vsan_memory_heap_pct", "pct")}),
    **_of(("host-memory-slab",), {"slabUtil": Field("vsan_memory_heap_pct", "pct")}),
    "host-cpu.pcpuUsedPct": Field("host_cpu_used_pct", "pct"),
    "host-cpu.pcpuUtilPct": Field("host_cpu_util_pct", "pct"),
    "host-cpu.coreUtilPct": Field("host_cpu_core_util_pct", "pct"),
    "system-mem.pctMemUsed": Field("host_memory_used_pct", "pct"),
    **_of(("vscsi",), _VSCSI),
    "virtual-disk.NIOPS": Field("virtual_disk_normalised_iops", _RATE),
    "virtual-disk.NIOPSDelayed": Field("virtual_disk_delayed_iops", _RATE),
}
SUMS = frozenset(
    {"vsan_client_iops", "vsan_client_bytes_per_s", "vsan_resync_iops", "vsan_net_bytes_per_s", "disk_iops"}
)
