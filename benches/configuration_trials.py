"""Configuration trials: a sound estate, one setting made wrong, and what the audit says of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from leadline.app.diagnose.auditing import audit
from leadline.app.read.importing import import_paths
from leadline.core.model.vocabulary import Severity

HEALTHY = Path(__file__).parent / "healthy.yaml"
Document = dict[str, Any]


def _vm(document: Document) -> Document:
    vm: Document = document["hosts"][0]["vms"][0]
    return vm


def _guest(document: Document) -> Document:
    guest: Document = document["guests"][0]
    return guest


def _database(document: Document) -> Document:
    database: Document = _guest(document)["databases"][0]
    return database


# What is made wrong -> the rules of which one must accuse it, and no other rule at medium or above may.
FAULTS: dict[str, tuple[tuple[str, ...], Callable[[Document], object]]] = {
    "lsi-controller": (("vm-disk-controller-not-pvscsi",), lambda d: _vm(d)["adapters"][1].update(type="lsilogic")),
    "e1000": (("vm-nic-not-vmxnet3",), lambda d: _vm(d)["nics"][0].update(type="e1000")),
    "old-snapshot": (
        ("vm-snapshot-present", "vm-snapshot-old"),
        lambda d: _vm(d).update(snapshot_count=1, snapshot_age_days=20.0),
    ),
    "wider-than-host": (("vm-vcpus-exceed-physical-cores",), lambda d: d["hosts"][0].update(core_count=4)),
    "wal-with-data": (("db-wal-shared-disk-with-data",), lambda d: _database(d).update(wal_device="sdb")),
    "fsync-off": (("db-pg-synchronous-storage",), lambda d: _database(d)["parameters"].update(fsync="off")),
    "memory-limit": (("vm-memory-limit-configured",), lambda d: _vm(d).update(memory_limit_mib=32768)),
    "cpu-limit": (("cpu-limit-configured",), lambda d: _vm(d).update(cpu_limit_mhz=8000)),
    "no-memory-reservation": (("vm-memory-reservation-missing",), lambda d: _vm(d).update(memory_reservation_mib=0)),
    "iops-limit": (("vm-disk-iops-limit",), lambda d: _vm(d)["disks"][1].update(iops_limit=500)),
    "power-saving": (("host-power-policy",), lambda d: d["hosts"][0].update(power_policy="low-power")),
    "swappiness": (("guest-swappiness-high",), lambda d: _guest(d)["sysctl"].update({"vm.swappiness": 60})),
    "single-controller": (
        ("vm-single-scsi-controller",),
        lambda d: [disk.update(adapter="scsi0", name=f"scsi0:{i}") for i, disk in enumerate(_vm(d)["disks"])],
    ),
}


@dataclass(frozen=True, slots=True)
class ConfigurationTrial:
    """What the audit said of one estate."""

    fault: str | None
    accused: frozenset[str]  # rules at medium or above that are no symptoms
    expected: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """One of the expected rules and no other; nothing at all for a sound estate."""
        if self.fault is None:
            return not self.accused
        return bool(self.accused) and self.accused <= set(self.expected)


def run_configuration_trial(fault: str | None, folder: Path) -> ConfigurationTrial:
    """Write the estate, audit it as a user would."""
    document: Document = copy.deepcopy(yaml.safe_load(HEALTHY.read_text(encoding="utf-8")))
    expected: tuple[str, ...] = ()
    if fault is not None:
        expected, spoil = FAULTS[fault]
        spoil(document)
    path = folder / f"{fault or 'sound'}.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    found = audit(import_paths([path]).capture).findings
    accused = frozenset(f.rule for f in found if f.severity >= Severity.MEDIUM and not f.is_symptom)
    return ConfigurationTrial(fault, accused, expected)
