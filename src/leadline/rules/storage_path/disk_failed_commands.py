"""Commands to a device fail.

Finds:
    Failed commands of a device in sample after sample, for at least 15 s in sum: any is a warning, more than ten per
    second is critical. Adapters are looked at where no device was recorded.

Why:
    A failed command came back with an error: from the array, the fabric or the adapter and its driver. The hypervisor
    sends it again where it can, which takes time; where it cannot, the guest gets the error and the database stops.

Do:
    Read the host's kernel log for the device: the sense codes say who refused and why. Then follow them: array
    controllers and their log, adapter driver and firmware against the compatibility list, cables and transceivers,
    state of the paths.

When it is wrong:
    Some commands fail by design: the hypervisor asks every few minutes for what a local disk or controller does not
    support, and a reservation held by another host is a failure too. That is why single samples do not count.

Sources:
    EsxtopDrill c_map.csv: any is a warning, more than 10 per second is critical.
    Judgement: 15 s, so that a rare inquiry that a device rejects is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.derived.disks import means_over
from leadline.rules._families.lost_commands import lost_commands

_RATES = ("disk_iops", "disk_reads_per_s", "disk_writes_per_s")

META = RuleMeta(
    code="STO130",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    causes=("disk-stalled",),
    needs=("disk_failed_per_s",),
    uses=_RATES,
    thresholds={
        "warn": Threshold(0.0, "per_s", "EsxtopDrill c_map.csv"),
        "crit": Threshold(10.0, "per_s", "EsxtopDrill c_map.csv"),
        "idle": Threshold(1.0, "per_s", "Judgement: fewer commands are no load"),
        "duration": Threshold(15.0, "s", "Judgement: a rare inquiry that a device rejects is left out"),
    },
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device and NFS volume."""
    rates = [group for metric in _RATES for group in context.of(metric)]
    for finding in lost_commands(context, "disk_failed_per_s", "failed commands"):
        done = means_over(rates, finding.windows, finding.entity)
        is_idle = finding.entity in done and done[finding.entity] < context.limit("idle")
        yield _of_idle(finding) if is_idle else finding


def _of_idle(finding: Finding) -> Finding:
    """Nobody waits for a device that does no I/O: what fails there are inquiries that it does not know."""
    evidence = Evidence("it did no I/O meanwhile: what failed are inquiries, for which nobody waits")
    return replace(finding, severity=Severity.LOW, evidence=(*finding.evidence, evidence))
