"""A planner that is given an inventory plans that inventory or refuses; no invented name stands in a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.app.planning import PLACEHOLDER, make_plan, planners
from leadline.app.read.importing import import_paths
from leadline.core.contracts.planner import Plan
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from tests.conftest import ROOT

PLANNERS = planners()
SHARED = ROOT.parent / "shared"
SAMPLES = sorted(
    path
    for folder in ("samples", "more_samples")
    for kind in ("inventory", "rvtools")
    for path in (SHARED / folder / kind).glob("*")
    if path.suffix in (".ovf", ".vmx", ".xlsx") or path.name.endswith("vminfo.json")
)
NAMED = re.compile(
    r"(?:Get-VM|Get-VMHost|Get-Cluster|Get-Datastore|-VM|-Datastore|-Cluster|-Destination)\s+(?:-Name\s+)?"
    r"(?:\"([^\"]*)\"|'((?:[^']|'')*)')"
)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.", min_size=3, max_size=12).filter(
    lambda name: name.strip("-._")
)


def names_in_commands(plan: Plan) -> set[str]:
    found = set()
    for snippet in plan.snippets:
        for match in NAMED.finditer(snippet.text):
            found.add(match[1] if match[1] is not None else match[2].replace("''", "'"))
    return {name for name in found if not PLACEHOLDER.fullmatch(name)}


def invented(plan: Plan, inventory: Inventory) -> set[str]:
    """Names in commands that no entity of the inventory has."""
    known = {entity.name for kind in EntityKind for entity in inventory.of_kind(kind)}
    return names_in_commands(plan) - known


@st.composite
def inventories(draw: st.DrawFn) -> Capture:
    """Hosts of a cluster with VMs, disks and datastores under drawn names and sizes."""
    names = draw(st.lists(NAMES, min_size=12, max_size=12, unique=True))
    inventory = Inventory()
    cluster = inventory.add(Entity(EntityKind.CLUSTER, names[0]), "drawn", vsan_enabled=draw(st.booleans()))
    stores = [
        inventory.add(Entity(EntityKind.DATASTORE, name), "drawn", capacity_gib=4000.0, free_gib=2000.0)
        for name in names[1:3]
    ]
    for host_name, vm_names in ((names[3], names[4:8]), (names[8], names[9:12])):
        host = inventory.add(
            Entity(EntityKind.HOST, host_name),
            "drawn",
            cluster=cluster.name,
            core_count=draw(st.sampled_from([16, 24, 48])),
            socket_count=2,
            numa_node_count=2,
            memory_mib=draw(st.sampled_from([131_072, 262_144])),
        )
        for vm_name in vm_names[: draw(st.integers(1, len(vm_names)))]:
            vcpus, memory_gib = draw(st.integers(1, 12)), draw(st.integers(2, 24))
            vm = inventory.add(
                Entity(EntityKind.VM, vm_name, host), "drawn", vcpu_count=vcpus, memory_mib=memory_gib * 1024
            )
            for index, role in enumerate(("system", draw(st.sampled_from(["data", "wal"])))):
                inventory.add(
                    Entity(EntityKind.VIRTUAL_DISK, f"Hard disk {index + 1}", vm),
                    "drawn",
                    size_gib=float(draw(st.integers(10, 400))),
                    role=role,
                    datastore=draw(st.sampled_from(stores)).name,
                )
    return Capture(inventory=inventory)


def plan_or_refusal(name: str, capture: Capture | None) -> Plan | UsageError:
    try:
        return make_plan(name, capture=capture).plan
    except UsageError as error:
        return error


@pytest.mark.parametrize("name", PLANNERS)
def test_a_planner_names_what_it_reads(name: str) -> None:
    assert PLANNERS[name].META.reads


@pytest.mark.parametrize("name", PLANNERS)
def test_commands_without_an_inventory_hold_placeholders_and_say_so(name: str) -> None:
    answer = plan_or_refusal(name, None)
    if isinstance(answer, UsageError):
        assert name == "place"
        return
    assert invented(answer, Inventory()) == set()
    open_names = {found for snippet in answer.snippets for found in PLACEHOLDER.findall(snippet.text)}
    said = " ".join(answer.assumptions)
    assert all(found in said for found in open_names)


@pytest.mark.parametrize("name", PLANNERS)
@settings(max_examples=12, deadline=None)
@given(capture=inventories())
def test_a_drawn_inventory_is_planned_or_refused(name: str, capture: Capture) -> None:
    answer = plan_or_refusal(name, capture)
    if isinstance(answer, UsageError):
        assert "expected" in str(answer)
        return
    assert invented(answer, capture.inventory) == set()
    alone = plan_or_refusal(name, None)
    assert isinstance(alone, UsageError) or answer.figures != alone.figures or answer.evidence, "planned something else"


def test_two_inventories_have_two_plans() -> None:
    """The second has twice the disks of the first: what is stored, placed, backed up and reserved differs."""
    captures = []
    for count in (2, 4):
        inventory = Inventory()
        for index in range(count):
            vm = inventory.add(Entity(EntityKind.VM, f"m{index}"), "drawn", vgpu_profile=f"grid_p40-{count}q")
            inventory.add(Entity(EntityKind.VIRTUAL_DISK, "Hard disk 1", vm), "drawn", size_gib=100.0)
        captures.append(Capture(inventory=inventory))
    for name in PLANNERS:
        first, second = (plan_or_refusal(name, capture) for capture in captures)
        if isinstance(first, Plan) and isinstance(second, Plan):
            assert (first.headline, first.figures) != (second.headline, second.figures) or name == "queues"
        else:
            assert isinstance(first, UsageError)
            assert isinstance(second, UsageError)


@pytest.mark.skipif(not SAMPLES, reason="needs the real inventories of shared/samples and shared/more_samples")
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_what_is_planned_is_what_a_real_inventory_holds(path: Path) -> None:
    capture = import_paths([path]).capture
    for name in PLANNERS:
        answer = plan_or_refusal(name, capture)
        if isinstance(answer, UsageError):
            assert "expected" in str(answer)
            continue
        assert answer.evidence, f"{name} says what it took"
        assert invented(answer, capture.inventory) == set(), name
    stored = make_plan("vsan", capture=capture).plan.figure("stored with protection")
    disks = capture.inventory.of_kind(EntityKind.VIRTUAL_DISK)
    held_gb = sum(capture.inventory.get(disk, "size_gib") or 0.0 for disk in disks) * 2**30 / 1e9
    assert stored.value == pytest.approx(2 * held_gb, abs=1), "both copies of all disks"
