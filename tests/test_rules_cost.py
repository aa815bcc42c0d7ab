"""What a rule asks of a capture grows as the capture does: counted by a meter, no clock.

The firing case of each rule is copied 16 and 32 times: as parts of one host, as hosts, as recordings. Twice as much may
ask for little more than twice as much.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from leadline.app.diagnose.findings import missing_needs
from leadline.app.generating import generate
from leadline.app.read.importing import import_paths
from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.rule import RuleContext, rule_metas
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.meter import Meter
from leadline.core.model.vocabulary import EntityKind
from leadline.generators.host_model import CaptureShape
from tests.rule_cases import RuleCase, capture_of, rule_cases, scope_of

GROWTH_MAX, SLACK = 2.1, 200
WAYS = ("parts", "hosts", "recordings")
ONES = frozenset({EntityKind.VM, EntityKind.GUEST})  # their names link them: both are copied
SHARE_MAX = 0.1  # of the work of all rules on a healthy capture

# Rules that do more than a tenth of all work on a healthy capture; this may only shrink.
HEAVY = ("disk-gavg-high", "vm-iops-limit-hit")


class MeteredInventory(Inventory):
    """An inventory that counts the entities it hands out by kind."""

    meter: Meter

    def of_kind(self, kind: EntityKind) -> list[Entity]:
        entities = super().of_kind(kind)
        self.meter.count("entities", f"inventory {kind.value}", len(entities))
        return entities


@dataclass(frozen=True)
class Copying:
    """Renames the entities of one copy; what a host is shared by keeps its name where copies are parts of one."""

    index: int
    way: str

    def entity(self, entity: Entity) -> Entity:
        parent = None if entity.parent is None else self.entity(entity.parent)
        name = self.name(entity.name) if self.is_renamed(entity) else entity.name
        return Entity(entity.kind, name, parent)

    def is_renamed(self, entity: Entity) -> bool:
        if entity.kind is EntityKind.CLUSTER:
            return False
        if entity.kind is EntityKind.HOST:
            return self.way != "parts"
        is_top = entity.parent is None or (self.way == "parts" and entity.parent.kind is EntityKind.HOST)
        return is_top or entity.kind in ONES

    def name(self, name: str) -> str:
        return f"{name}-{self.index}"

    def capture(self, capture: Capture) -> Capture:
        names = {e.name: self.name(e.name) for e in capture.inventory.facts if self.is_renamed(e)}
        inventory = Inventory()
        for entity, facts in capture.inventory.facts.items():
            of_copy = inventory.facts.setdefault(self.entity(entity), {})
            of_copy.update({name: replace(fact, value=_renamed(fact.value, names)) for name, fact in facts.items()})
        inventory.links = {self.entity(guest): self.entity(vm) for guest, vm in capture.inventory.links.items()}
        groups = [g.relabelled(entities=[self.entity(e) for e in g.entities]) for g in capture.groups]
        results = [replace(result, host=_renamed(result.host, names)) for result in capture.results]
        return Capture(groups, list(capture.sources), inventory, results)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {_renamed(key, names): _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_renamed(item, names) for item in value)
    return names.get(value, value) if isinstance(value, str) else value


def copied(capture: Capture, count: int, way: str) -> Capture:
    """A capture as many times over: in one recording, or in as many."""
    copies = [Copying(index, way).capture(capture) for index in range(count)]
    merged = Capture.merged(copies)
    if way != "recordings":
        merged.groups = [_stacked(list(parts)) for parts in zip(*(copy.groups for copy in copies), strict=True)]
        merged.sources = list(capture.sources)
    return merged


def _stacked(parts: list[SeriesGroup]) -> SeriesGroup:
    """Groups of one metric as one; an entity that all share is there once."""
    rows = {entity: values for part in parts for entity, values in zip(part.entities, part.values, strict=True)}
    return (
        parts[0].relabelled(entities=list(rows))
        if len(rows) == len(parts[0].entities)
        else replace(parts[0], entities=list(rows), values=np.stack(list(rows.values())))
    )


def work_of(case: RuleCase, count: int, way: str) -> Meter:
    """What a rule asked of its case copied."""
    return asked(case.rule, copied(capture_of(case.document), count, way), case.document)


def asked(rule: str, capture: Capture, document: dict[str, Any]) -> Meter:
    """What a rule asked of a capture."""
    meter = Meter()
    inventory = MeteredInventory(capture.inventory.facts, capture.inventory.links)
    inventory.meter = meter
    metered = replace(capture, inventory=inventory, meter=meter)
    module = load_unit("rule", rule)
    scope = scope_of(document) if document else None
    list(module.check(RuleContext(rule, module.META, module.__doc__ or "", metered, document.get("limits"), scope)))
    return meter


def firing_cases() -> list[RuleCase]:
    """A case of each rule in which it finds something."""
    cases = (next((c for c in of_rule if c.kind in ("fires", "warning")), None) for of_rule in rule_cases().values())
    return [case for case in cases if case is not None]


def blame(small: Meter, large: Meter) -> str:
    """The metrics and helpers whose work grew most, worst first."""
    grown = Counter({key: count - 2 * small.counts[key] for key, count in large.counts.items()})
    return "; ".join(
        f"{k.helper} asks for {k.kind} of {k.metric}: {small.counts[k]} -> {large.counts[k]}"
        for k, _ in grown.most_common(3)
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", firing_cases(), ids=lambda case: case.rule)
def test_twice_as_much_asks_for_little_more_than_twice_as_much(case: RuleCase, way: str) -> None:
    small, large = work_of(case, 16, way), work_of(case, 32, way)
    within = large.total <= GROWTH_MAX * small.total + SLACK
    assert within, f"{case.rule}, {way}: {small.total} -> {large.total}; {blame(small, large)}"


@pytest.fixture(scope="module")
def work_by_rule(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Meter]:
    """What each rule that can look asks of a healthy host."""
    path = tmp_path_factory.mktemp("healthy") / "esxtop.csv"
    generate(CaptureShape(vm_count=12, disks_per_vm=2, sample_count=60), [], path)
    capture = import_paths([path]).capture
    capable = [
        name for name, meta in rule_metas().items() if not meta.of_incident and not missing_needs(capture, meta.needs)
    ]
    return {name: asked(name, capture, {}) for name in capable}


def test_no_rule_does_much_of_all_work_on_a_healthy_host(work_by_rule: dict[str, Meter]) -> None:
    whole = sum(meter.total for meter in work_by_rule.values())
    assert len(work_by_rule) > 30
    shares = {rule: meter.total / whole for rule, meter in work_by_rule.items()}
    heavy = {
        rule: f"{share:.0%}: {work_by_rule[rule].counts.most_common(3)}"
        for rule, share in shares.items()
        if share > SHARE_MAX
    }
    assert set(heavy) == set(HEAVY), heavy


def test_the_meter_sees_a_rule_that_looks_at_all_series_for_each() -> None:
    case = next(case for case in firing_cases() if case.rule == "cpu-ready-high")

    def work(count: int) -> int:
        capture = copied(capture_of(case.document), count, "parts")
        metered = replace(capture, meter=Meter())
        for entity in metered.of("cpu_ready_pct")[0].entities:
            assert entity in list(metered.of("cpu_ready_pct")[0].entities)
        assert metered.meter is not None
        return metered.meter.total

    assert work(32) > GROWTH_MAX * work(16) + SLACK


def test_groups_that_are_added_or_replaced_are_found() -> None:
    capture = capture_of(next(case for case in firing_cases() if case.rule == "cpu-ready-high").document)
    (group,) = capture.of("cpu_ready_pct")
    capture.groups.append(group.relabelled(metric="cpu_costop_pct"))
    assert len(capture.of("cpu_costop_pct")) == 1
    capture.groups = [group.relabelled(metric="cpu_used_pct")]
    assert (capture.of("cpu_costop_pct"), len(capture.of("cpu_used_pct"))) == ([], 1)
