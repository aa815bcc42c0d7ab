"""Lines of Telegraf's libvirt input: the counters of ``virsh domstats``, a line for each vCPU and disk."""

from __future__ import annotations

from dataclasses import dataclass, field

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import CaptureBuilder
from leadline.formats.linux.domain_counters import Counters, DomainSeries

MEASUREMENTS = ("libvirt_vcpu", "libvirt_block", "libvirt_balloon")
_BLOCK = {
    f"{way}_{count}": f"{way}.{count}" for way in ("rd", "wr", "fl") for count in ("reqs", "bytes", "times")
}  # the same names with dots
_VCPU = ("time", "wait", "delay")
_BALLOON = ("current", "maximum")


@dataclass(slots=True)
class LibvirtLines:
    """Counters by VM and time."""

    domains: dict[str, dict[int, Counters]] = field(default_factory=dict)

    def add(
        self, name: str, tags: dict[str, str], fields: dict[str, float], texts: dict[str, str], time_ns: int
    ) -> bool:
        """Take a line; False where it is none of the measurements or names no VM."""
        vm = tags.get("domain_name")
        if name not in MEASUREMENTS or not vm:
            return False
        counters = self.domains.setdefault(vm, {}).setdefault(time_ns, {})
        if name == "libvirt_balloon":
            counters.update({f"balloon.{key}": fields[key] for key in _BALLOON if key in fields})
        elif name == "libvirt_vcpu":
            number = tags.get("vcpu_id", "0")
            counters.update({f"vcpu.{number}.{key}": fields[key] for key in _VCPU if key in fields})
        else:
            self._add_block(counters, tags.get("block_id", "0"), fields, texts)
        return True

    @staticmethod
    def _add_block(counters: Counters, number: str, fields: dict[str, float], texts: dict[str, str]) -> None:
        """A disk; of the files behind it, which come after it under its name, nothing."""
        disk = texts.get("name") or number
        names = [value for key, value in counters.items() if key.endswith(".name")]
        if disk not in names:
            counters[f"block.{number}.name"] = disk
            counters.update({f"block.{number}.{ours}": fields[key] for key, ours in _BLOCK.items() if key in fields})

    def into(self, source: Source, request: Request, builder: CaptureBuilder, record: str) -> None:
        """Add the series of all VMs."""
        for name, moments in self.domains.items():
            taken: list[tuple[int | None, Counters]] = list(moments.items())
            DomainSeries(name, taken, source, request, builder).add(record, is_timed=True)
