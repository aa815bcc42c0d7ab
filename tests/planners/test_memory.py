"""Memory against arithmetic by hand."""

from __future__ import annotations

import pytest

from leadline.app.planning import make_plan
from leadline.planners.memory import Memory, buffers_gib, machine_gib, system_gib


def test_the_system_s_part() -> None:
    assert [system_gib(total) for total in (32, 64, 128)] == [8.0, 12.0, 16.0]


@pytest.mark.parametrize("engine", ["postgresql", "sqlserver", "oracle", "intersystems"])
def test_parts_fill_the_machine_and_no_less_would_do(engine: str) -> None:
    own = Memory(engine=engine, working_set_gib=100, sessions=512, session_mib=20, other_gib=2)
    total = machine_gib(own)
    needed = 100 + 10 + 2
    assert total - system_gib(total) >= needed
    assert total - 1 - system_gib(total - 1) < needed
    assert buffers_gib(own, total) == (total / 4 if engine == "postgresql" else 100)


def test_huge_pages_of_48_gib_are_the_catalogues() -> None:
    """48 GiB of 2 MiB are 24,576 pages, and the margin."""
    plan = make_plan("memory", None, {"engine": "oracle", "working_set_gib": 48.0}).plan
    assert plan.figure("huge pages").value == 25_805
    assert "vm.nr_hugepages = 25805" in plan.snippets[1].text


def test_wide_machines_and_full_hosts_are_told() -> None:
    wide = make_plan("memory", None, {"working_set_gib": 300.0, "machines": 1}).plan
    assert wide.figure("NUMA nodes").value == 2
    assert [bend.rule for bend in wide.bends] == ["a machine fits a NUMA node"]
    full = make_plan("memory", None, {"working_set_gib": 300.0, "machines": 4}).plan
    assert full.infeasible is not None
    assert full.infeasible.nearest.startswith("1 machines, or hosts of ")
