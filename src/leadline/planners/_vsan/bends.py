"""Rules that the answer or the inputs bend, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from leadline.core.contracts.planner import Bend
from leadline.planners._vsan.buffer import buffer_gb
from leadline.planners._vsan.endurance import tbw
from leadline.planners._vsan.inputs import Vsan
from leadline.planners._vsan.network import (
    BUFFERS,
    COMPONENTS_MAX,
    SITE_LEAST_GBIT,
    SITE_RTT_MAX_MS,
    components,
    host_gbit,
    link_gbit,
    port_buffer_mb,
    port_has_mb,
    site_mbit,
    witness_rtt_max_ms,
)
from leadline.planners._vsan.protection import efficiency, layouts, reservation_pct, write_factor
from leadline.planners._vsan.rates import VsanRates
from leadline.planners._vsan.sizing import VsanCluster, cache_needed_gb, hosts_least

VMGU, GUIDE = "vmgu.ru articles on vSAN", "vSAN Design and Sizing guide"
STRETCHED = "vSAN stretched cluster bandwidth sizing"
SLOT_COMPONENTS = 0.8


def bends(own: Vsan, rates: VsanRates, cluster: VsanCluster, absorbed: dict[str, float]) -> Iterator[Bend]:
    """Every rule that is bent."""
    yield from _cluster(own, cluster)
    yield from _policies(own, cluster)
    yield from _cache(own, rates, cluster, absorbed)
    yield from _links(own, rates, cluster)


def _cluster(own: Vsan, cluster: VsanCluster) -> Iterator[Bend]:
    least = hosts_least(own, cluster.hosts)
    if cluster.hosts <= least:
        cost = f"policies need all {least}: after a loss there is no host to rebuild on"
        yield Bend("one host more than policies need", cost, GUIDE)
    if not own.is_esa and cluster.groups < 2:
        cost = (
            f"a lost cache device takes all {cluster.devices} capacity devices of the host away, two groups take half"
        )
        yield Bend("two or more disk groups per host", cost, VMGU)
    if own.tier == "oltp-tier-1" and not own.is_all_flash:
        yield Bend("tier 1 is on all-flash", "one read in ten comes from a disk, 1 MiB at a time", VMGU)
    if own.tier == "oltp-tier-1" and not own.is_esa and efficiency(own) != "none":
        yield Bend("no deduplication or compression with tier 1", "both work while writes are destaged", VMGU)
    each = components(own, cluster.hosts) / cluster.hosts
    most = COMPONENTS_MAX[own.architecture]
    if each > SLOT_COMPONENTS * most:
        yield Bend(f"components are below 80 % of {most:,} per host", f"{each:,.0f}", "Configuration Maximums")


def _policies(own: Vsan, cluster: VsanCluster) -> Iterator[Bend]:
    data, log = layouts(own, cluster.hosts)
    if own.ftt == 0:
        cost = (
            "a lost device loses the data" if not own.is_stretched else "a site with a lost device reads from the other"
        )
        yield Bend("at least one failure is tolerated", cost, VMGU)
    if not own.is_esa:
        for part, layout in (("data", data), ("log", log)):
            if not layout.is_mirror and (part == "log" or own.tier == "oltp-tier-1"):
                cost = f"{layout.raid}: a small write becomes {2 * (1 + layout.parity)} operations, a mirrored one 2"
                yield Bend("logs and tier 1 data are on RAID-1", f"{part} on {cost}", VMGU)
        if reservation_pct(own) < 100 and own.tier != "data-warehouse":
            cost = f"{reservation_pct(own):g} % reserved: a full datastore stops the database"
            yield Bend("disks of databases are thick", cost, VMGU)
    if own.stripes > 1:
        cost = f"{own.stripes} stripes: more components; more disks and controllers spread load as well"
        yield Bend("one stripe per object", cost, VMGU)
    if own.iops_limit is not None and own.tier == "oltp-tier-1":
        cost = f"above {own.iops_limit:,} operations of 32 KiB requests wait, and machines that talk to it with them"
        yield Bend("tier 1 has no IOPS limit", cost, VMGU)


def _cache(own: Vsan, rates: VsanRates, cluster: VsanCluster, absorbed: dict[str, float]) -> Iterator[Bend]:
    if own.is_esa:
        return
    has, needs = cluster.all_groups * own.cache_gb, cache_needed_gb(own)
    if has < needs:
        cost = f"{has:,.0f} of {needs:,.0f} GB: more is read from capacity devices"
        yield Bend("cache is 10 % of what is used before copies", cost, "Hogan 2015")
    if own.is_all_flash and buffer_gb(own) < own.cache_gb:
        cost = f"{own.cache_gb - buffer_gb(own):,.0f} GB of each device only lengthen its life"
        yield Bend("write buffers use a cache device whole", cost, "Epping 2016")
    slowed = {name: seconds for name, seconds in absorbed.items() if seconds < own.burst_s}
    for name, seconds in slowed.items():
        cost = f"{seconds:,.0f} of {own.burst_s:,.0f} s: larger caches first, then more groups and capacity devices"
        yield Bend(f"{name} to its end", cost, VMGU)
    mean = rates.write_mb_per_s if isnan(rates.write_mean_mb_per_s) else rates.write_mean_mb_per_s
    if own.cache_tbw is not None and not isnan(mean):
        written = tbw(mean * write_factor(own, cluster.hosts) / cluster.all_groups)
        if written > own.cache_tbw:
            lasts = 5 * own.cache_tbw / written
            cost = f"{written:,.0f} TB in five years, made for {own.cache_tbw:,.0f}: {lasts:.1f} years"
            yield Bend("cache devices endure what is written", cost, "VMware Compatibility Guide")


def _links(own: Vsan, rates: VsanRates, cluster: VsanCluster) -> Iterator[Bend]:
    carried = host_gbit(own, rates, cluster)
    wanted = link_gbit(own, 0.0 if isnan(carried) else carried)
    if own.nic_gbit is not None and own.nic_gbit < wanted:
        told = "" if isnan(carried) else f"; {carried:.3g} Gbit/s at peak"
        yield Bend(f"vSAN has links of {wanted:g} Gbit/s", f"{own.nic_gbit:g} Gbit/s{told}", GUIDE)
    has, needs = port_has_mb(own), port_buffer_mb(own, cluster.hosts, own.nic_gbit or wanted)
    lost = "bursts of many hosts to one are dropped and sent again"
    if has is not None and has < needs:
        part = ", half of the switch's" if own.switch_buffers == "shared" else ""
        yield Bend(f"switch ports buffer {needs:.3g} MB", f"{has:.3g} MB{part}: {lost}", BUFFERS)
    elif has is None and own.switch_buffers == "shared":
        yield Bend("switches have deep buffers of each port", lost, VMGU)
    if not own.is_stretched:
        return
    if own.site_rtt_ms > SITE_RTT_MAX_MS:
        cost = f"{own.site_rtt_ms:g} ms: every write waits for it"
        yield Bend(f"sites are within {SITE_RTT_MAX_MS:g} ms", cost, STRETCHED)
    needs = max(SITE_LEAST_GBIT, 0.0 if isnan(rates.write_mb_per_s) else site_mbit(rates.write_mb_per_s) / 1000.0)
    if own.site_gbit < needs:
        yield Bend(f"the link between sites has {needs:.3g} Gbit/s", f"{own.site_gbit:g}", STRETCHED)
    if own.witness_rtt_ms > witness_rtt_max_ms(cluster.hosts):
        cost = f"{own.witness_rtt_ms:g} ms"
        yield Bend(f"the witness is within {witness_rtt_max_ms(cluster.hosts):g} ms", cost, STRETCHED)
