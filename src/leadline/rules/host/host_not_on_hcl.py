"""A host is not on the compatibility list of its hypervisor.

Finds:
    Hosts of which the inventory says that the server, its processor or one of its adapters is not listed for the
    version they run.

Why:
    What is not listed was not tested: drivers without multiqueue, resets under load, cards that lose interrupts. The
    vendor may decline to look at any problem on it.

Do:
    Look server, processor, network card and storage adapter up in the compatibility guide with exact model and
    firmware. Replace what is missing, or run the version it is listed for.

When it is wrong:
    The list is not asked from here: the flag is as good as whoever set it. Older servers drop off the list with each
    version and often go on working.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): hardware from the
    compatibility list, server-class components only. VMware Compatibility Guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import flag_is

META = RuleMeta(
    code="HST106",
    layer=Layer.HOST,
    severity=Severity.HIGH,
    needs=("host.hcl_listed",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    says = "{name} is not on the compatibility list of its hypervisor"
    yield from flag_is(context, (EntityKind.HOST, "hcl_listed"), bad=False, says=says)
