"""What devices could do together by their data sheets, and which share of it was reached.

Arithmetic: devices x rated value per device, of every host alike. What protection costs (copies, parity) is not in it
unless a divisor is given, because it depends on the read share and on the layout.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from leadline.core.model.numbers import NUMBER_MAX

_TEXT = re.compile(
    r"(?P<count>\d{1,6})\s*[x×*]\s*(?P<rated>\d+(?:\.\d+)?)\s*(?P<power>[kKMG]?)"
    r"(?:(?P<bytes>i?B/s)|\s*IOPS)?(?:\s*/\s*(?P<cost>\d+(?:\.\d+)?))?"
)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3}


@dataclass(frozen=True, slots=True)
class Theoretical:
    """The most one host could do.

    Attributes:
        device_count: devices per host.
        rated: what one device is rated at, operations/s or bytes/s.
        is_throughput: whether it is bytes/s.
        cost: what protection divides it by; 1 when it is not included.
    """

    device_count: int
    rated: float
    is_throughput: bool
    cost: float = 1.0

    @property
    def unit(self) -> str:
        """Of what it is the most."""
        return "bytes_per_s" if self.is_throughput else "per_s"

    @property
    def per_host(self) -> float:
        """Operations/s or bytes/s of one host."""
        return self.device_count * self.rated / self.cost

    def share(self, per_s: float, bytes_per_s: float, host_count: int = 1) -> float:
        """The share reached by so many hosts together; NaN when what it is a share of was not measured."""
        reached = bytes_per_s if self.is_throughput else per_s
        return reached / (self.per_host * host_count)

    def sentence(self, host_count: int = 1) -> str:
        """Return the maximum and how it is computed, as one sentence for people.

        >>> parse_theoretical("24x550000").sentence(2)
        '24 x 550,000 IOPS = 13,200,000 IOPS per host, 26,400,000 IOPS in all; what protection costs is not included'
        """
        each, one, whole = (self._shown(v) for v in (self.rated, self.per_host, self.per_host * host_count))
        divided = "" if self.cost == 1.0 else f" / {self.cost:g}"
        text = f"{self.device_count} x {each}{divided} = {one} per host"
        if host_count > 1:
            text += f", {whole} in all"
        protection_cost = "not included" if self.cost == 1.0 else f"taken as a division by {self.cost:g}"
        return f"{text}; what protection costs is {protection_cost}"

    def _shown(self, value: float) -> str:
        return f"{value / 1e9:,.2f} GB/s" if self.is_throughput else f"{value:,.0f} IOPS"


def parse_theoretical(text: str) -> Theoretical:
    """``24x550000``, ``24x550kIOPS`` (operations), ``24x6.5GB/s``, ``24x6GiB/s`` (throughput), ``/2`` for protection.

    Raises:
        ValueError: the text has another form, or one of its numbers is zero or larger than any device reaches.

    >>> parse_theoretical("24x550000").per_host, parse_theoretical("24x6.5GB/s/2").per_host
    (13200000.0, 78000000000.0)
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        message = f"{text!r} is nothing such as 24x550000 or 24x6.5GB/s"
        raise ValueError(message)
    base = 1024.0 if (match["bytes"] or "").startswith("i") else 1000.0
    rated = float(match["rated"]) * base ** _POWERS[match["power"].lower()]
    theoretical = Theoretical(int(match["count"]), rated, match["bytes"] is not None, float(match["cost"] or 1.0))
    if not theoretical.rated * theoretical.device_count <= NUMBER_MAX:
        message = f"{text[:40]!r} is more than any device does"
        raise ValueError(message)
    if theoretical.device_count == 0 or theoretical.rated == 0.0 or theoretical.cost == 0.0:
        message = f"{text!r} is nothing at all"
        raise ValueError(message)
    return theoretical
