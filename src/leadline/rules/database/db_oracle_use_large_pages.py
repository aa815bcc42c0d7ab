"""Oracle may start without huge pages for its SGA.

Finds:
    use_large_pages of a database on Linux other than ONLY (or AUTO_ONLY, which reserves the pages itself).

Why:
    With TRUE the instance quietly takes small pages when too few huge ones are free, after a change of SGA size or a
    reboot. The page tables of some hundred server processes then take gigabytes, and every access to the cache walks
    two tables under a hypervisor.

Do:
    Set vm.nr_hugepages to the SGA of all instances on the machine, use_large_pages = ONLY, memlock for the owner above
    that, switch transparent huge pages off, and restart: an instance that cannot have its pages now says so.

When it is wrong:
    An SGA of a few GiB with few processes loses little. On Windows large pages are configured elsewhere; it is not
    looked at where the guest is known to be Windows.

Sources:
    Oracle Databases on VMware Best Practices Guide.
    Judgement: that TRUE with enough pages is as good is not taken into account.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.database_settings import by_parameter, machine_fact, shown

META = RuleMeta(
    code="DBS132",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.parameters",),
    clears=False,
    judgement=True,
)

_GOOD = frozenset({"only", "auto_only"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per Oracle database that is not known to run on Windows."""

    def judge(database: Entity, value: str | float) -> tuple[str, Severity] | None:
        system = machine_fact(context.inventory, database, "guest_os", "guest_os")
        windows = system is not None and "windows" in str(system.value).casefold()
        if windows or str(value).casefold() in _GOOD:
            return None
        return f"{database.label()} may start without huge pages: use_large_pages {shown(value)}", META.severity

    yield from by_parameter(context, "oracle", "use_large_pages", judge)
