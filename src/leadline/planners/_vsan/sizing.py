"""The smallest cluster that holds what was asked, and what keeps a cluster from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan

from leadline.core.contracts.planner import Infeasible
from leadline.planners._vsan.buffer import READ_TIME_MAX, DiskGroupLoad, group_of
from leadline.planners._vsan.inputs import Vsan
from leadline.planners._vsan.protection import layouts, protected_gb, slack_pct, write_factor
from leadline.planners._vsan.rates import VsanRates

HOSTS_MAX, GROUPS_MAX, DEVICES_MAX, ESA_DEVICES_MAX = 64, 5, 7, 24
GROUPS_ADVISED = 2
ONE_HOST_DOWN_MAX = 0.8  # Source: vSAN documentation, devices are rebalanced from 80 % on
CACHE_SHARE = 0.1
WORKING_SETS = 2.0
ESA_FROM = (8, 0, 0)
DIVIDED = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True, slots=True)
class VsanCluster:
    """Hosts, disk groups of each (none with ESA: 1 stands for its pool), capacity devices of a group."""

    hosts: int
    groups: int
    devices: int

    @property
    def all_groups(self) -> int:
        """Groups of all hosts."""
        return self.hosts * self.groups

    @property
    def host_devices(self) -> int:
        """Capacity devices of a host."""
        return self.groups * self.devices

    def raw_gb(self, own: Vsan, down: int = 0) -> float:
        """Capacity devices, with so many hosts down."""
        return max(0, self.hosts - down) * self.host_devices * own.device_gb


def group_in(own: Vsan, rates: VsanRates, cluster: VsanCluster, down: int = 0) -> DiskGroupLoad | None:
    """A group with its part of the peak; None where writes are not known."""
    if isnan(rates.write_mb_per_s):
        return None
    backend = (rates.write_mb_per_s * write_factor(own, cluster.hosts), _reads(rates), rates.read_bytes)
    return group_of(own, backend, cluster.devices, max(1, cluster.all_groups - down * cluster.groups))


def backend_rates(own: Vsan, rates: VsanRates, cluster: VsanCluster) -> tuple[float, float, float]:
    """MB/s written with protection, reads per second, bytes of a read."""
    return rates.write_mb_per_s * write_factor(own, cluster.hosts), _reads(rates), rates.read_bytes


def _reads(rates: VsanRates) -> float:
    return 0.0 if isnan(rates.read_iops) or rates.read_bytes == 0 else rates.read_iops


def hosts_least(own: Vsan, hosts: int) -> int:
    """Hosts that the policies need, of all sites."""
    return own.sites * max(layout.hosts for layout in layouts(own, hosts))


def capacity_needed_gb(own: Vsan, hosts: int) -> float:
    """Raw: what is stored with protection, and slack."""
    return protected_gb(own, hosts) / (1 - slack_pct(own) / 100.0)


def cache_needed_gb(own: Vsan) -> float:
    """Of all hosts: a tenth of what is used before copies, in hybrid clusters twice the working set as well.

    With two sites each has a copy, and a cache for it. 0 where the cache only buffers writes, or there is none.
    """
    if not own.is_cache_by_size:
        return 0.0
    tenth = CACHE_SHARE * own.used_gb
    return own.sites * (tenth if own.is_all_flash else max(tenth, WORKING_SETS * own.working_gb))


def impossible(own: Vsan) -> Infeasible | None:
    """What no number of hosts mends."""
    uses_codes = "erasure" in (own.data_method, own.log_method)
    for is_wrong, constraint, nearest in (
        (own.is_esa and not own.is_all_flash, "the Express architecture has no hybrid clusters", "media=all-flash"),
        (own.is_esa and own.release < ESA_FROM, f"the Express architecture begins with 8.0, not {own.version}", "8.0"),
        (uses_codes and not own.is_all_flash, "erasure codes need all-flash clusters", "mirrors, or media=all-flash"),
        (uses_codes and own.ftt not in (1, 2), f"no erasure code tolerates {own.ftt} failures", "ftt 1 or 2"),
        (
            own.efficiency not in ("auto", "none") and not own.is_all_flash,
            "deduplication and compression need all-flash clusters",
            "efficiency=none",
        ),
        (own.is_esa and own.efficiency == "dedup", "deduplication is of the original architecture", "compression"),
        (
            not own.is_esa and (own.devices or 0) > DEVICES_MAX,
            f"{own.devices} devices in a disk group, at most {DEVICES_MAX}",
            f"{DEVICES_MAX} in each of more groups",
        ),
    ):
        if is_wrong:
            return Infeasible(constraint, nearest)
    return None


def _lacks(own: Vsan, rates: VsanRates, cluster: VsanCluster) -> list[str]:
    """Constraints the cluster does not keep."""
    hosts, lacks = cluster.hosts, []
    least = hosts_least(own, hosts) + (own.sites * own.spare_hosts if own.hosts is None else 0)
    if hosts < least or hosts % own.sites:
        alike = ", the same at both sites" if own.is_stretched else ""
        lacks.append(f"{hosts} hosts; policies need {least}{alike}")
    needed, stored = capacity_needed_gb(own, hosts), protected_gb(own, hosts)
    if cluster.raw_gb(own) < needed:
        lacks.append(f"{cluster.raw_gb(own):,.0f} GB raw of {needed:,.0f} needed")
    down = own.sites * own.spare_hosts
    if own.spare_hosts and hosts > hosts_least(own, hosts) and cluster.raw_gb(own, down) * ONE_HOST_DOWN_MAX < stored:
        lacks.append(f"{cluster.raw_gb(own, down):,.0f} GB raw with spare hosts down, 80 % of it for {stored:,.0f}")
    return [*lacks, *_lacks_speed(own, rates, cluster)]


def _lacks_speed(own: Vsan, rates: VsanRates, cluster: VsanCluster) -> Iterator[str]:
    """Cache, peak and average of writes."""
    own_cache = cluster.all_groups * own.cache_gb
    if own_cache < cache_needed_gb(own):
        yield f"{own_cache:,.0f} GB of cache of {cache_needed_gb(own):,.0f} needed"
    factor = write_factor(own, cluster.hosts)
    drain = cluster.hosts * cluster.host_devices * own.device_mb_per_s
    group = group_in(own, rates, cluster)
    if group is not None and group.read_busy > READ_TIME_MAX:
        yield f"reads keep capacity devices busy {group.read_busy:.0%}, of {READ_TIME_MAX:.0%} beside writes"
    if own.is_esa:
        if group is not None and group.write_mb_per_s > group.drain_mb_per_s:
            yield f"devices write {drain:,.0f} MB/s without reads, of {rates.write_mb_per_s * factor:,.0f} with copies"
        return
    if rates.write_mean_mb_per_s * factor > drain:
        yield f"destaging of {drain:,.0f} MB/s for {rates.write_mean_mb_per_s * factor:,.0f} on average"
    if group is not None and group.absorbed_s(own.fill_pct / 100.0) < own.burst_s:
        yield f"write buffers absorb {group.absorbed_s(own.fill_pct / 100.0):,.0f} s of a peak of {own.burst_s:,.0f} s"


def _clusters(own: Vsan) -> Iterator[VsanCluster]:
    """Every cluster that may be, few hosts and devices first."""
    if own.is_esa:
        groups, devices = range(1, 2), range(1, ESA_DEVICES_MAX + 1)
    else:
        groups, devices = range(GROUPS_ADVISED, GROUPS_MAX + 1), range(1, DEVICES_MAX + 1)
        if own.groups is not None:
            groups = range(own.groups, own.groups + 1)
    if own.devices is not None:
        devices = range(own.devices, own.devices + 1)
    sizes = sorted(((g, d) for g in groups for d in devices), key=lambda size: (size[0] * size[1], size[0]))
    for hosts in range(1, HOSTS_MAX + 1) if own.hosts is None else (own.hosts,):
        for group_count, device_count in sizes:
            yield VsanCluster(hosts, group_count, device_count)


def smallest(own: Vsan, rates: VsanRates) -> VsanCluster | None:
    """The cluster with fewest hosts, then devices, then groups."""
    return next((cluster for cluster in _clusters(own) if not _lacks(own, rates, cluster)), None)


def binding(own: Vsan, rates: VsanRates) -> Infeasible:
    """What the largest cluster that may be lacks, and the nearest there is."""
    *_, largest = _clusters(own)
    constraint = "; ".join(_lacks(own, rates, largest))
    free = own.model_copy(update={"hosts": None, "groups": None, "devices": None})
    found = smallest(free, rates)
    if found is not None:
        told = f"{found.hosts} hosts of {found.groups} x {found.devices} capacity devices"
        return Infeasible(constraint, told)
    for share in DIVIDED:
        part = free.model_copy(update={key: getattr(own, key) * share for key in ("data_gb", "log_gb", "temp_gb")})
        less = VsanRates(*(share * getattr(rates, key) for key in VsanRates.__slots__ if key != "evidence"))
        found = smallest(part, less)
        if found is not None:
            return Infeasible(
                constraint, f"{share:.0%} of it, on {found.hosts} hosts; more clusters, or larger devices"
            )
    return Infeasible(constraint, "larger or faster devices")
