"""The smallest cluster that meets the inputs, and the constraints that a smaller one does not meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isnan

from leadline.core.contracts.planner import Infeasible
from leadline.core.model.units import share_text
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

    def raw_gb(self, inputs: Vsan, down: int = 0) -> float:
        """Return the capacity of all devices, GB, with ``down`` hosts down."""
        return max(0, self.hosts - down) * self.host_devices * inputs.device_gb


def group_in(inputs: Vsan, rates: VsanRates, cluster: VsanCluster, down: int = 0) -> DiskGroupLoad | None:
    """Return one disk group with its share of the peak load; None where the rate of writes is not known."""
    if isnan(rates.write_mb_per_s):
        return None
    backend = (rates.write_mb_per_s * write_factor(inputs, cluster.hosts), _reads(rates), rates.read_bytes)
    return group_of(inputs, backend, cluster.devices, max(1, cluster.all_groups - down * cluster.groups))


def backend_rates(inputs: Vsan, rates: VsanRates, cluster: VsanCluster) -> tuple[float, float, float]:
    """Return MB/s written to devices with protection, reads per second, and bytes of a read."""
    return rates.write_mb_per_s * write_factor(inputs, cluster.hosts), _reads(rates), rates.read_bytes


def _reads(rates: VsanRates) -> float:
    return 0.0 if isnan(rates.read_iops) or rates.read_bytes == 0 else rates.read_iops


def hosts_least(inputs: Vsan, hosts: int) -> int:
    """Return how many hosts the storage policies need, all sites together."""
    return inputs.sites * max(layout.hosts for layout in layouts(inputs, hosts))


def capacity_needed_gb(inputs: Vsan, hosts: int) -> float:
    """Return the raw capacity needed, GB: data with protection, and slack space."""
    return protected_gb(inputs, hosts) / (1 - slack_pct(inputs) / 100.0)


def cache_needed_gb(inputs: Vsan) -> float:
    """Return the cache needed on all hosts, GB: a tenth of the data in use before copies.

    A hybrid cluster needs at least twice the working set. With two sites each has a copy, and a cache for it. 0 where
    the cache only buffers writes, or there is none.
    """
    if not inputs.is_cache_by_size:
        return 0.0
    tenth = CACHE_SHARE * inputs.used_gb
    return inputs.sites * (tenth if inputs.is_all_flash else max(tenth, WORKING_SETS * inputs.working_gb))


def impossible(inputs: Vsan) -> Infeasible | None:
    """Return why no number of hosts meets the inputs; None where one may."""
    uses_codes = "erasure" in (inputs.data_method, inputs.log_method)
    for is_wrong, constraint, nearest in (
        (
            inputs.is_esa and not inputs.is_all_flash,
            "the Express architecture has no hybrid clusters",
            "media=all-flash",
        ),
        (
            inputs.is_esa and inputs.release < ESA_FROM,
            f"the Express architecture begins with 8.0, not {inputs.version}",
            "8.0",
        ),
        (
            inputs.is_esa and inputs.device_interface in ("sata", "sas"),
            f"the Express architecture takes NVMe devices only, not {inputs.device_interface.upper()}",
            "device_interface=nvme, or architecture=osa",
        ),
        (
            uses_codes and not inputs.is_all_flash,
            "erasure codes need all-flash clusters",
            "mirrors, or media=all-flash",
        ),
        (uses_codes and inputs.ftt not in (1, 2), f"no erasure code tolerates {inputs.ftt} failures", "ftt 1 or 2"),
        (
            inputs.efficiency not in ("auto", "none") and not inputs.is_all_flash,
            "deduplication and compression need all-flash clusters",
            "efficiency=none",
        ),
        (
            inputs.is_esa and inputs.efficiency == "dedup",
            "deduplication is of the original architecture",
            "compression",
        ),
        (
            not inputs.is_esa and (inputs.devices or 0) > DEVICES_MAX,
            f"{inputs.devices} devices in a disk group, at most {DEVICES_MAX}",
            f"{DEVICES_MAX} in each of more groups",
        ),
    ):
        if is_wrong:
            return Infeasible(constraint, nearest)
    return None


def _lacks(inputs: Vsan, rates: VsanRates, cluster: VsanCluster) -> list[str]:
    """Return the constraints that the cluster does not meet."""
    hosts, lacks = cluster.hosts, []
    least = hosts_least(inputs, hosts) + (inputs.sites * inputs.spare_hosts if inputs.hosts is None else 0)
    if hosts < least or hosts % inputs.sites:
        alike = ", the same at both sites" if inputs.is_stretched else ""
        lacks.append(f"{hosts} hosts; policies need {least}{alike}")
    needed, stored = capacity_needed_gb(inputs, hosts), protected_gb(inputs, hosts)
    if cluster.raw_gb(inputs) < needed:
        lacks.append(f"{cluster.raw_gb(inputs):,.0f} GB raw of {needed:,.0f} needed")
    down = inputs.sites * inputs.spare_hosts
    if (
        inputs.spare_hosts
        and hosts > hosts_least(inputs, hosts)
        and cluster.raw_gb(inputs, down) * ONE_HOST_DOWN_MAX < stored
    ):
        lacks.append(f"{cluster.raw_gb(inputs, down):,.0f} GB raw with spare hosts down, 80 % of it for {stored:,.0f}")
    return [*lacks, *_lacks_speed(inputs, rates, cluster)]


def _lacks_speed(inputs: Vsan, rates: VsanRates, cluster: VsanCluster) -> Iterator[str]:
    """Yield the constraints on cache, peak writes and average writes that the cluster does not meet."""
    cache_gb = cluster.all_groups * inputs.cache_gb
    if cache_gb < cache_needed_gb(inputs):
        yield f"{cache_gb:,.0f} GB of cache of {cache_needed_gb(inputs):,.0f} needed"
    factor = write_factor(inputs, cluster.hosts)
    drain = cluster.hosts * cluster.host_devices * inputs.device_mb_per_s
    group = group_in(inputs, rates, cluster)
    if group is not None and group.read_busy > READ_TIME_MAX:
        busy, most = share_text(group.read_busy), share_text(READ_TIME_MAX)
        yield f"reads keep capacity devices busy {busy}, of {most} beside writes"
    if inputs.is_esa:
        if group is not None and group.write_mb_per_s > group.drain_mb_per_s:
            yield f"devices write {drain:,.0f} MB/s without reads, of {rates.write_mb_per_s * factor:,.0f} with copies"
        return
    if rates.write_mean_mb_per_s * factor > drain:
        yield f"destaging of {drain:,.0f} MB/s for {rates.write_mean_mb_per_s * factor:,.0f} on average"
    absorbed_s = inf if group is None else group.absorbed_s(inputs.fill_pct / 100.0)
    if absorbed_s < inputs.burst_s:
        yield f"write buffers absorb {absorbed_s:,.0f} s of a peak of {inputs.burst_s:,.0f} s"


def _clusters(inputs: Vsan) -> Iterator[VsanCluster]:
    """Yield every cluster that the inputs allow, those with few hosts and devices first."""
    if inputs.is_esa:
        groups, devices = range(1, 2), range(1, ESA_DEVICES_MAX + 1)
    else:
        groups, devices = range(GROUPS_ADVISED, GROUPS_MAX + 1), range(1, DEVICES_MAX + 1)
        if inputs.groups is not None:
            groups = range(inputs.groups, inputs.groups + 1)
    if inputs.devices is not None:
        devices = range(inputs.devices, inputs.devices + 1)
    sizes = sorted(((g, d) for g in groups for d in devices), key=lambda size: (size[0] * size[1], size[0]))
    for hosts in range(1, HOSTS_MAX + 1) if inputs.hosts is None else (inputs.hosts,):
        for group_count, device_count in sizes:
            yield VsanCluster(hosts, group_count, device_count)


def smallest(inputs: Vsan, rates: VsanRates) -> VsanCluster | None:
    """Return the cluster with the fewest hosts, then devices, then groups; None where no cluster meets the inputs."""
    return next((cluster for cluster in _clusters(inputs) if not _lacks(inputs, rates, cluster)), None)


def binding(inputs: Vsan, rates: VsanRates) -> Infeasible:
    """Return the constraints that the largest cluster allowed does not meet, and the nearest inputs that are met."""
    *_, largest = _clusters(inputs)
    constraint = "; ".join(_lacks(inputs, rates, largest))
    free = inputs.model_copy(update={"hosts": None, "groups": None, "devices": None})
    cluster = smallest(free, rates)
    if cluster is not None:
        shape = f"{cluster.hosts} hosts of {cluster.groups} x {cluster.devices} capacity devices"
        return Infeasible(constraint, shape)
    for share in DIVIDED:
        part = free.model_copy(update={key: getattr(inputs, key) * share for key in ("data_gb", "log_gb", "temp_gb")})
        less = VsanRates(*(share * getattr(rates, key) for key in VsanRates.__slots__ if key != "evidence"))
        cluster = smallest(part, less)
        if cluster is not None:
            return Infeasible(
                constraint, f"{share_text(share)} of it, on {cluster.hosts} hosts; more clusters, or larger devices"
            )
    return Infeasible(constraint, "larger or faster devices")
