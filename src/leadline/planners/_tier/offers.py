"""What clouds and storage policies offer: the limit of each tier. The list is ``offers.csv`` beside this file.

A range of IOPS and throughput, as of gp3, is listed in steps.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from leadline.planners._tier.shaping import TokenLimit

SOURCES = {
    "premium": "Microsoft, Azure managed disk types: Premium SSD",
    "premium-v2": "Microsoft, Azure managed disk types: Premium SSD v2",
    "gp2": "AWS, EBS volume types: gp2, 3 IOPS for each GiB, 5.4 million credits",
    "gp3": "AWS, EBS volume types: gp3",
    "sioc": "C. Hogan, Storage I/O Control v2 in vSphere 6.5 (2016): defaults of Low, Normal, High",
}


@dataclass(frozen=True, slots=True)
class TierOffer:
    """A tier of a family; ``size_gib`` is the size it comes with, or the least it needs; None where any will do."""

    family: str
    tier: str
    size_gib: float | None
    limit: TokenLimit
    source: str

    @property
    def words(self) -> str:
        """Its limits, for people."""
        limit = self.limit
        moved = "" if limit.mib_per_s is None else f", {limit.mib_per_s:,.0f} MiB/s"
        burst = "" if limit.burst_iops is None else f", bursts {limit.burst_iops:,.0f}/s"
        return f"{limit.iops:,.0f}/s{moved}{burst}"


@cache
def offers() -> dict[str, tuple[TierOffer, ...]]:
    """The tiers of each family, the least first."""
    text = resources.files(__package__).joinpath("offers.csv").read_text(encoding="utf-8")
    families: dict[str, list[TierOffer]] = {}
    for row in csv.DictReader(text.splitlines()):
        number = {key: float(row[key]) if row[key] else None for key in list(row)[2:-1]}
        limit = TokenLimit(
            number["iops"],
            number["mib_per_s"],
            number["unit_kib"],
            number["burst_iops"],
            number["burst_mib_per_s"],
            number["burst_s"] or 0.0,
        )
        offer = TierOffer(row["offer"], row["tier"], number["size_gib"], limit, SOURCES[row["source"]])
        families.setdefault(offer.family, []).append(offer)
    return {family: tuple(some) for family, some in families.items()}
