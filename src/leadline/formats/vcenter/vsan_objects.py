"""Objects of vSAN behind virtual disks, whatever tool tells of them: their components and what the settings say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

ACTIVE = "ACTIVE"
_CODED = ("5", "6")


@dataclass(slots=True)
class VsanPart:
    """A component or a witness: whether it is active, its host, its device and the device's disk group."""

    is_witness: bool
    state: str = ""
    host: str = ""
    device: str = ""
    group: str = ""

    @property
    def words(self) -> str:
        """``esx1.lab naa.a in disk group naa.cache``, with what is not as it should be."""
        place = " ".join(filter(None, (self.host or "an unknown host", self.device)))
        group = f" in disk group {self.group}" if self.group else ""
        missing = "" if self.state in ("", ACTIVE) else f" ({self.state.lower()})"
        return f"{'witness ' if self.is_witness else ''}{place}{group}{missing}"


def placement_settings(parts: Sequence[VsanPart]) -> dict[str, Any]:
    """Return the settings of a virtual disk that say where its components lie; none without components."""
    if not parts:
        return {}
    absent_count = sum(part.state not in ("", ACTIVE) for part in parts)
    return {"vsan_placement": [part.words for part in parts], "vsan_absent_component_count": absent_count}


def layout_name(levels: Iterable[str]) -> str | None:
    """Return ``raid-5`` or the like from the digits of an object's levels, outermost first; None without a level.

    A level with parity says what keeps the data wherever it lies: below the mirror between sites, or beside the
    mirrored performance leg of the Express Storage Architecture. Else the outermost level says it, as a stripe of
    several components lies below the mirror. ``D``, a component with its durability component, counts as a mirror.

    Source: VMware vSAN documentation, RAID configurations; Express Storage Architecture, performance and capacity leg.
    """
    ordered = list(levels)
    level = next((one for one in ordered if one in _CODED), ordered[0] if ordered else None)
    return None if level is None else f"raid-{level.replace('D', '1')}"
