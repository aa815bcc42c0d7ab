"""Links of hosts and between sites."""

from __future__ import annotations

from math import ceil, isnan

from leadline.core.contracts.planner import Figure
from leadline.planners._vsan.inputs import Vsan
from leadline.planners._vsan.protection import layouts, write_factor
from leadline.planners._vsan.rates import VsanRates
from leadline.planners._vsan.sizing import VsanCluster

LINKS_GBIT = (10.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0)
LINK_LEAST = {"osa": 10.0, "esa": 25.0}
BUSY_MAX = 0.7  # Judgement: the rest is for rebuilds and bursts within a second
DATA_FACTOR, RESYNC_FACTOR = 1.4, 1.25  # Source: vSAN stretched cluster bandwidth sizing
SITE_LEAST_GBIT, SITE_RTT_MAX_MS = 10.0, 5.0
WITNESS_MBIT = 2.0  # for each 1000 components
COMPONENTS_MAX = {"osa": 9_000, "esa": 27_000}  # Source: VMware Configuration Maximums
MBIT = 8.0
PORT_S = 0.001  # Source: BUFFERS, round trip through a switch under load; a buffer below link x that is shallow
SHARED_SHARE = 0.5  # Source: Choudhury, Hahne 1998: a queue may be as long as what is free, so one alone has half
GUIDE, STRETCHED = "vSAN Design and Sizing guide", "vSAN stretched cluster bandwidth sizing"
BUFFERS = "NetApp knowledge base, shallow buffered switches"


def host_gbit(inputs: Vsan, rates: VsanRates, cluster: VsanCluster) -> float:
    """What a host's link carries each way at the peak, spare hosts down, as if all of it were remote.

    Writes with protection, reads, and what codes read before a small write.
    """
    hosts = max(1, cluster.hosts - inputs.sites * inputs.spare_hosts)
    reads = rates.read_mb_per_s if rates.read_mb_per_s > 0 else 0.0
    moved = rates.write_mb_per_s * (write_factor(inputs, cluster.hosts) + code_reads(inputs, cluster.hosts)) + reads
    return moved * MBIT / 1000.0 / hosts


def code_reads(inputs: Vsan, hosts: int) -> float:
    """Bytes read of a small byte written: old data and parity, with codes of the original architecture."""
    if inputs.is_esa:
        return 0.0
    share = inputs.log_write_pct / 100.0
    parts = zip(layouts(inputs, hosts), (1 - share, share), strict=True)
    total = sum(part * layout.small_factor() for layout, part in parts if not layout.is_mirror)
    return inputs.sites * inputs.small_write_pct / 100.0 * total


def link_gbit(inputs: Vsan, carried_gbit: float) -> float:
    """Return the slowest link, Gbit/s, that is at most 70 % busy."""
    wanted = max(carried_gbit / BUSY_MAX, LINK_LEAST[inputs.architecture])
    return next((link for link in LINKS_GBIT if link >= wanted), float(ceil(wanted / 400.0) * 400))


def site_mbit(write_mb_per_s: float) -> float:
    """Between two sites: writes, metadata, and room for a rebuild.

    >>> round(site_mbit(40.0))
    560
    """
    return write_mb_per_s * MBIT * DATA_FACTOR * RESYNC_FACTOR


def witness_rtt_max_ms(hosts: int) -> float:
    """Return the longest supported round trip to the witness, ms."""
    each = hosts / 2
    return 500.0 if each <= 1 else 200.0 if each <= 10 else 100.0


def components(inputs: Vsan, hosts: int) -> int:
    """Components of all disks with their witnesses."""
    data, log = layouts(inputs, hosts)
    each = inputs.data_disks * data.components(inputs.data_gb / inputs.data_disks)
    each += data.components(inputs.temp_gb) + data.components(inputs.system_gb) + log.components(inputs.log_gb)
    return inputs.machines * inputs.sites * each


def port_buffer_mb(inputs: Vsan, hosts: int, nic_gbit: float) -> float:
    """What a port holds when all other hosts send one at once; at least its link times the round trip.

    So many senders deliver their bytes in the time in which one link drains those of one: the others' wait.
    """
    burst = max(hosts - 2, 0) * inputs.incast_kib * 1024.0 / 1e6
    return max(burst, nic_gbit * 1000.0 / MBIT * PORT_S)


def port_has_mb(inputs: Vsan) -> float | None:
    """Return the buffer of a switch port, MB, alone or as its share; None where it is not given."""
    if inputs.switch_buffer_mb is None:
        return None
    return inputs.switch_buffer_mb * (SHARED_SHARE if inputs.switch_buffers == "shared" else 1.0)


def network_figures(inputs: Vsan, rates: VsanRates, cluster: VsanCluster) -> list[Figure]:
    """Links of hosts and sites, and what a port of a switch buffers."""
    if isnan(rates.write_mb_per_s):
        return []
    carried = host_gbit(inputs, rates, cluster)
    left = max(1, cluster.hosts - inputs.sites * inputs.spare_hosts)
    figures = [
        Figure(
            "carried by a host's link",
            round(carried, 2),
            "Gbit/s",
            f"writes with protection and reads / {left} hosts, all remote",
        ),
        Figure(
            "link of a host",
            link_gbit(inputs, carried),
            "Gbit/s",
            f"busy to 70 % at most, at least {25 if inputs.is_esa else 10}; two of them, on two switches",
            GUIDE,
        ),
    ]
    senders, link = cluster.hosts - 1, inputs.nic_gbit or link_gbit(inputs, carried)
    arithmetic = f"the larger of {link:g} Gbit/s x 1 ms and ({senders} - 1) hosts x {inputs.incast_kib:g} KiB at once"
    figures.append(
        Figure(
            "buffer of a switch port", round(port_buffer_mb(inputs, cluster.hosts, link), 2), "mb", arithmetic, BUFFERS
        )
    )
    if inputs.is_stretched:
        wanted = site_mbit(rates.write_mb_per_s)
        arithmetic = f"{rates.write_mb_per_s:,.4g} MB/s x 8 x 1.4 of metadata x 1.25 for resync; at least 10 Gbit/s"
        figures.append(Figure("link between sites", round(wanted, 1), "mbit_per_s", arithmetic, STRETCHED))
        parts = components(inputs, cluster.hosts)
        arithmetic = f"2 Mbit/s for each 1000 of {parts:,} components"
        figures.append(
            Figure("link to the witness", round(2 * max(1, parts / 1000), 1), "mbit_per_s", arithmetic, STRETCHED)
        )
    return figures
