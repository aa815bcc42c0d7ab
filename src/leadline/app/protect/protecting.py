"""Use case: parallel backup streams under several schemes of protection, their cost, and node failures survived.

A run is planned (where, how much, how long), then measured in rounds that take every scheme and number of VMs in turn,
so that a drift of the machine reaches all alike; the first round warms up and is dropped.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from leadline.app.measure.nbd import NbdServer
from leadline.app.protect.failures import Reading, Rebuild, Trials, failed_sets
from leadline.app.protect.nodes import MARK_BYTES, FolderNode, NbdNode, Node, Workspace, left_behind
from leadline.app.protect.shards import ProtectionScheme, isal, library_version
from leadline.app.protect.streams import StreamPhase, StreamSource, WriteLoad, Writers
from leadline.core.model.errors import UsageError
from leadline.core.system.safety import require_usable

ASSUMED_BYTES_PER_S = 300e6  # Judgement: of one file system, for the estimate alone
FREE_SHARE_MAX = 0.9  # of the free space; a full file system slows down and hurts others
BLOCK_BYTES = 4096
BOOTSTRAP_COUNT = 2000
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class ProtectionRequest:
    """What to measure; sizes in bytes. ``targets`` are folders or nbd:// addresses; without, ``on`` gets folders."""

    schemes: tuple[ProtectionScheme, ...]
    vm_counts: tuple[int, ...]
    targets: tuple[str, ...] = ()
    on: Path = Path()
    node_count: int = 0  # of those made under ``on``; 0: as many as the widest scheme has shards
    is_nbd: bool = False  # those made under ``on`` are served over NBD
    unit_bytes: int = 1024**2
    size_bytes: int = 256 * 1024**2
    seconds: float | None = None
    repeat_count: int = 5
    fail_count: int = 2
    seed: int = 1
    destroy: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProtectionPlan:
    """What a run will do: where it writes, how much at most at a time and in all, how long it may take."""

    request: ProtectionRequest
    node_names: tuple[str, ...]
    parents: tuple[Path, ...]  # of the marked folders
    held_bytes: int
    written_bytes: int
    seconds: float
    free_bytes: int
    is_shared: bool  # several nodes on one file system
    left_behind: tuple[Path, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "nodes": list(self.node_names),
            "held_bytes": self.held_bytes,
            "written_bytes_estimated": self.written_bytes,
            "seconds_estimated": self.seconds,
            "free_bytes": self.free_bytes,
            "nodes_share_a_file_system": self.is_shared,
            "left_behind": [str(path) for path in self.left_behind],
        }


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """A mean over rounds with its 95 % confidence interval (bootstrap) and coefficient of variation."""

    mean: float
    low: float
    high: float
    variation: float

    @classmethod
    def of(cls, values: list[float]) -> RateEstimate:
        """Of values [rounds]; the interval of a single round is NaN.

        Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13 (percentile interval).
        """
        known = np.array([value for value in values if np.isfinite(value)])
        nan = float("nan")
        if len(known) < 2:
            return cls(float(known[0]) if len(known) else nan, nan, nan, nan)
        means = np.random.default_rng(0).choice(known, (BOOTSTRAP_COUNT, len(known))).mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        mean = float(known.mean())
        return cls(mean, float(low), float(high), float(known.std(ddof=1)) / mean if mean else nan)

    def to_dict(self) -> dict[str, float]:
        """Plain data for ``--json``."""
        return {"mean": self.mean, "low": self.low, "high": self.high, "variation": self.variation}


@dataclass(slots=True)
class Cell:
    """One scheme at one number of VMs, over the rounds that count."""

    scheme: ProtectionScheme
    vm_count: int
    phases: list[StreamPhase] = field(default_factory=list)

    def over(self, measure: Callable[[StreamPhase], float]) -> RateEstimate:
        """A figure of every round."""
        return RateEstimate.of([measure(phase) for phase in self.phases])

    @property
    def throughput(self) -> RateEstimate:
        """Data protected, bytes/s."""
        return self.over(lambda phase: phase.logical_bytes / phase.seconds)

    @property
    def node_throughputs(self) -> list[RateEstimate]:
        """Bytes/s written to each node."""
        rates = [[written / phase.seconds for written in phase.node_bytes] for phase in self.phases]
        return [RateEstimate.of(list(of_node)) for of_node in zip(*rates, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``; bytes/s, and ratios to the data."""
        return {
            "scheme": str(self.scheme),
            "vms": self.vm_count,
            "rounds": len(self.phases),
            "data_bytes_per_s": self.throughput.to_dict(),
            "node_bytes_per_s": [estimate.to_dict() for estimate in self.node_throughputs],
            "written_per_byte": self.over(written_amplification).mean,
            "stored_per_byte": self.over(stored_amplification).mean,
            "sent_per_byte": self.over(lambda p: p.sent_bytes / p.logical_bytes).mean,
            "sent_per_byte_encoder_on_first_node": self.over(lambda p: p.relayed_bytes / p.logical_bytes).mean,
            "cpu_s_per_gb": self.over(lambda p: (p.cpu_s - p.stream_cpu_s) / p.logical_bytes * 1e9).to_dict(),
            "encode_cpu_s_per_gb": self.over(lambda p: p.encode_cpu_s / p.logical_bytes * 1e9).to_dict(),
            "direct_io": all(phase.is_direct for phase in self.phases),
        }


def written_amplification(phase: StreamPhase) -> float:
    """Bytes written to nodes per byte of data."""
    return sum(phase.node_bytes) / phase.logical_bytes


def stored_amplification(phase: StreamPhase) -> float:
    """Bytes allocated on nodes per byte of data kept; NaN when a node does not say."""
    return phase.stored_bytes / phase.kept_bytes


@dataclass(slots=True)
class Survival:
    """What a scheme did when nodes failed: as many as asked, one more than it tolerates, and the rebuild."""

    scheme: ProtectionScheme
    readings: list[Reading] = field(default_factory=list)
    beyond: Reading | None = None
    rebuild: Rebuild | None = None

    @property
    def survived(self) -> bool:
        """Whether every stripe came back whole under every combination of failed nodes tried."""
        return bool(self.readings) and all(reading.survived for reading in self.readings)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "scheme": str(self.scheme),
            "tolerates": self.scheme.tolerated,
            "survived": self.survived,
            "combinations": [reading.to_dict() for reading in self.readings],
            "one_more_than_tolerated": None if self.beyond is None else self.beyond.to_dict(),
            "rebuild": None if self.rebuild is None else self.rebuild.to_dict(),
        }


@dataclass(slots=True)
class ProtectionOutcome:
    """What was measured; ``is_complete`` is False when it was stopped."""

    plan: ProtectionPlan
    cells: list[Cell]
    survivals: list[Survival] = field(default_factory=list)
    is_complete: bool = True
    library: str | None = None

    @property
    def lost(self) -> list[Survival]:
        """Schemes that lost data to the failures asked for."""
        return [one for one in self.survivals if one.readings and not one.survived]

    def ratio(self, cell: Cell, other: Cell) -> RateEstimate:
        """How many times faster a cell is than another, round by round."""
        pairs = zip(cell.phases, other.phases, strict=False)
        rates = [(p.logical_bytes / p.seconds, q.logical_bytes / q.seconds) for p, q in pairs]
        return RateEstimate.of([rate / base for rate, base in rates])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        request = self.plan.request
        return {
            "complete": self.is_complete,
            "plan": self.plan.to_dict(),
            "unit_bytes": request.unit_bytes,
            "size_per_vm_bytes": request.size_bytes,
            "seed": request.seed,
            "isa_l": self.library,
            "cells": [cell.to_dict() for cell in self.cells],
            "failures": [one.to_dict() for one in self.survivals],
        }


def make_plan(request: ProtectionRequest) -> ProtectionPlan:
    """Check a request against the machine without writing anything.

    Raises:
        UsageError: it cannot be done: too few nodes, no room, a target that is neither a folder nor an address.
        ToolError: erasure coding is asked for and ISA-L is missing.
    """
    _check_numbers(request)
    if any(scheme.data_count > 1 for scheme in request.schemes):
        isal()
    widest = max(scheme.shard_count for scheme in request.schemes)
    targets = request.targets or tuple(f"node-{i}" for i in range(request.node_count or widest))
    _check_nodes(request, targets, widest)
    is_local = not request.targets
    folders = [request.on] if is_local else [Path(target) for target in targets if not _is_address(target)]
    _check_folders(folders)
    loads = [_load(request, scheme, count) for scheme in request.schemes for count in request.vm_counts]
    needed_bytes = max(load.vm_count * load.slot_count * load.unit_bytes * load.scheme.shard_count for load in loads)
    free, is_shared = _check_space(folders, needed_bytes, len(targets), is_local=is_local)
    per_round = sum(load.vm_count * load.slot_count * load.unit_bytes * load.scheme.shard_count for load in loads)
    rounds = request.repeat_count + 1
    writing_s = per_round / ASSUMED_BYTES_PER_S if request.seconds is None else request.seconds * len(loads)
    return ProtectionPlan(
        request,
        targets,
        tuple(folders),
        needed_bytes,
        per_round * rounds if request.seconds is None else round(writing_s * rounds * ASSUMED_BYTES_PER_S),
        writing_s * rounds + _trial_seconds(request, len(targets)),
        free,
        is_shared,
        tuple(path for folder in folders for path in left_behind(folder)),
    )


def run_protection(plan: ProtectionPlan, progress: Progress | None = None) -> ProtectionOutcome:
    """Measure what a plan says. Ctrl-C stops the load and keeps what was measured; what was made is always removed.

    Raises:
        UsageError: a target holds data.
        ToolError: a node cannot be started or fails while written to.
    """
    request = plan.request
    cells = [Cell(scheme, count) for count in request.vm_counts for scheme in request.schemes]
    coded = any(scheme.data_count > 1 for scheme in request.schemes)
    outcome = ProtectionOutcome(plan, cells, library=library_version() if coded else None)
    stop = threading.Event()
    workspace = Workspace.make(list(plan.parents))
    nodes: list[Node] = []
    try:
        _make_nodes(plan, workspace, nodes)
        _measure(outcome, nodes, stop, progress or (lambda done, total, text: None))
    except KeyboardInterrupt:
        stop.set()
    finally:
        for node in nodes:
            node.remove()
        workspace.remove()
    outcome.is_complete = not stop.is_set()
    return outcome


def clean(parent: Path) -> list[Path]:
    """Remove what killed runs left in a folder; what a living run uses stays.

    Raises:
        UsageError: there is no such folder.
    """
    _check_folders([parent])
    folders = left_behind(parent)
    for folder in folders:
        shutil.rmtree(folder)
    return folders


def _measure(outcome: ProtectionOutcome, nodes: list[Node], stop: threading.Event, progress: Progress) -> None:
    request = outcome.plan.request
    stripe_bytes = max(scheme.data_count for scheme in request.schemes) * request.unit_bytes
    source = StreamSource(request.seed, stripe_bytes)
    writers = Writers(nodes, source, stop)
    rounds = request.repeat_count + 1
    total, done = rounds * len(outcome.cells), 0
    most = max(request.vm_counts)
    for turn in range(rounds):
        # Every other round backwards, so that no scheme always follows the same one.
        for cell in outcome.cells if turn % 2 == 0 else reversed(outcome.cells):
            warm = "warm-up, " if turn == 0 else f"round {turn}, "
            progress(done, total, f"{warm}{cell.scheme}, {cell.vm_count} VMs")
            phase = writers.run(_load(request, cell.scheme, cell.vm_count))
            if not phase.is_complete:
                return
            if turn > 0:
                cell.phases.append(phase)
            done += 1
            if turn == rounds - 1 and cell.vm_count == most and request.fail_count:
                progress(done, total, f"failures, {cell.scheme}")
                survival = Survival(cell.scheme)
                outcome.survivals.append(survival)
                _try_failures(survival, Trials(nodes, source, phase, stop), request, len(nodes))
    outcome.survivals.sort(key=lambda one: request.schemes.index(one.scheme))


def _try_failures(survival: Survival, trials: Trials, request: ProtectionRequest, node_count: int) -> None:
    for failed in failed_sets(node_count, request.fail_count, request.seed):
        survival.readings.append(trials.read_without(failed))
    beyond = survival.scheme.tolerated + 1
    if beyond <= node_count:
        survival.beyond = trials.read_without(tuple(range(beyond)))
    if request.fail_count <= survival.scheme.tolerated:
        survival.rebuild = trials.rebuild(tuple(range(request.fail_count)))


def _make_nodes(plan: ProtectionPlan, workspace: Workspace, nodes: list[Node]) -> None:
    """One by one into the list, so that those made are removed when a later one fails."""
    request = plan.request
    loads = [_load(request, scheme, count) for scheme in request.schemes for count in request.vm_counts]
    need = MARK_BYTES + max(load.vm_count * load.region_bytes for load in loads)
    exports = {name: NbdNode(name) for name in plan.node_names if request.targets and _is_address(name)}
    for name, node in exports.items():  # all are looked at before the first is touched
        node.check(need, destroy=name in request.destroy)
    folders = iter(workspace.folders)
    for name in plan.node_names:
        if not request.targets and request.is_nbd:
            server = NbdServer(name, workspace.folders[0] / f"{name}.img", need)
            nodes.append(NbdNode(name, server))
        elif not request.targets:
            nodes.append(FolderNode(name, workspace.folders[0] / name))
        elif name in exports:
            nodes.append(exports[name])
            exports[name].claim(need)
        else:
            nodes.append(FolderNode(name, next(folders) / "node"))


def _load(request: ProtectionRequest, scheme: ProtectionScheme, vm_count: int) -> WriteLoad:
    return WriteLoad(scheme, vm_count, request.unit_bytes, request.size_bytes, request.seconds, request.seed)


def _is_address(target: str) -> bool:
    return target.startswith(("nbd://", "nbd+unix://"))


def _check_numbers(request: ProtectionRequest) -> None:
    checks = (
        ("--scheme", len(request.schemes), len(set(request.schemes)) == len(request.schemes) > 0, "distinct schemes"),
        ("--vms", request.vm_counts, bool(request.vm_counts) and min(request.vm_counts) >= 1, "numbers from 1"),
        ("--repeats", request.repeat_count, request.repeat_count >= 1, "1 or more"),
        ("--fail", request.fail_count, request.fail_count >= 0, "0 or more"),
        ("--unit", request.unit_bytes, _is_unit(request.unit_bytes), "a multiple of 4096 bytes, at most 16 MiB"),
        ("--size-per-vm", request.size_bytes, request.size_bytes >= request.unit_bytes, "at least one unit"),
        ("--seconds", request.seconds, request.seconds is None or request.seconds > 0, "more than 0"),
    )
    for option, value, is_fine, expected in checks:
        if not is_fine:
            raise UsageError(option, found=str(value), expected=expected, advice="`leadline bench protect --help`")


def _is_unit(unit_bytes: int) -> bool:
    return unit_bytes > 0 and unit_bytes % BLOCK_BYTES == 0 and unit_bytes <= 16 * 1024**2


def _check_nodes(request: ProtectionRequest, targets: tuple[str, ...], widest: int) -> None:
    if len(targets) < widest:
        raise UsageError(
            "--node" if request.targets else "--nodes",
            found=f"{len(targets)} nodes",
            expected=f"at least {widest}: one for each shard of a stripe",
            advice="Give more nodes, or a narrower --scheme.",
        )
    if request.fail_count > len(targets):
        raise UsageError(
            "--fail",
            found=str(request.fail_count),
            expected=f"at most {len(targets)}, the nodes there are",
            advice="Lower it.",
        )
    same = {target if _is_address(target) else str(Path(target).resolve()) for target in targets}
    if len(same) < len(targets):
        raise UsageError("--node", found="one node twice", expected="different nodes", advice="Name each once.")
    unknown = request.destroy - {target for target in request.targets if _is_address(target)}
    if unknown:
        raise UsageError(
            f"--destroy-data {sorted(unknown)[0]}",
            found="no NBD node of that very name",
            expected="the address as given to --node",
            advice="Folders need none: nothing in them is touched.",
        )


def _check_folders(folders: list[Path]) -> None:
    for folder in folders:
        require_usable(str(folder))
        if not folder.is_dir():
            kind = "a device" if folder.is_block_device() else "a file" if folder.exists() else "nothing"
            raise UsageError(
                str(folder),
                found=kind,
                expected="an existing folder, or nbd://host:port/export",
                advice="Make a folder on the storage to measure; to measure a device, serve it with nbdkit.",
            )


def _check_space(folders: list[Path], held_bytes: int, node_count: int, *, is_local: bool) -> tuple[int, bool]:
    """Least free bytes of the file systems, and whether nodes share one.

    Raises:
        UsageError: one has too little.
    """
    devices = [folder.stat().st_dev for folder in folders]
    least = min((shutil.disk_usage(folder).free for folder in folders), default=0)
    for folder, device in zip(folders, devices, strict=True):
        share = 1.0 if is_local else devices.count(device) / node_count
        need, free = held_bytes * share, shutil.disk_usage(folder).free
        if need > free * FREE_SHARE_MAX:
            raise UsageError(
                str(folder),
                found=f"{free / 1e9:.1f} GB free",
                expected=f"{need / 1e9 / FREE_SHARE_MAX:.1f} GB for what is held at a time",
                advice="Lower --size-per-vm or --vms, or name another folder.",
            )
    return least, (is_local and node_count > 1) or len(set(devices)) < len(devices)


def _trial_seconds(request: ProtectionRequest, node_count: int) -> float:
    """Reading everything once per combination, and the rebuild."""
    if not request.fail_count:
        return 0.0
    sets = len(failed_sets(node_count, request.fail_count, request.seed)) + 3
    return sets * len(request.schemes) * max(request.vm_counts) * request.size_bytes / ASSUMED_BYTES_PER_S


def size_of(text: str, option: str) -> int:
    """Bytes from a number with an optional K, M, G or T, which are powers of 1024.

    Raises:
        UsageError: the text has another form.

    >>> size_of("256M", "--size-per-vm")
    268435456
    """
    units = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
    number = text.strip().upper().removesuffix("IB").removesuffix("B")
    unit = number[-1:] if number[-1:] in units else ""
    try:
        return int(float(number.removesuffix(unit)) * units[unit])
    except (ValueError, OverflowError) as error:
        raise UsageError(option, found=text, expected="a size", advice="For example 64K, 256M, 2G.") from error
