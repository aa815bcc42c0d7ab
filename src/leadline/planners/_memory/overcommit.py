"""What hosts take back from VMs when more memory was given than there is, with all hosts up and with some failed."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from leadline.core.contracts.planner import Bend, Figure, Infeasible, Sheet
from leadline.core.model.units import several, share_text

RESMGMT = "vSphere resource management: Mem.CtlMaxPercent, Mem.IdleTax"
BALLOON_MAX = 0.65  # of a VM's memory; Source: Mem.CtlMaxPercent
IDLE_TAX = 0.75  # of idle pages that are taken first; Source: Mem.IdleTax; Waldspurger 2002


@dataclass(frozen=True, slots=True)
class MemoryEstate:
    """Memory that hosts have for VMs and that VMs were given, GiB.

    Attributes:
        hosts: memory of each host beside its own need.
        reserved: of databases whole, of other VMs their reservations.
        others: of other VMs, without their reservations.
        active: what of that is used again and again.
    """

    hosts: tuple[float, ...]
    reserved: float
    others: float
    active: float

    def up(self, failed: int) -> tuple[float, ...]:
        """Hosts that are left when the largest fail."""
        return tuple(sorted(self.hosts)[: max(0, len(self.hosts) - failed)])

    @property
    def overcommit(self) -> float:
        """Return the memory configured, as a multiple of the memory of all hosts."""
        return (self.reserved + self.others) / max(sum(self.hosts), 1e-9)


@dataclass(frozen=True, slots=True)
class Taken:
    """What is taken back when VMs have touched all they were given, GiB."""

    usable: float
    room: float
    reclaimed: float
    ballooned: float
    at_risk: float

    @property
    def swapped(self) -> float:
        """What is compressed or swapped since the balloon takes no more."""
        return self.reclaimed - self.ballooned


def taken(estate: MemoryEstate, failed: int) -> Taken:
    """What is taken back with so many hosts failed: idle memory first, up to the tax; the rest hits what is active."""
    usable = sum(estate.up(failed))
    room = max(0.0, usable - estate.reserved)
    reclaimed = max(0.0, estate.others - room)
    idle = estate.others - estate.active
    at_risk = min(estate.active, max(0.0, reclaimed - IDLE_TAX * idle))
    return Taken(usable, room, reclaimed, min(reclaimed, BALLOON_MAX * estate.others), at_risk)


def figures(estate: MemoryEstate, spare: int) -> list[Figure]:
    """Overcommit, and what is taken back, before and after a failure."""
    arithmetic = f"({estate.reserved:,.0f} reserved + {estate.others:,.0f} others) / {sum(estate.hosts):,.0f} GiB"
    figures = [Figure("overcommit", round(estate.overcommit, 3), "ratio", arithmetic)]
    for failed, when in ((0, ""), *(((spare, " after a failure"),) if spare else ())):
        reclaim = taken(estate, failed)
        figures += [
            Figure(
                f"reclaimed{when}", round(reclaim.reclaimed, 1), "GiB",
                f"{estate.others:,.0f} of others less {reclaim.room:,.0f} left beside {estate.reserved:,.0f} reserved",
                RESMGMT,
            ),
            Figure(
                f"active at risk{when}", round(reclaim.at_risk, 1), "GiB",
                f"{reclaim.reclaimed:,.0f} less {share_text(IDLE_TAX)} of {estate.others - estate.active:,.0f} idle; "
                f"{estate.active:,.0f} active",
                RESMGMT,
            ),
        ]  # fmt: skip
    return figures


def sheet(estate: MemoryEstate, spare: int) -> Sheet:
    """Return what is taken back by the number of hosts that failed."""
    rows = []
    for failed in range(min(spare, len(estate.hosts)) + 1):
        reclaim = taken(estate, failed)
        share = 100.0 * reclaim.at_risk / estate.active if estate.active else 0.0
        taken_back = (reclaim.reclaimed, reclaim.ballooned, reclaim.swapped, reclaim.at_risk)
        rows.append((failed, *(round(value, 1) for value in (reclaim.usable, reclaim.room, *taken_back, share))))
    columns = ("failed", "for VMs", "left", "reclaimed", "balloon", "swap", "at risk", "% of active")
    return Sheet("Memory of the hosts by hosts failed, GiB", columns, tuple(rows))


def bends(estate: MemoryEstate, spare: int) -> list[Bend]:
    """Return a bend where hosts take memory back from VMs, with all hosts up or with ``spare`` hosts failed."""
    for failed, when in ((0, ""), (spare, f" with {spare} failed")):
        reclaim = taken(estate, failed)
        if reclaim.reclaimed > 0:
            swapped = f", {reclaim.swapped:,.0f} GiB of it swapped" if reclaim.swapped > 0 else ""
            cost = f"{reclaim.reclaimed:,.0f} GiB are taken back from other VMs{when}{swapped}"
            return [Bend("hosts of databases are not overcommitted", cost, RESMGMT)]
    return []


def infeasible(estate: MemoryEstate, spare: int) -> Infeasible | None:
    """Return why memory does not fit after hosts failed, and the nearest that fits; None where it fits."""
    reclaim = taken(estate, spare)
    largest = max(estate.hosts)
    where = f"{len(estate.hosts)} hosts of which {spare} may fail"
    if estate.reserved > reclaim.usable:
        more = _hosts_more(estate, spare)
        return Infeasible(f"{estate.reserved:,.0f} GiB reserved on {reclaim.usable:,.0f} GiB of {where}", more)
    if reclaim.at_risk <= 0:
        return None
    share = estate.active / estate.others
    most = floor(reclaim.room / (1.0 - IDLE_TAX * (1.0 - share)))
    factor = (estate.reserved + most) / sum(estate.hosts)
    return Infeasible(
        f"{reclaim.at_risk:,.0f} GiB of what other VMs use again and again are taken back on {where}",
        f"other VMs of {most:,} GiB (overcommit {factor:.2f}), or {_hosts_more(estate, spare)} of {largest:,.0f} GiB",
    )


def _hosts_more(estate: MemoryEstate, spare: int) -> str:
    """Return how many more hosts, as large as the largest, are needed for all reserved and active memory."""
    largest = max(estate.hosts)
    idle = estate.others - estate.active
    short = estate.reserved + estate.others - IDLE_TAX * idle - sum(estate.up(spare))
    more = ceil(short / largest - 1e-9)
    return f"{several(more, 'host')} more"
