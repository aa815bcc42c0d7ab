"""Replicas against erasure codes.

Answers:
    What each protection scheme costs in capacity, network and small writes, how long a rebuild takes, which failures
    it survives, how long until data is lost on average, and how fast n parallel backups can be at most.

Method:
    n copies store n times the data, survive n - 1 losses and turn a write into n. A code of k data and m parity chunks
    stores (k + m) / k times the data and survives m losses; a full stripe writes (k + m) / k times its bytes; a write
    smaller than a stripe reads 1 + m chunks and writes 1 + m (read, modify, write). A rebuild copies what a node or
    device held; with a code it reads k chunks for each it makes. It is as fast as the slower of the disks and the
    network of the nodes that remain, at the share of them that resync may take.
    Mean time to data loss: a Markov chain over how many of the nodes of a stripe have failed; failures at 1 / MTBF
    each, one rebuild at a time at the rate found; absorbed when more have failed than the scheme survives. Its linear
    equations are solved exactly. The cluster holds nodes / width independent sets, and loses data that many times as
    soon. From an inventory: what its machines store, when the data is not given.

Assumptions:
    Failures are independent and exponential: shared causes (power, firmware, people) are what loses data in practice,
    so the times compare schemes and promise nothing. Placement uses all nodes evenly. Chunks of a stripe lie on
    different nodes.

Bends:
    A scheme as wide as the cluster: after a node's loss no place is left to rebuild to.
    Codes under small random writes: each costs 2 (1 + m) operations.

Sources:
    Trivedi, "Probability and statistics with reliability, queuing, and computer science applications", section 8.4, for
    absorption times of Markov chains. Gibson, "Redundant disk arrays" (1992), for mean times to data loss.
    vSAN documentation, RAID-5/6 (erasure coding): capacity 1.33 and 1.5 times, nodes needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, cast

import numpy as np
from pydantic import Field, field_validator

from leadline.core.contracts.planner import (
    Bend,
    Figure,
    Infeasible,
    Plan,
    PlanContext,
    PlanInput,
    PlannerMeta,
    Sheet,
    Snippet,
)
from leadline.core.model.capture import Capture
from leadline.core.model.units import several, share_text
from leadline.estate.derived.recorded_loads import RecordedInput, filled
from leadline.estate.knowledge.stored import stored_gib

HOURS_PER_YEAR = 8766.0
TRIVEDI = "Trivedi, section 8.4"
MOVED = {"disks": "stored", "network": "sent"}
_SCHEME = re.compile(r"(?P<copies>[1-6])x|(?P<data>[1-9]\d?)\+(?P<parity>[1-4])")
Positive = Annotated[float, Field(gt=0)]

META = PlannerMeta(
    about="Copies against erasure codes: capacity, network, small writes, rebuild, survival, time to data loss.",
    example={"schemes": ["3x", "3+2"], "nodes": 6, "data_tib": 20.0, "survives": 2},
    grows=(("data_tib", "raw capacity"), ("survives", "survived failures")),
    reads="VMs with sizes of their disks or datastores",
)


class Protect(PlanInput):
    """A cluster, what it holds, and the schemes to compare."""

    schemes: Annotated[
        tuple[str, ...], Field(min_length=1, description="Schemes to compare: copies (3x) and codes (3+2).")
    ] = ("2x", "3x", "3+1", "4+2", "3+2")
    nodes: Annotated[int, Field(ge=1, le=10_000, description="Storage nodes.")] = 6
    survives: Annotated[int, Field(ge=0, le=4, description="Failures of nodes that must be survived.")] = 1
    data_tib: Annotated[Positive, Field(description="Data before protection, TiB.")] = 20.0
    disks_per_node: Annotated[int, Field(ge=1, le=1000, description="Disks of a node.")] = 8
    disk_mib_per_s: Annotated[Positive, Field(description="What a disk reads or writes in sequence, MiB/s.")] = 200.0
    network_gbit_per_s: Annotated[Positive, Field(description="A node's network, each way, Gbit/s.")] = 10.0
    resync_share: Annotated[
        float, Field(gt=0, le=1, description="Share of disks and network that a rebuild may take.")
    ] = 0.2
    node_mtbf_years: Annotated[Positive, Field(description="Mean time between losses of a node's data, years.")] = 5.0
    backup_mib_per_s: Annotated[
        Positive | None, Field(description="What one VM's backup can write at most, MiB/s; unset, no bound.")
    ] = None
    backup_vms: Annotated[int, Field(ge=1, le=100_000, description="Backups that run at once.")] = 15
    small_write_pct: Annotated[
        float, Field(ge=0, le=100, description="Share of writes that are smaller than a stripe, percent.")
    ] = 50.0

    @field_validator("schemes")
    @classmethod
    def _known(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for text in given:
            if _SCHEME.fullmatch(text) is None:
                message = f"{text} is no scheme; copies are written 3x, codes 4+2"
                raise ValueError(message)
        return given


MODEL = Protect


@dataclass(frozen=True, slots=True)
class ChunkScheme:
    """``data`` chunks and ``parity`` more; copies are one chunk and its copies."""

    name: str
    data: int
    parity: int

    @classmethod
    def parse(cls, text: str) -> ChunkScheme:
        """A scheme of ``3x`` or ``4+2``.

        >>> ChunkScheme.parse("3x").factor, round(ChunkScheme.parse("3+2").factor, 3)
        (3.0, 1.667)
        """
        match = _SCHEME.fullmatch(text)
        if match is None:
            raise ValueError(text)
        if match["copies"]:
            return cls(text, 1, int(match["copies"]) - 1)
        return cls(text, int(match["data"]), int(match["parity"]))

    @property
    def width(self) -> int:
        """Nodes that hold a part of each stripe."""
        return self.data + self.parity

    @property
    def factor(self) -> float:
        """Bytes stored for each byte of data."""
        return self.width / self.data

    @property
    def small_write_operations(self) -> int:
        """Disk operations of a write smaller than a stripe: copies write, codes read, modify and write."""
        return self.width if self.data == 1 else 2 * (1 + self.parity)

    @property
    def rebuild_reads(self) -> int:
        """Chunks read for each that is made anew."""
        return self.data


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return all schemes compared, and the one that stores least of those that survive the failures asked for."""
    inputs, evidence = _known(cast("Protect", inputs), context.capture)  # read with MODEL
    schemes = [ChunkScheme.parse(text) for text in inputs.schemes]
    fit = [scheme for scheme in schemes if scheme.width <= inputs.nodes and scheme.parity >= inputs.survives]
    if not fit:
        return Plan(
            headline=f"No scheme of {', '.join(inputs.schemes)} survives {inputs.survives} failures on "
            f"{inputs.nodes} nodes.",
            sheets=(_sheet(inputs, schemes), _backup_sheet(inputs, schemes)),
            evidence=evidence,
            infeasible=_infeasible(inputs, schemes),
        )
    best = min(fit, key=lambda scheme: (scheme.factor, scheme.small_write_operations))
    hours = rebuild_hours(inputs, best)
    lost = loss_years(inputs, best)
    figures = (
        Figure("scheme", best.name, "", f"least raw capacity of {', '.join(scheme.name for scheme in fit)}"),
        Figure("raw capacity", inputs.data_tib * best.factor, "TiB", f"{inputs.data_tib:g} TiB x {best.factor:.4g}"),
        Figure("capacity factor", round(best.factor, 4), "", f"{best.width} / {best.data}"),
        Figure("survived failures", best.parity, "nodes"),
        Figure("nodes needed", best.width, "nodes", "one for each chunk; one more to rebuild to"),
        Figure("rebuild of a node", round(hours, 2), "h", _rebuild_arithmetic(inputs, best)),
        Figure("mean time to data loss", float(f"{lost:.3g}"), "years", _loss_arithmetic(inputs, best), TRIVEDI),
        *_backup_figures(inputs, best),
    )
    return Plan(
        headline=f"{best.name}: {best.factor:.3g} times the data ({inputs.data_tib * best.factor:,.3g} TiB raw), "
        f"survives {several(best.parity, 'node')}, rebuilds a node in {hours:,.3g} h.",
        figures=figures,
        sheets=(_sheet(inputs, schemes), _backup_sheet(inputs, schemes)),
        assumptions=(
            "Failures are independent: shared causes lose data sooner than any of these times says.",
            f"A rebuild gets {share_text(inputs.resync_share)} of disks and network.",
        ),
        bends=tuple(_bends(inputs, best)),
        snippets=_snippets(best),
        evidence=evidence,
    )


def _known(inputs: Protect, capture: Capture | None) -> tuple[Protect, tuple[str, ...]]:
    """The inputs with the data of an inventory's machines, and the evidence."""
    stored = None if capture is None else stored_gib(capture.inventory)
    if stored is None or stored[0] <= 0:
        return inputs, ()
    return filled(inputs, [RecordedInput("data_tib", stored[0] / 1024.0, stored[1])])


def node_bytes(inputs: Protect, scheme: ChunkScheme) -> float:
    """Return the data stored on one node, MiB."""
    return inputs.data_tib * 1024.0**2 * scheme.factor / inputs.nodes


def rebuild_hours(inputs: Protect, scheme: ChunkScheme) -> float:
    """Return the hours to rebuild the chunks of a lost node on the other nodes."""
    left = max(inputs.nodes - 1, 1)
    disks = left * inputs.disks_per_node * inputs.disk_mib_per_s
    network = left * inputs.network_gbit_per_s * 1e9 / 8 / 1024**2
    lost = node_bytes(inputs, scheme)
    # A disk reads or writes; a network goes both ways at once, and every chunk read crosses it.
    seconds = max(lost * (scheme.rebuild_reads + 1) / disks, lost * scheme.rebuild_reads / network)
    return seconds / inputs.resync_share / 3600.0


def loss_years(inputs: Protect, scheme: ChunkScheme) -> float:
    """Mean years until more nodes have failed than the scheme survives, over all sets of nodes."""
    failure = 1.0 / (inputs.node_mtbf_years * HOURS_PER_YEAR)
    repair = 1.0 / rebuild_hours(inputs, scheme)
    states = scheme.parity + 1
    rates = np.zeros((states, states))
    for failed in range(states):
        down = (scheme.width - failed) * failure
        rates[failed, failed] += down
        if failed + 1 < states:
            rates[failed, failed + 1] -= down
        if failed:
            rates[failed, failed] += repair
            rates[failed, failed - 1] -= repair
    hours = float(np.linalg.solve(rates, np.ones(states))[0])
    return hours / HOURS_PER_YEAR / max(inputs.nodes / scheme.width, 1.0)


def bounds_mib_per_s(inputs: Protect, scheme: ChunkScheme) -> dict[str, float]:
    """Return the highest rate of all backups together that disks take, and that the network takes, MiB/s."""
    disks = inputs.nodes * inputs.disks_per_node * inputs.disk_mib_per_s / scheme.factor
    links = inputs.nodes * inputs.network_gbit_per_s * 1e9 / 8 / 1024**2
    return {"disks": disks, "network": links / sent(scheme) if sent(scheme) > 0 else float("inf")}


def _backup_figures(inputs: Protect, scheme: ChunkScheme) -> list[Figure]:
    """Return the rate at which all backups together write, with the bottleneck, and the rate of each."""
    bounds = bounds_mib_per_s(inputs, scheme)
    by = min(bounds, key=bounds.__getitem__)
    taken = bounds[by]
    factor = scheme.factor if by == "disks" else sent(scheme)
    arithmetic = f"bound by the {by}: {taken * factor:,.0f} / {factor:.3g} {MOVED[by]}"
    vms, vm_mib_per_s = inputs.backup_vms, inputs.backup_mib_per_s
    if vm_mib_per_s is not None and vms * vm_mib_per_s < taken:
        arithmetic = f"bound by the VMs: {vms} x {vm_mib_per_s:g}, where {scheme.name} takes {taken:,.0f}"
        taken = vms * vm_mib_per_s
    each = Figure("backup of each VM", round(taken / vms, 1), "MiB/s", f"{taken:,.0f} / {vms}")
    return [Figure("backup", round(taken), "MiB/s", arithmetic), each]


def sent(scheme: ChunkScheme) -> float:
    """Bytes sent for each byte of data: of each stripe one chunk stays on the node that writes."""
    return scheme.factor - 1.0 / scheme.data


def _loss_arithmetic(inputs: Protect, scheme: ChunkScheme) -> str:
    sets, rebuild_h = max(inputs.nodes / scheme.width, 1.0), rebuild_hours(inputs, scheme)
    return (
        f"Markov chain: {scheme.width} nodes fail 1 / {inputs.node_mtbf_years:g} years each, one rebuild at a time at "
        f"1 / {rebuild_h:.3g} h, lost at {scheme.parity + 1} down, {sets:.3g} sets; promises nothing"
    )


def _rebuild_arithmetic(inputs: Protect, scheme: ChunkScheme) -> str:
    return f"{node_bytes(inputs, scheme) / 1024**2:.3g} TiB lost, {scheme.rebuild_reads} read for each made anew"


def _sheet(inputs: Protect, schemes: list[ChunkScheme]) -> Sheet:
    rows = tuple(
        (
            scheme.name,
            round(scheme.factor, 3),
            scheme.parity,
            scheme.width,
            operations(inputs, scheme),
            round(sent(scheme), 3),
            round(rebuild_hours(inputs, scheme), 2),
            float(f"{loss_years(inputs, scheme):.2g}"),
        )
        for scheme in schemes
    )
    columns = ("scheme", "x data", "lost ok", "nodes", "ops", "x sent", "rebuild h", "loss years")
    return Sheet("Schemes: bytes stored and sent, operations of a write", columns, rows)


def _backup_sheet(inputs: Protect, schemes: list[ChunkScheme]) -> Sheet:
    rows = []
    for scheme in schemes:
        bounds = bounds_mib_per_s(inputs, scheme)
        shown = [round(value) if value != float("inf") else "none" for value in bounds.values()]
        rows.append((scheme.name, *shown, round(min(bounds.values())), min(bounds, key=bounds.__getitem__)))
    columns = ("scheme", "disks take", "network takes", "at most", "bound by")
    return Sheet("What each scheme takes of backups together, MiB/s", columns, tuple(rows))


def operations(inputs: Protect, scheme: ChunkScheme) -> float:
    """Disk operations of an average write."""
    small = inputs.small_write_pct / 100.0
    return round(small * scheme.small_write_operations + (1 - small) * scheme.factor, 2)


def _infeasible(inputs: Protect, schemes: list[ChunkScheme]) -> Infeasible:
    strong = [scheme for scheme in schemes if scheme.parity >= inputs.survives]
    if strong:
        nearest = min(strong, key=lambda scheme: scheme.width)
        return Infeasible(
            f"{inputs.nodes} nodes; a chunk of a stripe must lie on each of {nearest.width}", f"{nearest.width} nodes"
        )
    most = max(scheme.parity for scheme in schemes)
    return Infeasible(
        f"the schemes survive {most} failures at most",
        f"add {inputs.survives + 1}x or 4+{inputs.survives} to the schemes",
    )


def _bends(inputs: Protect, scheme: ChunkScheme) -> list[Bend]:
    bends = []
    if inputs.nodes == scheme.width:
        cost = f"{scheme.name} needs all {inputs.nodes} nodes: after a loss there is no place to rebuild to"
        bends.append(Bend("one node more than the scheme is wide", cost, "vSAN documentation, RAID-5/6"))
    if scheme.data > 1 and inputs.small_write_pct > 50:
        cost = f"{inputs.small_write_pct:g} % of writes cost {scheme.small_write_operations} operations each"
        bends.append(Bend("codes are for large or few writes", cost, "vSAN documentation, RAID-5/6"))
    return bends


def _snippets(scheme: ChunkScheme) -> tuple[Snippet, ...]:
    known = {(1, 1): (1, "RAID-1"), (1, 2): (2, "RAID-1"), (3, 1): (1, "RAID-5"), (4, 2): (2, "RAID-6")}
    if (scheme.data, scheme.parity) not in known:
        return ()
    failures, raid = known[(scheme.data, scheme.parity)]
    method = "RAID-1 (Mirroring) - Performance" if raid == "RAID-1" else "RAID-5/6 (Erasure Coding) - Capacity"
    rules = (
        f'New-SpbmRule -Capability (Get-SpbmCapability "VSAN.hostFailuresToTolerate") -Value {failures}',
        f'New-SpbmRule -Capability (Get-SpbmCapability "VSAN.replicaPreference") -Value "{method}"',
    )
    name = f"{raid}-FTT{failures}"
    rule_set = f"(New-SpbmRuleSet {', '.join(f'({rule})' for rule in rules)})"
    text = f"New-SpbmStoragePolicy -Name {name} -AnyOfRuleSets {rule_set}"
    return (Snippet("vSAN storage policy", "powercli", text),)
