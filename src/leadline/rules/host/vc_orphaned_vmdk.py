"""Disk files lie on a datastore that belong to no VM.

Finds:
    Datastores with disk files which no VM of the inventory refers to.

Why:
    They take space, which on thin-provisioned storage is needed by others, and on vSAN they take part in every
    resynchronisation. Often they are what a failed backup or migration left behind.

Do:
    Check age and content of each file, and that no VM of another vCenter or a template uses it; then remove it. Where a
    backup made it, see why it did not clean up.

When it is wrong:
    Files of VMs that are registered elsewhere, content libraries, first-class disks and replicas look the same. Never
    delete from a list alone.

Sources:
    RVTools, vHealth (zombie files). vCheck for vSphere.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import EVIDENCE_COUNT_MAX

META = RuleMeta(
    code="HST176",
    layer=Layer.HOST,
    severity=Severity.LOW,
    needs=("datastore.orphaned_files",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per datastore."""
    for datastore in context.inventory.of_kind(EntityKind.DATASTORE):
        fact = context.inventory.fact(datastore, "orphaned_files")
        files = [] if fact is None else [str(name) for name in fact.value]
        if fact is None or not files:
            continue
        evidence = [Evidence(name, entity=datastore, source=fact.source) for name in files[:EVIDENCE_COUNT_MAX]]
        if len(files) > EVIDENCE_COUNT_MAX:
            evidence.append(Evidence(f"and {len(files) - EVIDENCE_COUNT_MAX} more like these"))
        subject = f"{len(files)} disk files of no VM lie" if len(files) > 1 else "A disk file of no VM lies"
        yield context.finding(datastore, f"{subject} on {datastore.label()}", evidence)
