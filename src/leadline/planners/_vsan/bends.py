"""Rules that the answer or the inputs bend, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from leadline.core.contracts.planner import Bend
from leadline.planners._vsan.buffer import buffer_gb
from leadline.planners._vsan.endurance import tbw
from leadline.planners._vsan.hardware import hardware_bends
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


def bends(inputs: Vsan, rates: VsanRates, cluster: VsanCluster, absorbed: dict[str, float]) -> Iterator[Bend]:
    """Yield every rule that the inputs or the cluster break, with its cost."""
    yield from _cluster(inputs, cluster)
    yield from _policies(inputs, cluster)
    yield from _cache(inputs, rates, cluster, absorbed)
    yield from _links(inputs, rates, cluster)
    yield from hardware_bends(inputs, cluster)


def _cluster(inputs: Vsan, cluster: VsanCluster) -> Iterator[Bend]:
    least = hosts_least(inputs, cluster.hosts)
    if cluster.hosts <= least:
        cost = f"policies need all {least}: after a loss there is no host to rebuild on"
        yield Bend("one host more than policies need", cost, GUIDE)
    if not inputs.is_esa and cluster.groups < 2:
        cost = (
            f"a lost cache device takes all {cluster.devices} capacity devices of the host away, two groups take half"
        )
        yield Bend("two or more disk groups per host", cost, VMGU)
    if inputs.tier == "oltp-tier-1" and not inputs.is_all_flash:
        yield Bend("tier 1 is on all-flash", "one read in ten comes from a disk, 1 MiB at a time", VMGU)
    if inputs.tier == "oltp-tier-1" and not inputs.is_esa and efficiency(inputs) != "none":
        yield Bend("no deduplication or compression with tier 1", "both work while writes are destaged", VMGU)
    each = components(inputs, cluster.hosts) / cluster.hosts
    most = COMPONENTS_MAX[inputs.architecture]
    if each > SLOT_COMPONENTS * most:
        yield Bend(f"components are below 80 % of {most:,} per host", f"{each:,.0f}", "Configuration Maximums")


def _policies(inputs: Vsan, cluster: VsanCluster) -> Iterator[Bend]:
    data, log = layouts(inputs, cluster.hosts)
    if inputs.ftt == 0:
        cost = (
            "a lost device loses the data"
            if not inputs.is_stretched
            else "a site with a lost device reads from the other"
        )
        yield Bend("at least one failure is tolerated", cost, VMGU)
    if not inputs.is_esa:
        for part, layout in (("data", data), ("log", log)):
            if not layout.is_mirror and (part == "log" or inputs.tier == "oltp-tier-1"):
                cost = f"{layout.raid}: a small write becomes {2 * (1 + layout.parity)} operations, a mirrored one 2"
                yield Bend("logs and tier 1 data are on RAID-1", f"{part} on {cost}", VMGU)
        if reservation_pct(inputs) < 100 and inputs.tier != "data-warehouse":
            cost = f"{reservation_pct(inputs):g} % reserved: a full datastore stops the database"
            yield Bend("disks of databases are thick", cost, VMGU)
    if inputs.stripes > 1:
        cost = f"{inputs.stripes} stripes: more components; more disks and controllers spread load as well"
        yield Bend("one stripe per object", cost, VMGU)
    if inputs.iops_limit is not None and inputs.tier == "oltp-tier-1":
        cost = f"above {inputs.iops_limit:,} operations of 32 KiB requests wait, and machines that talk to it with them"
        yield Bend("tier 1 has no IOPS limit", cost, VMGU)


def _cache(inputs: Vsan, rates: VsanRates, cluster: VsanCluster, absorbed: dict[str, float]) -> Iterator[Bend]:
    if inputs.is_esa:
        return
    has, needs = cluster.all_groups * inputs.cache_gb, cache_needed_gb(inputs)
    if has < needs:
        cost = f"{has:,.0f} of {needs:,.0f} GB: more is read from capacity devices"
        yield Bend("cache is 10 % of what is used before copies", cost, "Hogan 2015")
    if inputs.is_all_flash and buffer_gb(inputs) < inputs.cache_gb:
        cost = f"{inputs.cache_gb - buffer_gb(inputs):,.0f} GB of each device only lengthen its life"
        yield Bend("write buffers use a cache device whole", cost, "Epping 2016")
    slowed = {name: seconds for name, seconds in absorbed.items() if seconds < inputs.burst_s}
    for name, seconds in slowed.items():
        cost = f"{seconds:,.0f} of {inputs.burst_s:,.0f} s: larger caches first, then more groups and capacity devices"
        yield Bend(f"{name} to its end", cost, VMGU)
    mean = rates.write_mb_per_s if isnan(rates.write_mean_mb_per_s) else rates.write_mean_mb_per_s
    if inputs.cache_tbw is not None and not isnan(mean):
        written = tbw(mean * write_factor(inputs, cluster.hosts) / cluster.all_groups)
        if written > inputs.cache_tbw:
            lasts = 5 * inputs.cache_tbw / written
            cost = f"{written:,.0f} TB in five years, made for {inputs.cache_tbw:,.0f}: {lasts:.1f} years"
            yield Bend("cache devices endure what is written", cost, "VMware Compatibility Guide")


def _links(inputs: Vsan, rates: VsanRates, cluster: VsanCluster) -> Iterator[Bend]:
    carried = host_gbit(inputs, rates, cluster)
    wanted = link_gbit(inputs, 0.0 if isnan(carried) else carried)
    if inputs.nic_gbit is not None and inputs.nic_gbit < wanted:
        at_peak = "" if isnan(carried) else f"; {carried:.3g} Gbit/s at peak"
        yield Bend(f"vSAN has links of {wanted:g} Gbit/s", f"{inputs.nic_gbit:g} Gbit/s{at_peak}", GUIDE)
    has, needs = port_has_mb(inputs), port_buffer_mb(inputs, cluster.hosts, inputs.nic_gbit or wanted)
    lost = "bursts of many hosts to one are dropped and sent again"
    if has is not None and has < needs:
        part = ", half of the switch's" if inputs.switch_buffers == "shared" else ""
        yield Bend(f"switch ports buffer {needs:.3g} MB", f"{has:.3g} MB{part}: {lost}", BUFFERS)
    elif has is None and inputs.switch_buffers == "shared":
        yield Bend("switches have deep buffers of each port", lost, VMGU)
    if not inputs.is_stretched:
        return
    if inputs.site_rtt_ms > SITE_RTT_MAX_MS:
        cost = f"{inputs.site_rtt_ms:g} ms: every write waits for it"
        yield Bend(f"sites are within {SITE_RTT_MAX_MS:g} ms", cost, STRETCHED)
    needs = max(SITE_LEAST_GBIT, 0.0 if isnan(rates.write_mb_per_s) else site_mbit(rates.write_mb_per_s) / 1000.0)
    if inputs.site_gbit < needs:
        yield Bend(f"the link between sites has {needs:.3g} Gbit/s", f"{inputs.site_gbit:g}", STRETCHED)
    if inputs.witness_rtt_ms > witness_rtt_max_ms(cluster.hosts):
        cost = f"{inputs.witness_rtt_ms:g} ms"
        yield Bend(f"the witness is within {witness_rtt_max_ms(cluster.hosts):g} ms", cost, STRETCHED)
