"""Links of hosts and between sites."""

from __future__ import annotations

from math import ceil

from leadline.planners._vsan.inputs import Vsan
from leadline.planners._vsan.protection import layouts, write_factor
from leadline.planners._vsan.rates import Rates
from leadline.planners._vsan.sizing import Cluster

LINKS_GBIT = (10.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0)
LINK_LEAST = {"osa": 10.0, "esa": 25.0}
BUSY_MAX = 0.7  # Judgement: the rest is for rebuilds and bursts within a second
DATA_FACTOR, RESYNC_FACTOR = 1.4, 1.25  # Source: vSAN stretched cluster bandwidth sizing
SITE_LEAST_GBIT, SITE_RTT_MAX_MS = 10.0, 5.0
WITNESS_MBIT = 2.0  # for each 1000 components
COMPONENTS_MAX = {"osa": 9_000, "esa": 27_000}  # Source: VMware Configuration Maximums
MBIT = 8.0


def host_gbit(own: Vsan, rates: Rates, cluster: Cluster) -> float:
    """What a host's link carries each way at the peak, spare hosts down, as if all of it were remote.

    Writes with protection, reads, and what codes read before a small write.
    """
    hosts = max(1, cluster.hosts - own.sites * own.spare_hosts)
    reads = rates.read_mb_per_s if rates.read_mb_per_s > 0 else 0.0
    moved = rates.write_mb_per_s * (write_factor(own, cluster.hosts) + code_reads(own, cluster.hosts)) + reads
    return moved * MBIT / 1000.0 / hosts


def code_reads(own: Vsan, hosts: int) -> float:
    """Bytes read of a small byte written: old data and parity, with codes of the original architecture."""
    if own.is_esa:
        return 0.0
    share = own.log_write_pct / 100.0
    parts = zip(layouts(own, hosts), (1 - share, share), strict=True)
    total = sum(part * layout.small_factor() for layout, part in parts if not layout.is_mirror)
    return own.sites * own.small_write_pct / 100.0 * total


def link_gbit(own: Vsan, carried_gbit: float) -> float:
    """The least link that is busy to seven tenths at most."""
    wanted = max(carried_gbit / BUSY_MAX, LINK_LEAST[own.architecture])
    return next((link for link in LINKS_GBIT if link >= wanted), float(ceil(wanted / 400.0) * 400))


def site_mbit(write_mb_per_s: float) -> float:
    """Between two sites: writes, metadata, and room for a rebuild.

    >>> round(site_mbit(40.0))
    560
    """
    return write_mb_per_s * MBIT * DATA_FACTOR * RESYNC_FACTOR


def witness_rtt_max_ms(hosts: int) -> float:
    """Round trip to the witness that is supported."""
    each = hosts / 2
    return 500.0 if each <= 1 else 200.0 if each <= 10 else 100.0


def components(own: Vsan, hosts: int) -> int:
    """Components of all disks with their witnesses."""
    data, log = layouts(own, hosts)
    each = own.data_disks * data.components(own.data_gb / own.data_disks)
    each += data.components(own.temp_gb) + data.components(own.system_gb) + log.components(own.log_gb)
    return own.machines * own.sites * each
