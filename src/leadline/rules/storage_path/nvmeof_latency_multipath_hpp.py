"""An NVMe device is claimed by the multipathing plug-in made for SCSI.

Finds:
    Devices reached over NVMe whose plug-in is NMP and not the high-performance plug-in (HPP).

Why:
    NMP translates between SCSI and NVMe and takes locks that a device with many queues does not need: more processor
    time per command and lower IOPS from the same device.

Do:
    Let HPP claim it, which is the default for NVMe on current releases: remove the claim rule that sends it to NMP, and
    choose HPP's latency-based or load-based selection where the array has several paths. It takes a reboot or a
    device without use.

When it is wrong:
    Some makers ship a plug-in or claim rules of their own for NMP and support nothing else. On 6.7 and before, NMP was
    the default.

Sources:
    Performance Best Practices for VMware vSphere 7 and 8: HPP for NVMe devices.
    Judgement: the gain is not quantified there; not re-read.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="STO147",
    layer=Layer.STORAGE_PATH,
    severity=Severity.LOW,
    needs=("device.path_plugin", "device.transport"),
    clears=False,  # the right plug-in says nothing about latency
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""

    def judge(device: Entity, fact: Fact) -> tuple[str, Severity] | None:
        transport = str(context.inventory.get(device, "transport") or "").casefold()
        if not transport.startswith("nvme") or str(fact.value).casefold() != "nmp":
            return None
        return f"{device.label()} is an {transport} device claimed by NMP, not by HPP", META.severity

    yield from by_setting(context, EntityKind.DEVICE, "path_plugin", judge, ("transport",))
