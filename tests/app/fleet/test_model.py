"""Fleets on paper: where workers go, what speaks against them, and the file that orders them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.app.fleet.file import read_fleet
from leadline.app.fleet.model import (
    DatastoreFacts,
    FleetPlan,
    FleetSpec,
    HostFacts,
    NetworkFacts,
    Offer,
    PoolFacts,
    TemplateFacts,
    plan_fleet,
    spread,
)
from leadline.core.model.errors import InputError
from tests.conftest import ROOT

GIB = 2**30
TEMPLATE = TemplateFacts(
    id="vm-1",
    name="t",
    is_template=True,
    is_off=True,
    has_tools=True,
    provisioned_bytes=8 * GIB,
    memory_bytes=2 * GIB,
    nic_count=1,
    networks=frozenset({"net-1"}),
    buses=frozenset({0}),
)
HOSTS = tuple(
    HostFacts(f"host-{n}", f"esx{n}", "prod" if n < 3 else "lab", "", frozenset({"net-1"}), f"pool-{n}")
    for n in range(4)
)
STORES = tuple(
    DatastoreFacts(f"ds-{n}", f"ds{n}", "", 1000 * GIB, 800 * GIB, frozenset(host.id for host in HOSTS))
    for n in range(2)
)
OFFER = Offer(
    can_clone=True,
    templates=(TEMPLATE,),
    hosts=HOSTS,
    datastores=STORES,
    networks=(NetworkFacts("net-1", "VM Network", "Network"), NetworkFacts("net-2", "nsx", "OpaqueNetwork")),
    pools=(PoolFacts("pool-9", "bench", frozenset({"host-0", "host-1", "host-2"})),),
    folders=("group-1",),
    vm_names=frozenset({"t", "db01"}),
)
SPEC = FleetSpec(template="t", count=4, disk_count=2, disk_bytes=GIB, datastores=("ds0", "ds1"))


def said(plan: FleetPlan) -> dict[str, str]:
    return {own.where: own.found for own in plan.problems}


def test_workers_go_round_hosts_and_datastores() -> None:
    plan = plan_fleet(SPEC, OFFER)
    assert plan.problems == []
    assert [(own.name, own.host.name, own.datastore.name, own.pool) for own in plan.placements] == [
        ("leadline-01", "esx0", "ds0", "pool-0"),
        ("leadline-02", "esx1", "ds1", "pool-1"),
        ("leadline-03", "esx2", "ds0", "pool-2"),
        ("leadline-04", "esx3", "ds1", "pool-3"),
    ]
    assert plan.worker_bytes == 12 * GIB
    assert plan.controllers == [1, 1]
    assert plan.entities()["template"] == {"vm-1"}


def test_a_datastore_only_some_hosts_have_is_used_by_those() -> None:
    local = replace(STORES[1], hosts=frozenset({"host-2"}))
    plan = plan_fleet(SPEC, replace(OFFER, datastores=(STORES[0], local)))
    assert plan.problems == []
    assert [own.datastore.name for own in plan.placements] == ["ds0", "ds0", "ds1", "ds0"]


@pytest.mark.parametrize(("free_gib", "is_enough"), [(224, True), (223, False)])
def test_space_for_full_workers_and_a_fifth_free(free_gib: int, is_enough: bool) -> None:
    """Two workers of 12 GiB on each datastore, 200 GiB of which stay free: 224 GiB are just enough."""
    stores = tuple(replace(own, free_bytes=free_gib * GIB) for own in STORES)
    found = said(plan_fleet(SPEC, replace(OFFER, datastores=stores)))
    assert set(found) == (set() if is_enough else {"datastore ds0", "datastore ds1"})


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        (replace(SPEC, count=0), "count"),
        (replace(SPEC, count=10**9), "count"),
        (replace(SPEC, prefix="a b"), "name_prefix"),
        (replace(SPEC, template="x"), "template x"),
        (replace(SPEC, cluster="x"), "cluster x"),
        (replace(SPEC, cluster="lab", hosts=("esx0",)), "host esx0"),
        (replace(SPEC, datastores=("x",)), "datastore x"),
        (replace(SPEC, network="x"), "network x"),
        (replace(SPEC, network="nsx"), "network nsx"),
        (replace(SPEC, pool="x"), "resource pool x"),
        (replace(SPEC, pool="bench"), "resource pool bench"),  # esx3 is outside it
        (replace(SPEC, controller_count=4), "disks.controllers"),  # the template has one of four
        (replace(SPEC, disk_count=46), "disks.count"),
    ],
)
def test_what_is_asked_and_not_there(spec: FleetSpec, where: str) -> None:
    templates = () if spec.template == "x" else OFFER.templates
    assert where in said(plan_fleet(spec, replace(OFFER, templates=templates)))


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"can_clone": False}, "vCenter"),
        ({"templates": (replace(TEMPLATE, is_off=False),)}, "template t"),
        ({"templates": (replace(TEMPLATE, nic_count=0),)}, "template t"),
        ({"templates": (TEMPLATE, TEMPLATE)}, "template t"),
        ({"vm_names": frozenset({"leadline-03"})}, "name_prefix"),
        ({"folders": ()}, "folder"),
        ({"hosts": tuple(replace(own, unusable="in maintenance mode") for own in HOSTS)}, "hosts"),
        ({"hosts": tuple(replace(own, networks=frozenset()) for own in HOSTS)}, "network VM Network"),
        ({"datastores": (STORES[0], replace(STORES[1], unusable="not accessible"))}, "datastore ds1"),
    ],
)
def test_what_is_there_and_does_not_fit(changes: dict[str, object], where: str) -> None:
    assert where in said(plan_fleet(SPEC, replace(OFFER, **changes)))  # type: ignore[arg-type]


def test_disks_are_spread_evenly() -> None:
    assert [spread(*own) for own in ((0, 3), (1, 4), (4, 3), (8, 4))] == [[], [1], [2, 1, 1], [2, 2, 2, 2]]


def test_the_guide_and_the_example_are_fleet_files(tmp_path: Path) -> None:
    guide = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "guides" / "fleet.md").read_text(), re.DOTALL)
    assert guide is not None
    path = tmp_path / "guide.yaml"
    path.write_text(guide[1])
    found = read_fleet(path)
    assert found.vcenter.password_file == tmp_path / "secret.txt"
    assert found.model_dump(exclude_unset=True).keys() == found.model_dump().keys()  # it shows every key
    example = read_fleet(ROOT / "examples" / "fleet.yaml")
    assert example.spec().disk_bytes == 100 * GIB


@pytest.mark.parametrize(
    ("before", "after", "place", "part"),
    [
        ("count: 8", "count: many", "7:1", "count"),
        ("  size: 100g", "  size: large", "13:3", "is no size"),
        ("  size: 100g", "  size: 1k", "13:3", "at least 1m"),
        ("  cluster: prod", "  clusters: prod", "9:3", "Extra inputs"),
        ("  datastores: [vsan1]", "  datastores: []", "10:3", "datastores"),
        ("  measure_s: 5m", "  measure_s: 0", "18:3", "measure_s"),
        ("  host: vc.example", "  password: abc", "3:1", "does not belong in this file"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, before: str, after: str, place: str, part: str) -> None:
    text = (ROOT / "examples" / "fleet.yaml").read_text()
    assert before in text
    path = tmp_path / "fleet.yaml"
    path.write_text(text.replace(before, after))
    with pytest.raises(InputError) as caught:
        read_fleet(path)
    assert caught.value.where == f"{path}:{place}"
    assert part in caught.value.found
    assert "abc" not in str(caught.value)
