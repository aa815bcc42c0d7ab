"""vSAN encrypts on processors that cannot do it in hardware.

Finds:
    Hosts whose AES instructions are not usable in clusters with vSAN encryption.

Why:
    With AES-NI encryption costs a little CPU and no I/O. Without it every block is encrypted by ordinary instructions,
    and the CPU becomes the limit of the storage.

Do:
    Switch AES-NI on in the firmware setup. If the processor has none, replace the host or leave it out of the cluster.

When it is wrong:
    A VM-level view of CPU features may be masked by EVC; what counts is the host.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: encryption loads the CPU, AES-NI is recommended.
    vSAN Design and Sizing guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.vsan import cluster_of
from leadline.estate.language.templates import flag_is

META = RuleMeta(
    code="DST135",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    needs=("cluster.vsan_encryption", "host.aes_ni"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""

    def encrypts(host: Entity) -> bool:
        cluster = cluster_of(context.inventory, host)
        return cluster is not None and bool(context.inventory.get(cluster, "vsan_encryption"))

    yield from flag_is(
        context, (EntityKind.HOST, "aes_ni"), False, "{name} encrypts vSAN without AES-NI", keep=encrypts
    )
