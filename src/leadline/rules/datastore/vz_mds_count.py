"""Virtuozzo Storage has too few metadata servers.

Finds:
    Virtuozzo Storage clusters with fewer than 3 metadata servers.

Why:
    The metadata servers decide by majority. With three one may fail, with five two; with fewer than three the first
    failure stops all I/O of the cluster.

Do:
    Run at least three on different nodes, five where two nodes may fail at once, with their journals on SSD.

When it is wrong:
    A cluster of one or two nodes cannot have three: it does not survive the loss of a node either way.

Sources:
    Virtuozzo Storage performance tests: three on six nodes. Virtuozzo Hybrid Infrastructure general requirements: three
    to five. The measured cluster of six nodes had three: three are enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="DST144",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    needs=("cluster.vstorage_mds_count",),
    thresholds={
        "warn": Threshold(3.0, "count", "Virtuozzo Storage performance tests"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    noun = "number of metadata servers"
    yield from setting_over(context, SettingLimit(EntityKind.CLUSTER, "vstorage_mds_count", noun, below=True))
