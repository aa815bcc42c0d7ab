"""A database may run out of open files.

Finds:
    Databases whose process may open fewer than 65535 files (informative), or fewer than 8192 (low).

Why:
    Each table, index, partition and connection takes file descriptors. At the limit the engine closes and reopens files
    all the time, or refuses connections.

Do:
    Set nofile to 65535 or more for the engine's user in /etc/security/limits.d, or LimitNOFILE in its systemd unit, and
    restart the engine.

When it is wrong:
    A database of few files never comes near the limit. PostgreSQL keeps to max_files_per_process, 1000 by default.

Sources:
    yaspe documentation, sp_check: 8192 at least, 65535 ideally. PostgreSQL documentation, 18.4.3 Resource Limits.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST139",
    layer=Layer.GUEST,
    severity=Severity.LOW,
    needs=("database.open_files_limit_count",),
    thresholds={
        "warn": Threshold(65_535.0, "count", "yaspe documentation, sp_check"),
        "crit": Threshold(8_192.0, "count", "yaspe documentation, sp_check"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database."""

    def judge(database: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if fact.value >= context.limit("warn"):
            return None
        severity = META.severity if fact.value < context.limit("crit") else META.severity.lowered()
        return f"{database.label()} may open {fact.value} files (at least {context.limit('warn'):g})", severity

    yield from by_setting(context, EntityKind.DATABASE, "open_files_limit_count", judge)
