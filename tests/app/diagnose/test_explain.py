"""The join of findings with their causes looks only at related ones, and finds what looking at all would find."""

from __future__ import annotations

import random

from leadline.app.diagnose.causes import joined
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.finding import Finding, Window
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

RULES = ("mem-swap-rate-nonzero", "cpu-swpwt-high", "mem-swapped-nonzero", "vm-iops-limit-hit", "disk-gavg-high")
HOSTS = [Entity(EntityKind.HOST, name) for name in ("esx01", "esx02")]
VMS = [Entity(EntityKind.VM, f"vm{i}", HOSTS[i % 2]) for i in range(6)]
PARTS = [Entity(EntityKind.VIRTUAL_DISK, "scsi0:0", vm) for vm in VMS] + [
    Entity(EntityKind.DEVICE, "naa.1", HOSTS[0]),
    Entity(EntityKind.BLOCK_DEVICE, "sda", Entity(EntityKind.GUEST, "vm1")),
]


def inventory() -> Inventory:
    known = Inventory()
    for entity in (*HOSTS, *VMS, *PARTS):
        known.add(entity, "test")
    return known


def drawn(seed: int) -> list[Finding]:
    draw = random.Random(seed)
    findings = []
    for _ in range(40):
        start = draw.randrange(5)
        entity, rule = draw.choice([*HOSTS, *VMS, *PARTS]), draw.choice(RULES)
        windows = (Window(start, start + draw.randrange(1, 4)),) if draw.random() < 0.8 else ()
        severity = draw.choice(list(Severity))
        findings.append(Finding(rule, "X", Layer.VM, entity, severity, "", (), "", windows))
    return findings


def test_every_related_finding_of_the_same_time_is_a_candidate() -> None:
    metas, known = rule_metas(), inventory()
    explained = 0
    for seed in range(20):
        findings = drawn(seed)
        marked = joined(findings, Capture(inventory=known))
        for finding, mark in zip(findings, marked, strict=True):
            could = any(
                finding.rule in metas[other.rule].explains
                and other.severity >= finding.severity.lowered()
                and known.related(finding.entity, other.entity)
                and (
                    not finding.windows
                    or not other.windows
                    or any(a.overlaps(b) for a in finding.windows for b in other.windows)
                )
                for other in findings
            )
            assert mark.is_symptom == could
            explained += could
    assert explained > 50


def test_children_of_a_kind_are_known_after_something_was_added() -> None:
    known = inventory()
    assert known.children(HOSTS[1], EntityKind.DEVICE) == []
    added = known.add(Entity(EntityKind.DEVICE, "naa.2", HOSTS[1]), "test")
    assert known.children(HOSTS[1], EntityKind.DEVICE) == [added]
