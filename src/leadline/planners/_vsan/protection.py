"""Mirrors and erasure codes of vSAN: capacity, hosts, and what a write becomes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from leadline.planners._vsan.inputs import Vsan

LFS_SHARE = 0.131  # Source: Broadcom KB 394410, log-structured file system of ESA, of data with its protection
COMPONENT_GB = 255.0
WIDE_FROM = 6  # Source: Epping 2022, hosts from which RAID-5 of ESA is 4+1


@dataclass(frozen=True, slots=True)
class ObjectLayout:
    """Data and parity units of an object; a mirror of n copies has n units without parity."""

    raid: str
    ftt: int
    data: int
    parity: int

    @property
    def is_mirror(self) -> bool:
        """Whether units are copies."""
        return self.parity == 0

    @property
    def factor(self) -> float:
        """Return the bytes stored for each byte of data."""
        return float(self.ftt + 1) if self.is_mirror else (self.data + self.parity) / self.data

    @property
    def hosts(self) -> int:
        """Hosts its units and witnesses lie on."""
        return 2 * self.ftt + 1 if self.is_mirror else self.data + self.parity

    def small_factor(self) -> float:
        """Bytes written of a byte written alone: a copy each, or the data and each parity."""
        return float(self.ftt + 1 if self.is_mirror else 1 + self.parity)

    def components(self, disk_gb: float) -> int:
        """Components of an object, with witnesses of mirrors."""
        if self.is_mirror:
            return (self.ftt + 1) * ceil(disk_gb / COMPONENT_GB) + self.ftt
        return (self.data + self.parity) * ceil(disk_gb / self.data / COMPONENT_GB)


def mirror(ftt: int) -> ObjectLayout:
    """Return the layout of ``ftt`` + 1 copies."""
    return ObjectLayout("RAID-1" if ftt else "RAID-0", ftt, 1, 0)


def erasure(ftt: int, hosts: int, *, is_esa: bool) -> ObjectLayout | None:
    """Return RAID-5 or RAID-6 on the hosts of a site; None where no erasure code tolerates ``ftt`` failures."""
    if ftt == 1:
        wide = 4 if hosts >= WIDE_FROM else 2
        return ObjectLayout("RAID-5", 1, wide if is_esa else 3, 1)
    return ObjectLayout("RAID-6", 2, 4, 2) if ftt == 2 else None


def layouts(inputs: Vsan, hosts: int) -> tuple[ObjectLayout, ObjectLayout]:
    """Return the layouts of data and logs on ``hosts``; the automatic choice mirrors where a code has no spare host."""
    site = hosts // inputs.sites
    code = erasure(inputs.ftt, site, is_esa=inputs.is_esa)
    mirrored = mirror(inputs.ftt)
    prefers_code = inputs.is_all_flash and (inputs.is_esa or inputs.tier != "oltp-tier-1")
    is_roomy = code is not None and site >= code.hosts + inputs.spare_hosts
    if inputs.data_method == "erasure" or (inputs.data_method == "auto" and prefers_code and is_roomy):
        data = code or mirrored
    else:
        data = mirrored
    log = (code or mirrored) if inputs.log_method == "erasure" else mirrored
    return data, log


def written(inputs: Vsan, layout: ObjectLayout) -> float:
    """Return the bytes that devices write for each byte a guest writes, all sites.

    ESA mirrors to a performance leg first and writes full stripes to the capacity leg later.
    Source: virtuallysensei.com, "vSAN-ESA SPBM and component placements".
    """
    if inputs.is_esa:
        return inputs.sites * (inputs.ftt + 1 + layout.factor)
    small = inputs.small_write_pct / 100.0
    return inputs.sites * (small * layout.small_factor() + (1 - small) * layout.factor)


def write_factor(inputs: Vsan, hosts: int) -> float:
    """Return the bytes that devices write for each byte guests write, data and logs together."""
    data, log = layouts(inputs, hosts)
    share = inputs.log_write_pct / 100.0
    return share * written(inputs, log) + (1 - share) * written(inputs, data)


def protected_gb(inputs: Vsan, hosts: int) -> float:
    """Bytes stored with protection, all sites, before slack."""
    data, log = layouts(inputs, hosts)
    overhead = 1 + LFS_SHARE if inputs.is_esa else 1.0
    thin = inputs.data_gb + inputs.system_gb
    kept = inputs.temp_gb * data.factor + inputs.log_gb * log.factor
    reduction = saved(inputs)
    each = thin * data.factor / reduction + kept / (1.0 if written_reservation_pct(inputs) else reduction)
    return inputs.sites * inputs.machines * each * overhead


def saved(inputs: Vsan) -> float:
    """Return the reduction that is counted: 1 where space is reserved, as others cannot use reserved space."""
    return inputs.reduction if reservation_pct(inputs) == 0 and efficiency(inputs) != "none" else 1.0


def reservation_pct(inputs: Vsan) -> float:
    """Return the object space reservation, percent: by default 100 on OSA, 0 on ESA and for a warehouse's data."""
    if inputs.space_reservation_pct is not None:
        return inputs.space_reservation_pct
    return 0.0 if inputs.is_esa or inputs.tier == "data-warehouse" else 100.0


def written_reservation_pct(inputs: Vsan) -> float:
    """Return the object space reservation of logs and temporary space, percent.

    A data warehouse reserves them whole although its data is thin: bulk loads fill them at once.
    Source: vmgu.ru articles on vSAN, SQL Server: space for logs is allocated beforehand, also for warehouses.
    """
    if inputs.space_reservation_pct is None and inputs.tier == "data-warehouse" and not inputs.is_esa:
        return 100.0
    return reservation_pct(inputs)


def efficiency(inputs: Vsan) -> str:
    """Return the space efficiency: by default compression on ESA and for all-flash data warehouses, else none."""
    if inputs.efficiency != "auto":
        return inputs.efficiency
    if inputs.is_esa:
        return "compression"
    return "compression" if inputs.is_all_flash and inputs.tier == "data-warehouse" else "none"


def slack_pct(inputs: Vsan) -> float:
    """Space kept free for rebuilds and changes of policy."""
    if inputs.slack_pct is not None:
        return inputs.slack_pct
    return 25.0 if inputs.release >= (7, 0, 1) else 30.0
