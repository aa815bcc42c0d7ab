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
        """Bytes stored of a byte."""
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
    """Copies."""
    return ObjectLayout("RAID-1" if ftt else "RAID-0", ftt, 1, 0)


def erasure(ftt: int, hosts: int, *, is_esa: bool) -> ObjectLayout | None:
    """RAID-5 or RAID-6 on so many hosts of a site; None where there is none."""
    if ftt == 1:
        wide = 4 if hosts >= WIDE_FROM else 2
        return ObjectLayout("RAID-5", 1, wide if is_esa else 3, 1)
    return ObjectLayout("RAID-6", 2, 4, 2) if ftt == 2 else None


def layouts(own: Vsan, hosts: int) -> tuple[ObjectLayout, ObjectLayout]:
    """Of data and logs on so many hosts; the automatic choice mirrors where a code has no host to spare."""
    site = hosts // own.sites
    code = erasure(own.ftt, site, is_esa=own.is_esa)
    mirrored = mirror(own.ftt)
    prefers_code = own.is_all_flash and (own.is_esa or own.tier != "oltp-tier-1")
    is_roomy = code is not None and site >= code.hosts + own.spare_hosts
    if own.data_method == "erasure" or (own.data_method == "auto" and prefers_code and is_roomy):
        data = code or mirrored
    else:
        data = mirrored
    log = (code or mirrored) if own.log_method == "erasure" else mirrored
    return data, log


def written(own: Vsan, layout: ObjectLayout) -> float:
    """Bytes that devices write of a byte of a guest, all sites.

    ESA mirrors to a performance leg first and writes full stripes to the capacity leg later.
    Source: virtuallysensei.com, "vSAN-ESA SPBM and component placements".
    """
    if own.is_esa:
        return own.sites * (own.ftt + 1 + layout.factor)
    small = own.small_write_pct / 100.0
    return own.sites * (small * layout.small_factor() + (1 - small) * layout.factor)


def write_factor(own: Vsan, hosts: int) -> float:
    """Bytes devices write of a byte of the guests, data and logs together."""
    data, log = layouts(own, hosts)
    share = own.log_write_pct / 100.0
    return share * written(own, log) + (1 - share) * written(own, data)


def protected_gb(own: Vsan, hosts: int) -> float:
    """Bytes stored with protection, all sites, before slack."""
    data, log = layouts(own, hosts)
    overhead = 1 + LFS_SHARE if own.is_esa else 1.0
    other = own.data_gb + own.temp_gb + own.system_gb
    return own.sites * own.machines * (other * data.factor + own.log_gb * log.factor) * overhead / saved(own)


def saved(own: Vsan) -> float:
    """What counts of the reduction: nothing where space is reserved, as reserved space is not given to others."""
    return own.reduction if reservation_pct(own) == 0 and efficiency(own) != "none" else 1.0


def reservation_pct(own: Vsan) -> float:
    """Object space reservation: all of it for databases in service, of OSA."""
    if own.space_reservation_pct is not None:
        return own.space_reservation_pct
    return 0.0 if own.is_esa or own.tier == "data-warehouse" else 100.0


def efficiency(own: Vsan) -> str:
    """Deduplication and compression: neither for tier 1 with OSA, or hybrid; ESA compresses."""
    if own.efficiency != "auto":
        return own.efficiency
    if own.is_esa:
        return "compression"
    return "compression" if own.is_all_flash and own.tier == "data-warehouse" else "none"


def slack_pct(own: Vsan) -> float:
    """Space kept free for rebuilds and changes of policy."""
    if own.slack_pct is not None:
        return own.slack_pct
    return 25.0 if own.release >= (7, 0, 1) else 30.0
