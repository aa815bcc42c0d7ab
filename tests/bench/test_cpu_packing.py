"""What `plan cpu` packs and arranges beside the optimum of OR-tools, on small cases; skipped without OR-tools."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from leadline.planners._cpu.packing import Box, Free, packed, stranded
from leadline.planners._cpu.restart import arranged

cp_model = pytest.importorskip("ortools.sat.python.cp_model", reason="ortools is not installed")


def drawn(seed: int, count: int, largest: int) -> list[Box]:
    """VMs of an even number of cores; above 12 they span two nodes; the first three lie apart."""
    rng = np.random.default_rng(seed)
    sizes = [(2 * int(rng.integers(1, largest // 2 + 1)), int(rng.integers(8, 128))) for _ in range(count)]
    return [
        Box(f"vm{i:02d}", cores, gib, 1 if cores <= 12 else 2, frozenset({"apart"} if i < 3 else ()))
        for i, (cores, gib) in enumerate(sizes)
    ]


class Model:
    """Places of VMs on nodes in CP-SAT: ``lies[vm][host]``, and with a VM on a host ``on[vm][host][node]``."""

    def __init__(self, boxes: list[Box], empty: Free) -> None:
        self.boxes, self.empty, self.model = boxes, empty, cp_model.CpModel()
        self.lies, self.on = self.places()

    def places(self) -> tuple[list[list[Any]], list[list[list[Any]]]]:
        """A host for each VM, and as many of its nodes as the VM spans."""
        hosts, new = range(len(self.empty)), self.model.new_bool_var
        lies = [[new("") for _ in hosts] for _ in self.boxes]
        on = [[[new("") for _ in self.empty[host]] for host in hosts] for _ in self.boxes]
        for box, row, nodes in zip(self.boxes, lies, on, strict=True):
            for host in hosts:
                self.model.add(sum(nodes[host]) == box.nodes * row[host])
        return lies, on

    def keep(self, lies: list[list[Any]], on: list[list[list[Any]]], host: int) -> None:
        """The host has the cores and memory, and no two of a group."""
        for node, room in enumerate(self.empty[host]):
            for part in (0, 1):
                needs = [(box.cores, box.gib)[part] / box.nodes for box in self.boxes]
                took = [round(2 * need) * own[host][node] for need, own in zip(needs, on, strict=True)]
                self.model.add(sum(took) <= round(2 * room[part]))
        for (one, a), (other, b) in combinations(zip(self.boxes, lies, strict=True), 2):
            if one.apart & other.apart:
                self.model.add(a[host] + b[host] <= 1)

    def solved(self) -> Any:
        """The solver after an answer; None where there is none."""
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = 60.0
        solver.parameters.num_workers = 1
        status = solver.solve(self.model)
        assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE), "not solved in time"
        return solver if status == cp_model.OPTIMAL else None


@pytest.mark.parametrize("seed", range(8))
def test_as_many_hosts_as_the_optimum(seed: int) -> None:
    boxes, empty = drawn(seed, 12, 20), (((12.0, 128.0),) * 2,) * 10
    own = Model(boxes, empty)
    used = [own.model.new_bool_var("") for _ in empty]
    for row in own.lies:
        own.model.add_exactly_one(row)
        for host, flag in enumerate(used):
            own.model.add_implication(row[host], flag)
    for host in range(len(empty)):
        own.keep(own.lies, own.on, host)
    own.model.minimize(sum(used))
    best = own.solved()
    placed = packed(boxes, empty)
    assert placed is not None
    assert placed.hosts_used == round(best.objective_value)


def restarts(boxes: list[Box], empty: Free) -> bool:
    """Whether any assignment at all restarts every VM, whatever host fails, with nobody else moved."""
    own = Model(boxes, empty)
    for row in own.lies:
        own.model.add_exactly_one(row)
    for failed in range(len(empty)):
        lies, on = own.places()  # after the failure
        for row, nodes, before, at in zip(lies, on, own.lies, own.on, strict=True):
            own.model.add_exactly_one(row)
            own.model.add(row[failed] == 0)
            for host in range(len(empty)):
                if host != failed:
                    own.model.add_implication(before[host], row[host])
                    for now, old in zip(nodes[host], at[host], strict=True):
                        own.model.add_implication(old, now)
        for host in range(len(empty)):
            own.keep(lies, on, host)
            own.keep(own.lies, own.on, host)
    return own.solved() is not None


@pytest.mark.parametrize("share", [0.75, 0.9, 1.0])
def test_assignments_that_restart_all_are_found_where_there_are_any(share: float) -> None:
    """Four hosts that differ; VMs fill a share of what is left without the largest."""
    empty: Free = tuple(((cores, 400.0),) * 2 for cores in (12.0, 12.0, 16.0, 16.0))
    possible = found = 0
    for seed in range(12):
        boxes = drawn(seed, 30, 16)
        rest, kept = share * 80.0, 0
        while kept < len(boxes) and sum(box.cores for box in boxes[: kept + 1]) <= rest:
            kept += 1
        boxes = boxes[:kept]
        is_possible, placed = restarts(boxes, empty), arranged(boxes, empty, 1)
        possible, found = possible + is_possible, found + (placed is not None)
        if placed is not None:
            assert is_possible
            assert not any(stranded(boxes, placed, host) for host in range(4))
    assert possible > 0
    assert share < 1.0 or possible < 12, "the comparison can fail"
    assert found == possible
