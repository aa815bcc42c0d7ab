"""A host writes to a USB stick or an SD card.

Finds:
    Hosts whose scratch location lies on USB or SD (medium); hosts that only boot from it, or whose scratch location is
    not known (low).

Why:
    Sticks and cards are made for few writes. Logs, state and traces of the hypervisor wear them out within months:
    then the host hangs in storage calls, loses its configuration at the next start, and everything that reads its
    state, vMotion included, waits.

Do:
    Move scratch and log to a local SSD or a datastore (ScratchConfig.ConfiguredScratchLocation), and reinstall on a
    mirrored pair of M.2 disks. vSphere 7.0 and later want a persistent disk for their system storage.

When it is wrong:
    Industrial cards made for writing last longer. A RAM disk does not wear out, but its logs are gone at a restart.

Sources:
    RVTools, vHealth sheet.
    Judgement: known of the field, not re-read at its source; low while only the boot image lies there.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="HST114",
    layer=Layer.HOST,
    severity=Severity.MEDIUM,
    needs=("host.scratch_medium|host.boot_medium",),
    clears=False,
    judgement=True,
)
_WEARS_OUT = frozenset({"usb", "sd"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    for host in context.inventory.of_kind(EntityKind.HOST):
        scratch, boot = (
            str(context.inventory.get(host, name) or "").casefold() for name in ("scratch_medium", "boot_medium")
        )
        facts = [(host, "scratch_medium"), (host, "boot_medium")]
        if scratch in _WEARS_OUT:
            yield of_facts(context, host, f"{host.label()} writes its scratch data to {scratch.upper()}", facts)
        elif boot in _WEARS_OUT:
            summary = f"{host.label()} boots from {boot.upper()}"
            yield of_facts(context, host, summary, facts, severity=Severity.LOW)
