"""Where disks go on datastores, what moves before, and what to move for balance.

Answers:
    Where new VMs, clones and disks go, where VMs go that leave a datastore or all of it for maintenance, which moves
    must come first, and which moves relieve full or slow datastores; with the commands in order.

Method:
    Largest first, each to the datastore that is then least full: the larger of space over its limit and latency over
    its threshold; the fullest target is relieved by exchange. Where none has the space, the moves of up to
    ``moves_max`` VMs or disks that copy the fewest GiB. Latency is intercept + slope x outstanding operations. A move
    for balance is worth it when outstanding x latency falls, over the horizon, by more than the copy delays others.

Assumptions:
    Sizes count as provisioned. Workloads stay as they were at the 90th percentile. What is not measured loads nothing.
    A prerequisite move needs no move of its own; the search looks at the 120 datastores that need least and at 100
    sets of moves on each, so that on large clusters cheaper ones may be missed. Every host reaches every datastore but
    those that one host alone mounts.

Bends:
    Targets beyond the latency threshold where all with the space are; datastores that stay beyond a threshold.

Sources:
    F. Denneman, Storage DRS initial placement and datastore cluster defragmentation (2012): moves that come first.
    VMware vSphere documentation, Storage DRS: thresholds of 80 % and 15 ms, VMDK affinity and anti-affinity.
    Gulati et al., BASIL (FAST 2010) and Pesto (SoCC 2011): latency linear in outstanding I/O, cost against benefit.
"""

from __future__ import annotations

from typing import Annotated, cast

import numpy as np
from pydantic import Field

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
from leadline.core.model.errors import UsageError
from leadline.planners._place.balance import Balanced, Costs, balanced
from leadline.planners._place.cluster import DiskSet, StoreState
from leadline.planners._place.initial import DiskMove, Placed, alternatives, place_all, worst_load
from leadline.planners._place.inputs import (
    Datastore,
    NotNegative,
    PlaceDisk,
    PlaceRequest,
    Positive,
    from_capture,
    latency_threshold,
)
from leadline.planners._place.optimum import optimum

DENNEMAN, SDRS, PESTO = "Denneman 2012", "vSphere documentation, Storage DRS", "Gulati et al., Pesto 2011"
ALTERNATIVES_MAX = 16  # datastores; the table is for people
# Judgement: which VMs lie on the datastores is not published; their sums are, and need one, two and three moves.
_SIZES_GIB = {"datastore1": (100, 200, 250), "datastore2": (75, 75, 450), "datastore3": (70, 70, 60, 450)}

META = PlannerMeta(
    about="Where disks go on datastores, which moves must come first, and what to move for balance.",
    example={
        "datastores": [{"name": name, "size_gib": 1000.0} for name in _SIZES_GIB],
        "disks": [
            {"vm": f"vm{store}{row}", "datastore": name, "size_gib": float(size)}
            for store, (name, sizes) in enumerate(_SIZES_GIB.items(), start=1)
            for row, size in enumerate(sizes, start=1)
        ],
        "requests": [{"kind": "create", "vm": "new", "disks_gib": [350.0]}],
    },
    reads="datastores and virtual disks",
)


class PlaceInputs(PlanInput):
    """Datastores, what lies on them, what is asked for."""

    datastores: Annotated[
        tuple[Datastore, ...],
        Field(
            description="Datastores: name, size_gib, used_gib, intercept_ms and slope_ms or samples of (outstanding, "
            "ms), outstanding, is_target; empty: those of the inventory given."
        ),
    ] = ()
    disks: Annotated[
        tuple[PlaceDisk, ...], Field(description="Disks: vm, name, datastore, size_gib, outstanding (90th percentile).")
    ] = ()
    requests: Annotated[
        tuple[PlaceRequest, ...],
        Field(
            description="kind (create, clone, add-disk, relocate, maintenance), vm, origin, datastore, disks_gib, "
            "outstanding, keep_together."
        ),
    ] = ()
    anti_affinity: Annotated[
        tuple[tuple[str, ...], ...], Field(description="Sets of VMs of which no two share a datastore.")
    ] = ()
    split_vms: Annotated[tuple[str, ...], Field(description="VMs whose disks lie on a datastore each.")] = ()
    space_threshold_pct: Annotated[float, Field(gt=0, le=100, description="Space used at most, percent.")] = 80.0
    latency_threshold_ms: Annotated[Positive, Field(description="Latency at most, ms.")] = 15.0
    moves_max: Annotated[int, Field(ge=0, le=4, description="Moves that may come before one placement.")] = 3
    is_balanced: Annotated[bool, Field(description="Whether to look for moves for balance as well.")] = False
    balance_moves_max: Annotated[int, Field(ge=1, description="Moves for balance at most.")] = 10
    copy_mib_per_s: Annotated[Positive, Field(description="Rate at which a disk is copied, MiB/s.")] = 100.0
    copy_outstanding: Annotated[NotNegative, Field(description="Operations in flight of a copy.")] = 16.0
    horizon_h: Annotated[Positive, Field(description="Hours for which workloads stay as they were.")] = 16.0
    is_compared: Annotated[bool, Field(description="Whether to compare with the optimum, where it is found.")] = False


MODEL = PlaceInputs


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return the placements and moves in the order in which to run them."""
    inputs = cast("PlaceInputs", inputs)  # read with MODEL
    evidence: tuple[str, ...] = ()
    if not inputs.datastores and context.capture is not None:
        stores, disks, evidence = from_capture(context.capture)
        inputs = inputs.model_copy(update={"datastores": stores, "disks": inputs.disks or disks})
        known = latency_threshold(context.capture)
        if known is not None and "latency_threshold_ms" not in inputs.model_fields_set:
            inputs = inputs.model_copy(update={"latency_threshold_ms": known})
            evidence = (*evidence, f"latency threshold {known:g} ms: Storage DRS as the inventory has it")
    cluster = cluster_of(inputs)
    units = units_of(inputs, cluster)
    placed = place_all(cluster, units, inputs.moves_max)
    costs = Costs(inputs.copy_mib_per_s, inputs.copy_outstanding, inputs.horizon_h * 3600.0)
    more = balanced(placed.cluster, inputs.balance_moves_max, costs) if inputs.is_balanced else []
    steps = [*placed.steps, *(move.step for move in more)]
    return Plan(
        headline=_headline(cluster, placed, units, more),
        figures=tuple(_figures(inputs, cluster, placed, units, more)),
        sheets=_sheets(inputs, cluster, placed, more),
        assumptions=_assumptions(inputs),
        bends=tuple(_bends(cluster, placed)),
        snippets=(Snippet("Steps in order", "powercli", commands(cluster, steps)),) if steps else (),
        evidence=evidence,
        infeasible=_infeasible(inputs, placed),
    )


def cluster_of(inputs: PlaceInputs) -> StoreState:
    """Return the datastores and their disks before any move.

    Raises:
        UsageError: there is no datastore, two have one name, or a disk or request names one that is not there.
    """
    names = tuple(store.name for store in inputs.datastores)
    index = {name: row for row, name in enumerate(names)}
    if not names:
        raise _refused("datastores", "none", "datastores, or an inventory with datastores and virtual disks")
    if len(index) < len(names):
        raise _refused("datastores", "two of one name", "a name for each")
    requested = (one.datastore for one in inputs.requests if one.datastore)
    for named in (*(disk.datastore for disk in inputs.disks), *requested):
        if named not in index:
            raise _refused("datastore", f"{named}, which is not among datastores", "one of them")
    lines = np.array([store.line for store in inputs.datastores])
    size = np.array([store.size_gib for store in inputs.datastores])
    used_gib, busy = np.zeros(len(names)), np.zeros(len(names))
    at = [index[disk.datastore] for disk in inputs.disks]
    np.add.at(used_gib, at, [disk.size_gib for disk in inputs.disks])
    np.add.at(busy, at, [disk.outstanding or 0.0 for disk in inputs.disks])
    for row, known in enumerate(inputs.datastores):
        used_gib[row] = used_gib[row] if known.used_gib is None else known.used_gib
        busy[row] = busy[row] if known.outstanding is None else known.outstanding
    usable = np.array([store.is_target for store in inputs.datastores])
    usable[[index[one.datastore] for one in inputs.requests if one.kind == "maintenance"]] = False
    cluster = StoreState(
        names, size, size * inputs.space_threshold_pct / 100.0, used_gib, lines[:, 0], lines[:, 1],
        busy, inputs.latency_threshold_ms, usable,
        tuple(frozenset(rule) for rule in inputs.anti_affinity), frozenset(inputs.split_vms),
    )  # fmt: skip
    for disk, store in zip(inputs.disks, at, strict=True):
        busy_one = float("nan") if disk.outstanding is None else disk.outstanding
        cluster.record(disk.vm, disk.name, disk.size_gib, busy_one, store)
    return cluster


def _refused(where: str, actual: str, expected: str) -> UsageError:
    advice = "`leadline plan place --example` prints inputs with every key."
    return UsageError(f"plan: {where}", found=actual, expected=expected, advice=advice)


def units_of(inputs: PlaceInputs, cluster: StoreState) -> list[DiskSet]:
    """Return the disks that requests ask to place, in sets that stay together.

    Raises:
        UsageError: a request names a VM that has no disks.
    """
    units: list[DiskSet] = []
    for one in inputs.requests:
        if one.kind == "maintenance":
            units += cluster.groups(cluster.names.index(one.datastore), "maintenance")
            continue
        known = sorted(cluster.of_vm.get(one.origin or one.vm, ()))
        if one.kind in {"clone", "relocate"} and not known:
            raise _refused(f"{one.kind} {one.origin or one.vm}", "a VM without disks", "a VM of disks")
        is_apart = not one.keep_together or one.vm in inputs.split_vms
        if one.kind == "relocate":
            leaving = [disk for disk in known if one.datastore in ("", cluster.names[cluster.at[disk]])]
            parts = [[disk] for disk in leaving] if is_apart else [leaving]
            units += [cluster.unit(one.vm, part, "relocate") for part in parts if part]
            continue
        sizes = one.disks_gib or tuple(cluster.sizes[disk] for disk in known)
        avoid: frozenset[int] = frozenset()
        if one.kind == "add-disk" and known and not is_apart:
            avoid = frozenset(range(len(cluster.names))) - {cluster.at[disk] for disk in known}
        rows = [[row] for row in range(len(sizes))] if is_apart else [list(range(len(sizes)))]
        load = float("nan") if one.outstanding is None else one.outstanding
        for part in rows:
            unit_sizes = tuple(sizes[row] for row in part)
            labels = tuple(f"new disk {row + 1}" for row in part)
            share = load * len(part) / len(sizes)
            is_whole, total = len(rows) == 1, sum(unit_sizes)
            unit = DiskSet(one.vm, labels, total, share, (), is_whole, one.kind, avoid, one.origin, unit_sizes)
            units.append(unit)
    return units


def _headline(cluster: StoreState, placed: Placed, units: list[DiskSet], more: list[Balanced]) -> str:
    before = [step for step in placed.steps if step.unit.kind == "prerequisite"]
    text = f"{placed.answer_count} of {len(units)} placed on {len(cluster.names):,} datastores"
    if len(units) == 1 and placed.answer_count == 1:
        text = f"{units[0].vm} goes to {cluster.names[placed.steps[-1].target]}"
    if before:
        copied = sum(step.copied_gib for step in before)
        text += f" after {len(before)} move{'s' * (len(before) > 1)} of {copied:,.0f} GiB"
    return text + (f"; {len(more)} moves for balance." if more else ".")


def _figures(
    inputs: PlaceInputs, cluster: StoreState, placed: Placed, units: list[DiskSet], more: list[Balanced]
) -> list[Figure]:
    before = [step for step in placed.steps if step.unit.kind == "prerequisite"]
    free = cluster.limit_gib - cluster.used_gib
    most = int(np.argmax(free))
    threshold = f"{inputs.space_threshold_pct:.0f} % of {cluster.size_gib[most]:,.0f}"
    figures = [
        Figure("placed", placed.answer_count, "count", f"{len(units)} asked for, {len(placed.failed)} without a place"),
        Figure(
            "most room before", round(float(free[most]), 1), "GiB",
            f"{threshold} less {cluster.used_gib[most]:,.0f} used, on {cluster.names[most]}", SDRS,
        ),
        Figure("moves before", len(before), "count", f"at most {inputs.moves_max} for each placement", DENNEMAN),
        Figure(
            "copied before", round(sum(step.copied_gib for step in before), 1), "GiB",
            " + ".join(f"{step.copied_gib:,.0f}" for step in before) or "nothing moves first",
        ),
        Figure(
            "fullest target", round(100 * worst_load(placed), 1), "pct",
            "the larger of space over its limit and latency over the threshold, of datastores that take something",
        ),
    ]  # fmt: skip
    after = placed.cluster.latency_ms()
    if np.isfinite(after).any():
        slow = int(np.nanargmax(after))
        arithmetic = f"{placed.cluster.base_ms[slow]:.2f} + {placed.cluster.slope_ms[slow]:.3f} x "
        arithmetic += f"{placed.cluster.outstanding[slow]:.1f} outstanding, on {cluster.names[slow]}"
        figures.append(Figure("highest latency after", round(float(after[slow]), 2), "ms", arithmetic, PESTO))
    if inputs.is_balanced:
        arithmetic = "; ".join(f"{move.step.unit.vm} for {move.why}" for move in more) or "no move is worth its cost"
        figures.append(Figure("moves for balance", len(more), "count", arithmetic, PESTO))
    if inputs.is_compared:
        figures.append(_gap(cluster, placed, units))
    return figures


def _gap(cluster: StoreState, placed: Placed, units: list[DiskSet]) -> Figure:
    if placed.cost[:2] != (0.0, 0.0) or not units:
        return Figure("above the optimum", "not measured", "", "only placements without moves are compared")
    best, how = optimum(cluster, units)
    if not np.isfinite(best):
        return Figure("above the optimum", "not measured", "", how)
    load = worst_load(placed)
    arithmetic = f"{load:.4f} / {best:.4f} of the fullest target; {how}"
    return Figure("above the optimum", round(100 * max(0.0, load / best - 1), 2), "pct", arithmetic)


def _sheets(inputs: PlaceInputs, cluster: StoreState, placed: Placed, more: list[Balanced]) -> tuple[Sheet, ...]:
    names = cluster.names
    steps = [*placed.steps, *(move.step for move in more)]
    rows = tuple(
        (row, step.unit.kind, f"{step.unit.vm}: {', '.join(step.unit.labels)}", names[step.source] if step.source >= 0
         else "new", names[step.target], round(step.unit.size_gib, 1))
        for row, step in enumerate(steps, start=1)
    )  # fmt: skip
    sheets = [Sheet("Steps in order", ("step", "kind", "what", "from", "to", "GiB"), rows)]
    touched = sorted({step.target for step in steps} | {step.source for step in steps if step.source >= 0})
    slow, late = cluster.latency_ms(), placed.cluster.latency_ms()
    used = tuple(
        (names[row],
         *(round(100 * float(one.used_gib[row] / one.size_gib[row]), 1) for one in (cluster, placed.cluster)),
         *("not measured" if np.isnan(ms[row]) else round(float(ms[row]), 2) for ms in (slow, late)))
        for row in touched
    )  # fmt: skip
    sheets.append(Sheet("Datastores", ("datastore", "used % before", "used % after", "ms before", "ms after"), used))
    if more:
        worth = tuple((move.step.unit.vm, move.why, *map(_worth, (move.benefit, move.cost))) for move in more)
        sheets.append(Sheet("Why move (operations x ms x s)", ("VM", "for", "benefit", "cost"), worth))
    news = [step.unit for step in placed.steps if step.unit.kind != "prerequisite"]
    if len(news) == 1 and len(steps) > 1 and not more and len(names) <= ALTERNATIVES_MAX:
        unit = news[0] if cluster.of_vm.get(news[0].vm) else _as_asked(news[0])
        moves_by_store = alternatives(cluster, unit, inputs.moves_max)
        others = tuple(
            (names[at], len(moves), round(copied, 1), ", ".join(f"{group.vm} to {names[to]}" for group, to in moves))
            for at, (copied, moves) in sorted(moves_by_store.items(), key=lambda pair: (pair[1][0], len(pair[1][1])))
        )
        sheets.append(Sheet("What each would need", ("datastore", "moves", "GiB copied", "which"), others))
    return tuple(sheets)


def _worth(number: float) -> str | float:
    return "not needed" if np.isnan(number) else round(number, 0)


def _as_asked(unit: DiskSet) -> DiskSet:
    return DiskSet(unit.vm, unit.labels, unit.size_gib, unit.outstanding, (), kind=unit.kind, sizes_gib=unit.sizes_gib)


def _assumptions(inputs: PlaceInputs) -> tuple[str, ...]:
    unknown = sum(1 for store in inputs.datastores if np.isnan(store.line[0]))
    still = sum(1 for disk in inputs.disks if disk.outstanding is None)
    assumptions = ["GiB are those of vSphere's GB: 1,024^3 bytes.", "Disks count with their provisioned size."]
    if unknown:
        count = len(inputs.datastores)
        assumptions.append(f"Latency of {unknown:,} of {count:,} datastores is not measured: only space counts.")
    if still:
        assumptions.append(f"Load of {still:,} of {len(inputs.disks):,} disks is not measured: they move no load.")
    return tuple(assumptions)


def _bends(cluster: StoreState, placed: Placed) -> list[Bend]:
    bends = []
    for step in placed.steps:
        if step.is_late:
            ms = float(placed.cluster.latency_ms()[step.target])
            cost = f"{step.unit.vm} on {cluster.names[step.target]}: {ms:.1f} ms"
            bends.append(Bend(f"latency stays below {cluster.latency_max_ms:g} ms", cost, SDRS))
    full = int((placed.cluster.used_gib > placed.cluster.limit_gib * (1 + 1e-9)).sum())
    slow = int((placed.cluster.latency_ms() > cluster.latency_max_ms).sum())
    if full:
        bends.append(Bend("datastores stay below the space threshold", f"{full} are above it after all steps", SDRS))
    if slow:
        bends.append(Bend("datastores stay below the latency threshold", f"{slow} are above it after all steps", SDRS))
    return bends


def _infeasible(inputs: PlaceInputs, placed: Placed) -> Infeasible | None:
    if not placed.failed:
        return None
    unit, state = placed.failed[0], placed.cluster
    free = np.where(state.allowed(unit), state.limit_gib - state.used_gib, -np.inf)
    most = int(np.argmax(free))
    demand = f"{unit.vm}: {unit.size_gib:,.0f} GiB"
    if not np.isfinite(free[most]):
        return Infeasible(f"{demand}; affinity rules leave no datastore", "keep_together: false, or one rule less")
    need = 100 * (state.used_gib[most] + unit.size_gib) / state.size_gib[most]
    limit = f"{inputs.space_threshold_pct:.0f} % on {state.names[most]}"
    constraint = f"{demand}; {max(0.0, free[most]):,.0f} below {limit}, "
    constraint += f"and no {inputs.moves_max} moves or fewer were found that make room"
    more = unit.size_gib - free[most]
    nearest = f"{more:,.0f} GiB less of it or more of {state.names[most]}"
    return Infeasible(constraint, nearest + (f", or a threshold of {need:.1f} %" if need <= 100 else ""))


def commands(cluster: StoreState, steps: list[DiskMove]) -> str:
    """Return the PowerCLI commands of the steps, in order."""
    lines: list[str] = []
    for step in steps:
        unit, store = step.unit, f"(Get-Datastore -Name {_quoted(cluster.names[step.target])})"
        vm = f"(Get-VM -Name {_quoted(unit.vm)})"
        if step.source >= 0 and unit.is_whole:
            lines.append(f"Move-VM -VM {vm} -Datastore {store} -Confirm:$false")
        elif step.source >= 0:
            lines += [
                f"Get-HardDisk -VM {vm} -Name {_quoted(label)} | Move-HardDisk -Datastore {store} -Confirm:$false"
                for label in unit.labels
            ]
        elif unit.kind == "clone" and unit.is_whole:
            start = f"New-VM -Name {_quoted(unit.vm)} -VM {_quoted(unit.origin)}"
            lines.append(f"{start} -Datastore {store} -ResourcePool CLUSTER_OR_HOST")
        elif unit.kind == "create" and unit.labels[0] == "new disk 1":
            sizes = ",".join(f"{size:g}" for size in unit.sizes_gib)
            start = f"New-VM -Name {_quoted(unit.vm)} -DiskGB {sizes}"
            lines.append(f"{start} -Datastore {store} -ResourcePool CLUSTER_OR_HOST")
        else:
            lines += [f"New-HardDisk -VM {vm} -CapacityGB {size:g} -Datastore {store}" for size in unit.sizes_gib]
    return "\n".join(lines)


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
