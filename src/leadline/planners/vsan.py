"""vSAN for SQL Server, Oracle and PostgreSQL.

Answers:
    Hosts, disk groups, cache and capacity devices, the links between hosts and sites, the endurance of devices, how
    long a peak of writes is absorbed, and the storage policy of each virtual disk.

Method:
    The smallest cluster, hosts first, then devices, that keeps all of: hosts of the widest policy and spare ones;
    disks times the factor of their protection, and slack; the same with spare hosts down, at most 80 % full; cache
    of a tenth of what is used before copies (hybrid, and all-flash before 6.7), in hybrid clusters twice the working
    set; destaging faster than the average of writes; a peak absorbed by write buffers to its end. Tier 1 is mirrored,
    others have erasure codes for data where hosts are to spare; logs are mirrored. A data warehouse's log and
    temporary space are reserved whole, its data is not.
    A port of a switch buffers what all other hosts send one at once, less what leaves meanwhile, and at least its
    link times 1 ms; of a shared buffer one port has half.
    A buffer fills with writes times their copies less what is destaged: B (1 - f) / (writes - drain), corrected for
    the level at which destaging begins and the line on which writes are slowed. The answer's cluster is then
    simulated (system cache-tiers), whole and with spare hosts down.
    With ESA there are no disk groups: devices of a host write each byte to a performance leg, mirrored, and to a
    capacity leg.

Assumptions:
    Load, copies and rebuilds are spread evenly over groups. Links carry as if all copies and reads were remote. All
    disks are counted at full size unless space is not reserved and a reduction is given. Slowing of writes begins at
    80 % of a buffer: no number is published.

Bends:
    Hosts without a spare; one disk group; logs or tier 1 data on erasure codes; no failure tolerated; hybrid
    clusters, deduplication or an IOPS limit with tier 1; stripes; thin disks; small caches; peaks longer than buffers
    last; weak links, shared switch buffers, far sites; SATA flash, speeds above a device's link, several disk groups on
    one storage controller.

Sources:
    vSAN Design and Sizing guide; VMware documentation, "Plan flash devices": 10 % before copies, groups, devices.
    C. Hogan, "VSAN 6.0 part 10: 10% cache recommendation for AF-VSAN" (2015); "Cache sizing", mrvsan.com: examples.
    D. Epping, "600GB write buffer limit for VSAN?" (2016); "Adaptive RAID-5" (2022). Large write buffers of 1.6 TB:
    virtuallysensei.com, "vSAN 8.0 large write buffer". Broadcom KB 394410: space of ESA objects, with its examples.
    vmgu.ru articles on vSphere, vSAN and StarWind performance: tiers, logs, reservation, stripes, limits, switches.
    VMware blog 2017-09-07, slack space; C. Hogan, capacity management of 7.0U1. VMware Compatibility Guide:
    classes of endurance, as vgolovatyuk.ru, "vSAN: choice of SSDs and controllers", has them.
    "vSAN stretched cluster bandwidth sizing" (core.vmware.com), with its example of 560 Mbit/s.
    "Design considerations for vSAN hosts" (6.5): controllers. SATA 3, SAS-3, PCIe 3.0, NVMe: queues and links.
    Switch buffers: NetApp knowledge base, "Why do network speed mismatches create problems with shallow buffered
    switches?"; Choudhury, Hahne, "Dynamic queue length thresholds for shared-memory packet switches" (1998).
"""

from __future__ import annotations

from math import inf, isfinite, isnan
from typing import cast

from leadline.core.contracts.planner import Figure, Plan, PlanContext, PlanInput, PlannerMeta, Sheet
from leadline.core.model.units import several, share_text
from leadline.planners._vsan.bends import bends
from leadline.planners._vsan.buffer import buffer_gb, simulated_s
from leadline.planners._vsan.endurance import CACHE_LEAST, class_of, drive_writes_per_day, tbw
from leadline.planners._vsan.facts import cluster_name, completed
from leadline.planners._vsan.hardware import hardware_figures
from leadline.planners._vsan.inputs import Vsan
from leadline.planners._vsan.network import components, network_figures
from leadline.planners._vsan.policies import disks, snippets
from leadline.planners._vsan.protection import (
    LFS_SHARE,
    efficiency,
    layouts,
    protected_gb,
    saved,
    slack_pct,
    write_factor,
    written_reservation_pct,
)
from leadline.planners._vsan.rates import VsanRates, rates_of
from leadline.planners._vsan.sizing import (
    CACHE_SHARE,
    ONE_HOST_DOWN_MAX,
    VsanCluster,
    backend_rates,
    binding,
    cache_needed_gb,
    capacity_needed_gb,
    group_in,
    hosts_least,
    impossible,
    smallest,
)

GUIDE, FLASH = "vSAN Design and Sizing guide", "vSphere documentation, plan flash devices"
SIMULATED, EPPING = "simulated: cache-tiers", "Epping 2016"
LARGE_BUFFER = "virtuallysensei.com, large write buffer"
ENDURANCE = "VMware Compatibility Guide, endurance classes"

META = PlannerMeta(
    about="vSAN for databases: hosts, disk groups, cache, links, endurance, absorbed peaks, storage policies.",
    example={
        "engine": "sqlserver",
        "tier": "oltp-tier-1",
        "machines": 4,
        "write_mb_per_s": 1200.0,
        "read_mb_per_s": 1600.0,
        "write_iops": 40_000.0,
        "read_iops": 100_000.0,
        "write_mean_mb_per_s": 150.0,
        "device_mb_per_s": 120.0,
    },
    grows=(
        ("data_gb", "raw capacity needed"),
        ("data_gb", "hosts"),
        ("machines", "hosts"),
        ("ftt", "hosts needed by policies"),
        ("write_mb_per_s", "hosts"),
        ("write_mean_mb_per_s", "written to a cache device"),
    ),
    reads="VMs with sizes of their disks, a vSAN cluster, or a recording of reads and writes",
)

MODEL = Vsan


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return the smallest cluster, its policies, and how long it absorbs the peak of writes."""
    inputs, evidence = completed(cast("Vsan", inputs), context.capture)  # read with MODEL
    rates = rates_of(inputs, context.capture, evidence)
    wrong = impossible(inputs)
    if wrong is not None:
        return Plan(headline=f"No: {wrong.constraint}.", evidence=rates.evidence, infeasible=wrong)
    cluster = smallest(inputs, rates)
    if cluster is None:
        lacking = binding(inputs, rates)
        return Plan(headline=f"No cluster does: {lacking.constraint}.", evidence=rates.evidence, infeasible=lacking)
    absorbed = _absorbed(inputs, rates, cluster, context)
    shape = (
        several(cluster.devices, "device")
        if inputs.is_esa
        else f"{several(cluster.groups, 'disk group')} of 1 + {several(cluster.devices, 'device')}"
    )
    return Plan(
        headline=f"{several(cluster.hosts, 'host')} of {shape} hold {inputs.provisioned_gb:,.0f} GB for "
        f"{inputs.engine} {inputs.tier}; {_headline_peak(inputs, absorbed)}.",
        figures=(
            *_host_figures(inputs, cluster),
            *hardware_figures(inputs, cluster),
            *_capacity_figures(inputs, cluster),
            *_cache_figures(inputs, cluster),
            *_peak_figures(inputs, rates, cluster, absorbed),
            *_endurance_figures(inputs, rates, cluster),
            *network_figures(inputs, rates, cluster),
        ),
        sheets=(_disk_sheet(inputs, cluster),),
        assumptions=tuple(_assumptions(inputs, rates)),
        bends=tuple(bends(inputs, rates, cluster, absorbed)),
        snippets=snippets(inputs, cluster.hosts, cluster_name(context.capture)),
        evidence=rates.evidence,
    )


def _absorbed(inputs: Vsan, rates: VsanRates, cluster: VsanCluster, context: PlanContext) -> dict[str, float]:
    """Return simulated seconds until writes are slowed, all hosts up and spare hosts down; empty without a buffer."""
    if inputs.is_esa or isnan(rates.write_mb_per_s):
        return {}
    down = inputs.sites * inputs.spare_hosts if cluster.hosts > inputs.sites * inputs.spare_hosts else 0
    backend = backend_rates(inputs, rates, cluster)
    if backend[0] == 0:
        return {"peak absorbed": inf}
    absorbed = {"peak absorbed": simulated_s(inputs, backend, cluster.devices, cluster.all_groups, context)}
    if down:
        left = cluster.all_groups - down * cluster.groups
        absorbed["peak absorbed, spare hosts down"] = simulated_s(inputs, backend, cluster.devices, left, context)
    return absorbed


def _headline_peak(inputs: Vsan, absorbed: dict[str, float]) -> str:
    if inputs.is_esa:
        return "there is no cache tier to fill"
    if not absorbed:
        return "how long peaks are absorbed is not known without their writes"
    seconds = absorbed["peak absorbed"]
    if seconds == inf:
        return "destaging keeps up with peaks of writes"
    return f"a peak of writes is absorbed for {seconds:,.0f} s"


def _host_figures(inputs: Vsan, cluster: VsanCluster) -> list[Figure]:
    data, log = layouts(inputs, cluster.hosts)
    least = hosts_least(inputs, cluster.hosts)
    widest = max(data, log, key=lambda layout: layout.hosts)
    how = "2 x FTT + 1" if widest.is_mirror else f"{widest.data} + {widest.parity}"
    sites = f", at each of {inputs.sites} sites" if inputs.is_stretched else ""
    arithmetic = f"{widest.raid} with FTT {widest.ftt}: {how} = {widest.hosts}{sites}"
    figures = [
        Figure("hosts", cluster.hosts, "hosts", "the fewest that keep all of what follows", GUIDE),
        Figure("hosts needed by policies", least, "hosts", arithmetic, GUIDE),
    ]
    if not inputs.is_esa:
        figures.append(Figure("disk groups per host", cluster.groups, "count", "1 to 5; 2 or more advised", GUIDE))
    figures.append(
        Figure(
            "capacity devices per host",
            cluster.host_devices,
            "devices",
            "one pool" if inputs.is_esa else f"{cluster.groups} groups x {cluster.devices}, at most 7 each",
            GUIDE,
        )
    )
    parts = components(inputs, cluster.hosts)
    arithmetic = f"{parts:,} / {cluster.hosts}; objects in pieces of 255 GB, with witnesses"
    return [*figures, Figure("components per host", -(-parts // cluster.hosts), "count", arithmetic, GUIDE)]


def _capacity_figures(inputs: Vsan, cluster: VsanCluster) -> list[Figure]:
    data, log = layouts(inputs, cluster.hosts)
    other = inputs.machines * (inputs.data_gb + inputs.temp_gb + inputs.system_gb)
    stored, needed = protected_gb(inputs, cluster.hosts), capacity_needed_gb(inputs, cluster.hosts)
    log_gb = inputs.machines * inputs.log_gb
    arithmetic = (
        f"{other:,.0f} GB x {data.factor:.3g} ({data.raid}) + {log_gb:,.0f} x {log.factor:.3g} ({log.raid} log)"
    )
    arithmetic += " x 2 sites" if inputs.is_stretched else ""
    arithmetic += f" x {1 + LFS_SHARE:g} for the file system" if inputs.is_esa else ""
    if saved(inputs) > 1:
        kept = "; log and temporary space are reserved, not reduced" if written_reservation_pct(inputs) else ""
        arithmetic += f" / {saved(inputs):g} saved{kept}"
    source = "Broadcom KB 394410" if inputs.is_esa else "vSAN documentation, RAID-5/6"
    raw, slack = cluster.raw_gb(inputs), slack_pct(inputs)
    down, count = inputs.sites * inputs.spare_hosts, cluster.hosts * cluster.host_devices
    figures = [
        Figure("stored with protection", round(stored), "GB", arithmetic, source),
        Figure(
            "raw capacity needed",
            round(needed),
            "GB",
            f"{stored:,.0f} / (1 - {slack:g} % slack)",
            "VMware blog 2017-09-07; Hogan, 7.0U1",
        ),
        Figure("raw capacity", round(raw), "GB", f"{count} x {inputs.device_gb:,.0f} GB"),
        Figure("used", round(100 * stored / raw, 1), "pct", f"{stored:,.0f} / {raw:,.0f}"),
    ]
    left = cluster.raw_gb(inputs, down)
    if down and left > 0:
        arithmetic = f"{stored:,.0f} / {left:,.0f}, at most {share_text(ONE_HOST_DOWN_MAX)}"
        figures.append(Figure("used, spare hosts down", round(100 * stored / left, 1), "pct", arithmetic, GUIDE))
    return figures


def _cache_figures(inputs: Vsan, cluster: VsanCluster) -> list[Figure]:
    if inputs.is_esa:
        return []
    has = cluster.all_groups * inputs.cache_gb
    share = "all of" if inputs.is_all_flash else "30 % of"
    is_on = "on" if inputs.is_large_buffer else "off"
    most = f"at most {inputs.buffer_max_gb:,.0f} GB ({inputs.version}, large buffers {is_on})"
    return [
        *_cache_needed(inputs, cluster),
        Figure("cache", round(has), "GB", f"{cluster.all_groups} groups x {inputs.cache_gb:,.0f}"),
        Figure(
            "write buffer per group",
            round(buffer_gb(inputs)),
            "GB",
            f"{share} {inputs.cache_gb:,.0f} GB, {most}",
            LARGE_BUFFER if inputs.buffer_max_gb > 600 else EPPING,
        ),
    ]


def _cache_needed(inputs: Vsan, cluster: VsanCluster) -> list[Figure]:
    """Return the cache needed where it is sized by data; from 6.7 on all-flash caches are sized by writes instead."""
    if not inputs.is_cache_by_size:
        return []
    needs = cache_needed_gb(inputs)
    sites = f"{inputs.sites} sites x " if inputs.is_stretched else ""
    arithmetic = f"{sites}{share_text(CACHE_SHARE)} of {inputs.used_gb:,.0f} GB used before copies"
    if not inputs.is_all_flash:
        arithmetic += f", at least 2 x {inputs.working_gb:,.0f} GB of working set"
    return [
        Figure("cache needed", round(needs), "GB", arithmetic, FLASH),
        Figure("cache needed per group", round(needs / cluster.all_groups, 1), "GB", f"{needs:,.0f} by groups", FLASH),
    ]


def _peak_figures(inputs: Vsan, rates: VsanRates, cluster: VsanCluster, absorbed: dict[str, float]) -> list[Figure]:
    group = group_in(inputs, rates, cluster)
    if group is None:
        return []
    factor = write_factor(inputs, cluster.hosts)
    backend = rates.write_mb_per_s * factor
    arithmetic = f"{rates.write_mb_per_s:,.4g} MB/s x {factor:.3g} written of each byte"
    figures = [Figure("written by devices at peak", round(backend, 1), "mb_per_s", arithmetic, GUIDE)]
    count = cluster.hosts * cluster.host_devices
    drain = count * inputs.device_mb_per_s
    if rates.read_bytes > 0:
        read_kib = rates.read_bytes / 1024
        arithmetic = f"{rates.read_iops:,.0f} reads of {read_kib:,.3g} KiB on {count} devices, at most 50 %"
        arithmetic += "" if inputs.is_all_flash else "; one in ten misses and fetches 1 MiB"
        figures.append(Figure("devices busy with reads", round(100 * group.read_busy, 1), "pct", arithmetic))
    arithmetic = f"{count} devices x {inputs.device_mb_per_s:,.0f} MB/s"
    if inputs.is_esa:
        figures.append(Figure("writes devices take", round(drain), "mb_per_s", arithmetic))
        return [*figures, Figure("devices busy with writes", round(100 * backend / drain, 1), "pct", "at peak")]
    arithmetic += f", {100 * min(group.read_busy, 0.5):.3g} % of their time reading"
    keep = cluster.all_groups * group.drain_mb_per_s
    figures.append(Figure("destaged", round(keep, 1), "mb_per_s", arithmetic))
    fill, absorbed_s = inputs.fill_pct / 100.0, group.absorbed_s(inputs.fill_pct / 100.0)
    gb, rate, out = group.buffer_gb, group.write_mb_per_s, group.drain_mb_per_s
    if rate > out:
        full = gb * 1000 * (1 - fill) / (rate - out)
        per_group = f"{gb:,.0f} GB x (1 - {fill:g}) / ({rate:,.4g} - {out:,.4g} MB/s) of a group"
        arithmetic = f"{per_group}, destaging from the start"
        figures.append(Figure("buffer full after", round(full), "s", arithmetic, EPPING))
    if isfinite(absorbed_s):
        arithmetic = "the same, destaging from 30 % on, to where congestion from 80 % on meets the rate"
        figures.append(Figure("peak absorbed, closed form", round(absorbed_s), "s", arithmetic))
    for name, seconds in absorbed.items():
        shown = round(seconds) if isfinite(seconds) else "to its end"
        arithmetic = f"wanted {inputs.burst_s:,.0f} s; simulated for twice that"
        figures.append(Figure(name, shown, "s" if isfinite(seconds) else "", arithmetic, SIMULATED))
    return figures


def _endurance_figures(inputs: Vsan, rates: VsanRates, cluster: VsanCluster) -> list[Figure]:
    mean = rates.write_mean_mb_per_s
    period = "on average"
    if isnan(mean):
        mean, period = rates.write_mb_per_s, "as if the peak never ended"
    if isnan(mean):
        return []
    backend = mean * write_factor(inputs, cluster.hosts)
    count = cluster.hosts * cluster.host_devices
    figures = []
    if not inputs.is_esa:
        written = tbw(backend / cluster.all_groups)
        least = CACHE_LEAST[inputs.media]
        arithmetic = f"{backend:,.4g} MB/s {period} / {cluster.all_groups} x 86,400 s x 365 x 5"
        figures = [
            Figure("written to a cache device", round(written, 1), "TB", arithmetic, ENDURANCE),
            Figure(
                "endurance class of cache devices",
                class_of(written, least),
                "",
                f"{written:,.0f} TB in five years; {inputs.media} caches are class {least} or better",
                ENDURANCE,
            ),
            Figure(
                "drive writes per day of cache devices",
                round(drive_writes_per_day(written, inputs.cache_gb), 2),
                "count",
                f"{written:,.0f} TB / ({inputs.cache_gb:,.0f} GB x 365 x 5)",
                ENDURANCE,
            ),
        ]
    if inputs.is_all_flash:
        written = tbw(backend / count)
        arithmetic = (
            f"{written:,.0f} TB in five years, all destaged"
            if not inputs.is_esa
            else f"{written:,.0f} TB in five years"
        )
        figures.append(Figure("endurance class of capacity devices", class_of(written), "", arithmetic, ENDURANCE))
    return figures


def _disk_sheet(inputs: Vsan, cluster: VsanCluster) -> Sheet:
    rows = tuple(
        (
            disk.name,
            round(disk.size_gb, 1),
            disk.controller,
            f"{disk.layout.raid} FTT {disk.layout.ftt}",
            f"{disk.reserved_pct:g}",
            inputs.stripes,
            disk.policy(inputs),
        )
        for disk in disks(inputs, cluster.hosts)
    )
    columns = ("disk", "GB", "controller", "protection", "reserved %", "stripes", "policy")
    return Sheet("Virtual disks of a machine", columns, rows)


def _assumptions(inputs: Vsan, rates: VsanRates) -> list[str]:
    assumptions = [f"Space efficiency of the cluster: {efficiency(inputs)}; reduction counted: {saved(inputs):g}."]
    if isnan(rates.write_mb_per_s):
        assumptions.append(
            "Writes are not known: peaks, endurance and links are not sized. Give write_mb_per_s or a recording."
        )
    elif rates.read_bytes == 0:
        assumptions.append("Reads are not known: what they take of capacity devices and links is not counted.")
    if isnan(rates.write_mean_mb_per_s) and not isnan(rates.write_mb_per_s):
        assumptions.append("The average of writes is not known: endurance is for the peak at all times.")
    if not inputs.is_esa:
        assumptions.append("Writes are slowed from 80 % of a buffer on, destaged from 30 % on.")
        if not inputs.is_cache_by_size:
            assumptions.append(
                "The cache of all-flash from 6.7 on only buffers writes: peaks and endurance size it, no 10 %."
            )
    assumptions.append("Links are for vSAN alone, or vSAN has shares of them that are enough.")
    return assumptions
