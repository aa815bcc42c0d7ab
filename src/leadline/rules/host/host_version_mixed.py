"""Hosts of one cluster run different builds of the hypervisor.

Finds:
    Clusters whose hosts differ in build, or in version where builds are not known.

Why:
    A VM behaves differently after it moved, and nobody connects the two: another scheduler, another driver, another
    default. Problems come and go with DRS. vSAN has its own reasons to want equal builds.

Do:
    Bring all hosts of the cluster to one build with one image or baseline, and then keep it that way.

When it is wrong:
    During a rolling upgrade, for a few days.

Sources:
    Material on vSphere releases of vmgu.ru: performance grows with releases, keep them current. vCheck for vSphere:
    build numbers that differ within a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.versions import release
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.placement import hosts_by_cluster
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="HST109",
    layer=Layer.HOST,
    severity=Severity.MEDIUM,
    needs=("host.cluster", "host.version|host.build"),
    clears=False,
)
_BUILD = re.compile(r"build[- ]?(\d+)", re.IGNORECASE)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    for cluster, hosts in hosts_by_cluster(context.inventory).items():
        kinds = {build for host in hosts if (build := _build(context, host)) is not None}
        if len(kinds) < 2:
            releases = {version for host in hosts if (version := release(context.inventory.get(host, "version")))}
            shortest = min((len(version) for version in releases), default=0)
            kinds = {".".join(str(part) for part in version[:shortest]) for version in releases}
        if len(kinds) > 1:
            summary = f"hosts of {cluster.label()} run {len(kinds)} builds: {', '.join(sorted(kinds))}"
            facts = [(host, setting) for host in hosts for setting in ("version", "build")]
            yield of_facts(context, cluster, summary, facts)


def _build(context: RuleContext, host: Entity) -> str | None:
    """Build number of a host, on its own or in the version it prints; None when not known."""
    build = context.inventory.get(host, "build")
    match = _BUILD.search(str(context.inventory.get(host, "version")))
    return str(build) if build is not None else match[1] if match else None
