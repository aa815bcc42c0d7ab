"""Hosts that `plan cpu` needs beside the optimum of OR-tools, on small cases; skipped where it is not installed."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.planners._cpu.packing import Box, packed

cp_model = pytest.importorskip("ortools.sat.python.cp_model", reason="ortools is not installed")
CORES, GIB, HOSTS = 24, 256, 8


@pytest.mark.parametrize("seed", range(5))
def test_as_many_hosts_as_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [(2 * int(rng.integers(1, 9)), int(rng.integers(8, 128))) for _ in range(12)]
    model = cp_model.CpModel()
    lies = [[model.new_bool_var("") for _ in range(HOSTS)] for _ in sizes]
    used = [model.new_bool_var("") for _ in range(HOSTS)]
    for row in lies:
        model.add_exactly_one(row)
    for host in range(HOSTS):
        for part, room in ((0, CORES), (1, GIB)):
            model.add(sum(own[part] * row[host] for own, row in zip(sizes, lies, strict=True)) <= room * used[host])
    model.minimize(sum(used))
    solver = cp_model.CpSolver()
    assert solver.solve(model) == cp_model.OPTIMAL
    boxes = [Box(f"vm{i:02d}", vcpus, float(gib), 1) for i, (vcpus, gib) in enumerate(sizes)]
    placed = packed(boxes, (((CORES, float(GIB)),),) * HOSTS)
    assert placed is not None
    assert placed.hosts_used == round(solver.objective_value)
