"""Interactive users and long jobs share graphics processors that are scheduled by best effort.

Finds:
    Hosts with the best-effort vGPU scheduler whose running VMs include both interactive ones and ones with long
    compute jobs. What a VM does is taken from the inventory, else guessed from its profile (C: compute; B, A:
    interactive). A Q profile serves workstations and training alike: it is not guessed from, the inventory must say.

Why:
    Best effort gives the processor to whoever asks, round robin. A long kernel of one VM then holds up the short
    frames of the others. Jobs that overlapped a quarter of their time were measured to take 16 to 23 % longer.

Do:
    Switch the host to equal share, or to fixed share where profiles differ
    (`esxcli system module parameters set -m nvidia -p "NVreg_RegistryDwords=RmPVMRL=0x01"`, then reboot), or keep
    jobs and users on different cards.

When it is wrong:
    VMs whose cards differ do not meet; which VM is on which card is not known here. Equal share gives away what idle
    VMs leave unused.

Sources:
    vmgu.ru, sharing NVIDIA GPUs on vSphere: schedulers, cost of overlap. NVIDIA vGPU documentation, RmPVMRL: 0x00 best
    effort (the default), 0x01 equal share, 0x11 fixed share. The article trains models on P40-1q profiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.placement import running_vms
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="HST170",
    layer=Layer.HOST,
    severity=Severity.LOW,
    catalogue=("gpu-vgpu-overlap-penalty",),
    needs=("host.vgpu_scheduler", "vm.vgpu_profile|vm.gpu_load"),
    clears=False,
)

_BEST_EFFORT = frozenset({"best-effort", "best effort", "0x00", "0x0", "0"})
_SERIES = re.compile(r"-\d+([abc])$", re.IGNORECASE)  # grid_p40-1b, nvidia_a40-8c; Q is used for both
_COMPUTE, _INTERACTIVE = "compute", "interactive"


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    inventory = context.inventory
    running = running_vms(inventory)
    for host in inventory.of_kind(EntityKind.HOST):
        if str(inventory.get(host, "vgpu_scheduler")).strip().casefold() not in _BEST_EFFORT:
            continue
        loads = {vm: load for vm in running.get(host, []) if (load := _load(context, vm)) is not None}
        jobs = [vm for vm, (load, _) in loads.items() if load == _COMPUTE]
        users = [vm for vm, (load, _) in loads.items() if load == _INTERACTIVE]
        if not jobs or not users:
            continue
        summary = (
            f"{len(jobs)} VM{'s' if len(jobs) > 1 else ''} with long jobs and {len(users)} interactive "
            f"one{'s' if len(users) > 1 else ''} share the "
            f"GPUs of {host.label()} by best effort"
        )
        facts = [(host, "vgpu_scheduler")]
        facts += [(vm, name) for vm in (jobs[0], users[0]) for name in ("gpu_load", "vgpu_profile")]
        guesses = (f"what {vm.label()} does on the GPU" for vm, (_, guessed) in loads.items() if guessed)
        finding = of_facts(context, host, summary, facts)
        yield replace(finding, guessed=(*finding.guessed, *guesses))


def _load(context: RuleContext, vm: Entity) -> tuple[str, bool] | None:
    """What a VM does on its GPU, and whether that is guessed from its profile; None when neither is known."""
    given = context.inventory.get(vm, "gpu_load")
    if given is not None:
        return str(given).strip().casefold(), False
    series = _SERIES.search(str(context.inventory.get(vm, "vgpu_profile") or "").strip())
    if series is None:
        return None
    return _COMPUTE if series[1].casefold() == "c" else _INTERACTIVE, True
