"""Usual links of remote offices, by name: round trip, bandwidth and losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LinkName = Literal["none", "dial-up", "dsl", "t1", "satellite", "cable", "fiber", "3g", "4g", "lte"]
VMWARE = "VMware vCloud Director 1.0 performance and best practices, table 3"
WEBPAGETEST = "WebPageTest, settings/connectivity.ini.sample"


@dataclass(frozen=True, slots=True)
class UsualLink:
    """A link as it is usually offered; the bandwidth is that of its slower direction."""

    round_trip_ms: float
    mbit_per_s: float
    loss_pct: float
    source: str

    def text(self) -> str:
        """Return the numbers of the link.

        >>> LINKS["t1"].text()
        '1.5 Mbit/s, 100 ms, 0.05 % lost'
        """
        return f"{self.mbit_per_s:g} Mbit/s, {self.round_trip_ms:g} ms, {self.loss_pct:g} % lost"

    def numbers(self) -> dict[str, float]:
        """Return the numbers by the planner's keys."""
        return {"round_trip_ms": self.round_trip_ms, "mbit_per_s": self.mbit_per_s, "loss_pct": self.loss_pct}


# WebPageTest's links have no losses; its answer to an office's host comes over the slower direction.
LINKS: dict[str, UsualLink] = {
    "dial-up": UsualLink(120.0, 0.03, 0.0, WEBPAGETEST),
    "dsl": UsualLink(100.0, 0.512, 0.05, VMWARE),
    "t1": UsualLink(100.0, 1.5, 0.05, VMWARE),
    "satellite": UsualLink(500.0, 1.5, 0.1, VMWARE),
    "cable": UsualLink(28.0, 1.0, 0.0, WEBPAGETEST),
    "fiber": UsualLink(4.0, 5.0, 0.0, WEBPAGETEST),
    "3g": UsualLink(300.0, 0.768, 0.0, WEBPAGETEST),
    "4g": UsualLink(170.0, 9.0, 0.0, WEBPAGETEST),
    "lte": UsualLink(70.0, 12.0, 0.0, WEBPAGETEST),
}
KNOWN = "; ".join(f"{name} {link.text()}" for name, link in LINKS.items())
