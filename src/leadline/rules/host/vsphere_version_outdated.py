"""A host runs a release of vSphere that is out of support.

Finds:
    Hosts with ESXi older than 8.0.

Why:
    Later releases are faster at what databases do: a scheduler that keeps cores busy in spite of side-channel
    protection (6.7 Update 2), quicker deduplication of vSAN (6.7 Update 3), virtual NUMA together with CPU hot add
    (8.0). And nobody fixes what is found in the old one any more.

Do:
    Plan the upgrade: check the hardware on the compatibility list, vCenter first, then hosts, then Tools and virtual
    hardware of the VMs. Measure before and after.

When it is wrong:
    Hardware that is not supported by newer releases. A host with another hypervisor is not judged.

Sources:
    Material on vSphere releases of vmgu.ru: keep reasonably current. Performance Best Practices for VMware vSphere.
    Broadcom product lifecycle: general support of 6.5 and 6.7 ended on 15 October 2022, of 7.0 on 2 October 2025.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.versions import release
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="HST110",
    layer=Layer.HOST,
    severity=Severity.MEDIUM,
    needs=("host.version",),
    thresholds={"oldest": Threshold(8.0, "count", "Broadcom product lifecycle: 7.0 is out of general support")},
    clears=False,
)
_PLAIN = re.compile(r"\d+\.\d+(?:\.\d+)*")
_RELEASES = frozenset({(4, 0), (4, 1), (5, 0), (5, 1), (5, 5), (6, 0), (6, 5), (6, 7), (7, 0), (8, 0), (9, 0)})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""

    def judge(host: Entity, fact: Fact) -> tuple[str, Severity] | None:
        text = str(fact.value).strip()
        version = release(text)
        named = "esx" in text.casefold()
        if not named and (_PLAIN.fullmatch(text) is None or version[:2] not in _RELEASES):
            return None  # another hypervisor, or a kernel
        if not version or version[0] >= context.limit("oldest"):
            return None
        return f"{host.label()} runs {text if named else f'ESXi {text}'}, out of support", META.severity

    yield from by_setting(context, EntityKind.HOST, "version", judge)
