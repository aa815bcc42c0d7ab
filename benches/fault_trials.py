"""Fault trials: inject one known fault, diagnose, compare what is said with what was done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benches.plain_thresholds import accusations, names_the_fault
from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.generating import FaultRequest, Injected, generate
from leadline.app.read.importing import import_paths
from leadline.core.contracts.discovery import unit_modules
from leadline.core.contracts.importer import Request
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Diagnosis, Finding, Window
from leadline.core.model.vocabulary import Severity
from leadline.generators.host_model import CaptureShape

SIZES = {
    "small": CaptureShape(vm_count=6, lun_count=4, sample_count=120),
    "medium": CaptureShape(vm_count=40, vcpus_per_vm=8, lun_count=16, sample_count=240),
    "large": CaptureShape(vm_count=160, vcpus_per_vm=4, disks_per_vm=4, lun_count=64, sample_count=360),
}
OVERLAP_MIN = 0.8  # window found against window injected: intersection over union


@dataclass(frozen=True, slots=True)
class Trial:
    """One generated capture, what was injected (None: healthy), what was found."""

    size: str
    seed: int
    injected: Injected | None
    diagnosis: Diagnosis
    plain: frozenset[tuple[str, Entity]] = frozenset()  # what a plain list of limits accuses
    guest: bool = False  # the guest's own recording was there too

    @property
    def accusations(self) -> list[Finding]:
        """Findings of medium or above that are not called symptoms of another."""
        return [f for f in self.diagnosis.findings if f.severity >= Severity.MEDIUM and not f.is_symptom]

    @property
    def misses(self) -> list[str]:
        """What is wrong with the top finding; empty when rule, layer, entity and window are right."""
        wanted = self.injected
        if wanted is None:
            return [f"healthy, but: {f.rule} on {f.entity}" for f in self.accusations]
        top = self.diagnosis.top
        if top is None or top.is_symptom or top.severity < Severity.MEDIUM:
            return ["nothing found"]
        wrong = []
        if top.rule not in wanted.rules:
            wrong.append(f"rule {top.rule}, not {' or '.join(wanted.rules)}")
        if top.layer is not wanted.layer:
            wrong.append(f"layer {top.layer.value}, not {wanted.layer.value}")
        if top.entity != wanted.entity:
            wrong.append(f"entity {top.entity}, not {wanted.entity}")
        if top.window is None or overlap(top.window, wanted.window) < OVERLAP_MIN:
            wrong.append(f"window {top.window}, not {wanted.window}")
        return wrong

    @property
    def plain_right(self) -> int:
        """How many accusations of the plain list are of the injected fault."""
        wanted = self.injected
        if wanted is None:
            return 0
        return sum(1 for rule, entity in self.plain if names_the_fault(rule, entity, wanted.rules, wanted.entity))

    @property
    def right_accusations(self) -> int:
        """Accusations that name the injected rule and entity."""
        wanted = self.injected
        if wanted is None:
            return 0
        return sum(1 for f in self.accusations if f.rule in wanted.rules and f.entity == wanted.entity)


def overlap(one: Window, other: Window) -> float:
    """Intersection over union of two windows."""
    shared = min(one.end_ns, other.end_ns) - max(one.start_ns, other.start_ns)
    whole = max(one.end_ns, other.end_ns) - min(one.start_ns, other.start_ns)
    return max(shared, 0) / whole if whole > 0 else 0.0


def fault_names() -> list[str]:
    """Every fault there is."""
    return list(unit_modules("fault"))


def run_trial(size: str, seed: int, fault: str | None, folder: Path, *, guest: bool = False) -> Trial:
    """Generate a capture, read it from disk as a user would, diagnose it.

    With ``guest``, the fault strikes the first VM (or the LUN of its first disk), and that VM's guest recorded too.
    """
    base = SIZES[size]
    fields = {name: getattr(base, name) for name in CaptureShape.__dataclass_fields__}
    path = folder / f"{size}-{seed}-{fault or 'healthy'}.csv"
    requests = [] if fault is None else [FaultRequest(fault, 0 if guest else None)]
    injected = generate(CaptureShape(**{**fields, "seed": seed}), requests, path, guest=0 if guest else None)
    extra = [path.with_name(f"{path.name}.{end}") for end in ("iostat.txt", "inventory.yaml")] if guest else []
    capture = import_paths([path, *extra], Request(metrics=metrics_read())).capture
    plain = frozenset(accusations(capture))
    trial = Trial(size, seed, injected[0] if injected else None, diagnose(capture), plain, guest)
    for file in (path, *extra):
        file.unlink()
    return trial
