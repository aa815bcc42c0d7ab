"""Findings of one rule on many siblings told as one."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from benches.bench_estate import ESTATES, sick_estate
from leadline.app.diagnose import grouping
from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.diagnose.grouping import grouped
from leadline.app.read.importing import Imported, import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.answer import Answer, Certainty, Disk, Reason
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.finding import Diagnosis, Evidence, Finding, LayerBecause, LayerReason, Window
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.faces.documents import diagnosis_document
from leadline.faces.report.page import page
from leadline.faces.terminal import show_diagnosis
from leadline.faces.words.answers import disk_sentence
from leadline.faces.words.findings import Quotes, group_line, group_summary, worst_members
from leadline.faces.words.layers import layer_sentence

HOST = Entity(EntityKind.HOST, "esx01")
VMS = [Entity(EntityKind.VM, f"db-{i:03d}", HOST) for i in range(8)]
NOW = (Window(0, 10),)


def finding(
    entity: Entity,
    level: float = 1.0,
    *,
    rule: str = "mem-swap-rate-nonzero",
    severity: Severity = Severity.HIGH,
    windows: tuple[Window, ...] = NOW,
    caused_by: str | None = None,
) -> Finding:
    evidence = (Evidence("swap-in", "mem_swap_in_mib_per_s", entity, "median", level, 0.0, "mib_per_s"),)
    summary = f"Swap-in {level:g} MiB/s on {entity.label()}"
    return Finding(
        rule, "MEM101", Layer.HYPERVISOR_MEMORY, entity, severity, summary, evidence, "", windows, level, (), caused_by
    )


def capture(*more: Entity) -> Capture:
    inventory = Inventory()
    for entity in (HOST, *VMS, *more):
        inventory.add(entity, "test")
    return Capture(inventory=inventory)


def test_siblings_are_one_the_worst_first() -> None:
    findings = [finding(vm, level) for vm, level in zip(VMS[:6], (5.0, 9.0, 55.0, 7.0, 6.0, 8.0), strict=True)]
    (group,) = grouped(findings, capture())
    assert group_summary(group) == "6 of 8 VMs of esx01, the worst: Swap-in 55 MiB/s on db-002"
    assert group_line(group) == "6 VMs: Swap-in 55 MiB/s on db-002"
    assert (
        worst_members(group)
        == "db-002 55 MiB/s, db-001 9 MiB/s, db-005 8 MiB/s, db-003 7 MiB/s, db-004 6 MiB/s and 1 more"
    )
    assert [findings[place] for place in group.places] == list(group.members)
    assert group.to_dict()["of_count"] == 8


@pytest.mark.parametrize(
    "others",
    [
        [],
        [finding(VMS[2], rule="mem-balloon-nonzero")],
        [finding(VMS[2], caused_by="cpu-ready-high")],
        [finding(VMS[2], severity=Severity.LOW)],
        [finding(VMS[2], windows=(Window(20, 30),))],
        [finding(VMS[2], windows=())],
        [finding(VMS[1], windows=(Window(5, 6),))],  # the same VM again
        [finding(Entity(EntityKind.VIRTUAL_DISK, "scsi0:0", VMS[2]))],
        [finding(Entity(EntityKind.VM, "other", Entity(EntityKind.HOST, "esx02")))],
        [finding(Entity(EntityKind.GUEST, "alone")), finding(Entity(EntityKind.GUEST, "too"))],
    ],
    ids=["two", "rule", "cause", "weight", "time", "setting", "entity", "kind", "host", "nothing above"],
)
def test_what_is_no_sibling_stays_single(others: list[Finding]) -> None:
    findings = [finding(VMS[0]), finding(VMS[1]), *others]
    groups = grouped(findings, capture())
    assert [group.members for group in groups] == [(one,) for one in findings]
    assert [group_summary(group) for group in groups] == [one.summary for one in findings]


def test_groups_keep_the_order_of_their_first_members() -> None:
    lone = finding(HOST, rule="cpu-ready-high")
    findings = [finding(VMS[0]), lone, finding(VMS[1]), finding(VMS[2])]
    many, single = grouped(findings, capture())
    assert many.is_many
    assert many.places == (0, 2, 3)
    assert single.members == (lone,)


def test_disks_of_one_vm_are_below_the_vm_and_of_several_below_the_host() -> None:
    disks = [Entity(EntityKind.VIRTUAL_DISK, f"scsi0:{i}", VMS[i // 3]) for i in range(6)]
    (one,) = grouped([finding(disk) for disk in disks[:3]], capture(*disks))
    assert (one.below, one.sibling_count) == (VMS[0], 3)
    (all_of_host,) = grouped([finding(disk) for disk in disks], capture(*disks))
    assert (all_of_host.below, all_of_host.sibling_count) == (HOST, 6)
    assert group_summary(all_of_host).startswith("6 of 6 virtual disks of esx01, the worst: ")


def test_guests_are_siblings_below_the_host_of_their_vms_and_hosts_below_their_cluster() -> None:
    guests = [Entity(EntityKind.GUEST, vm.name) for vm in VMS[:3]]
    (group,) = grouped([finding(guest) for guest in guests], capture(*guests))
    assert (group.below, group.sibling_count) == (HOST, 3)
    hosts = [Entity(EntityKind.HOST, f"esx1{i}") for i in range(3)]
    known = capture()
    for host in hosts:
        known.inventory.add(host, "test", cluster="prod")
    (group,) = grouped([finding(host) for host in hosts], known)
    assert group.below == Entity(EntityKind.CLUSTER, "prod")


def lineages_asked(monkeypatch: pytest.MonkeyPatch, host_count: int) -> int:
    """How often what an entity is below is looked up, to group the findings of three VMs on each of as many hosts."""
    asked = 0
    plain = grouping._lineage

    def counting(entity: Entity, of: Capture) -> list[Entity]:
        nonlocal asked
        asked += 1
        return plain(entity, of)

    hosts = [Entity(EntityKind.HOST, f"esx{i:03d}") for i in range(host_count)]
    vms = [Entity(EntityKind.VM, f"db{i}", host) for host in hosts for i in range(5)]
    with monkeypatch.context() as patched:
        patched.setattr(grouping, "_lineage", counting)
        groups = grouped([finding(vm) for vm in vms if vm.name < "db3"], capture(*hosts, *vms))
    assert [group.sibling_count for group in groups] == [5] * host_count
    return asked


def test_many_hosts_cost_in_proportion_to_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lineages_asked(monkeypatch, 80) <= 2.3 * lineages_asked(monkeypatch, 40)


def test_a_group_holds_when_any_member_does() -> None:
    spans = [(Window(0, 10), Window(40, 50)), (Window(5, 20),), (Window(9, 12), Window(45, 60))]
    (group,) = grouped([finding(vm, windows=s) for vm, s in zip(VMS[:3], spans, strict=True)], capture())
    assert group.windows == (Window(0, 20), Window(40, 60))


def test_the_verdict_quotes_the_group() -> None:
    groups = grouped([finding(vm) for vm in VMS], capture())
    quoted = groups[0].lead.summary
    assert Quotes().summary(groups[0].lead) == quoted
    quotes = Quotes(groups)
    assert quotes.summary(groups[0].lead) == group_summary(groups[0])
    reason = LayerReason(LayerBecause.CAUSE, groups[0].lead)
    assert layer_sentence(reason, quotes) == group_line(groups[0])
    answer = Answer(None, Disk.YES, Reason.DEVICE_SLOW, Certainty.IS, finding=groups[0].lead)
    assert disk_sentence(answer, quotes) == f"Yes: {group_summary(groups[0])}."


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Diagnosis, Capture]:
    path: Path = tmp_path_factory.mktemp("estate") / "esxtop.csv"
    sick_estate(path, 20, 60, ESTATES["all VMs, four faults"])
    found = import_paths([path], Request(metrics=metrics_read())).capture
    return diagnose(found), found


def printed(estate: tuple[Diagnosis, Capture], *, everything: bool = False) -> list[str]:
    stream = io.StringIO()
    show_diagnosis(Console(file=stream, width=80), *estate, everything=everything)
    return stream.getvalue().splitlines()


def test_a_sick_host_fits_one_screen(estate: tuple[Diagnosis, Capture]) -> None:
    lines = printed(estate)
    assert len(estate[0].findings) > 100
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "20 of 20 VMs of esx01.example, the worst: Hypervisor swap-in 6 MiB/s on vm001" in text
    assert " Also " in text


def test_all_lists_every_member(estate: tuple[Diagnosis, Capture]) -> None:
    lines = printed(estate, everything=True)
    listed = [line for line in lines if line.startswith("   vm0") and " critical " in line and "6 MiB/s" in line]
    assert len(listed) == 20
    assert max(map(len, lines)) <= 80


def test_the_document_has_every_finding_and_the_groups(estate: tuple[Diagnosis, Capture]) -> None:
    document = json.loads(json.dumps(diagnosis_document(estate[0], Imported(estate[1]))))
    assert len(document["findings"]) == len(estate[0].findings)
    swap = next(group for group in document["groups"] if group["rule"] == "mem-swap-rate-nonzero")
    assert (swap["kind"], swap["count"], swap["of_count"]) == ("vm", 20, 20)
    assert {document["findings"][place]["rule"] for place in swap["findings"]} == {"mem-swap-rate-nonzero"}


def test_the_page_tells_a_group_once_and_lists_its_members(estate: tuple[Diagnosis, Capture]) -> None:
    html = page(estate[0], Imported(estate[1]))
    groups = grouped(estate[0].findings, estate[1])
    assert html.count('<article class="') == len(groups) < 20
    assert html.count("<summary>All 20</summary>") == sum(g.is_many for g in groups)
    assert html.count('<th scope="row">vm007</th><td>critical</td><td class="number">6 MiB/s</td>') == 1
