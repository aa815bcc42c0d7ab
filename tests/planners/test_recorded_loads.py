"""What planners take from recordings and inventories, against the model the recordings were written from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from leadline.app.planning import make_plan
from leadline.app.read.importing import import_paths
from leadline.core.contracts.planner import Plan
from leadline.core.model.capture import NS_PER_S, Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.recorded_loads import (
    OPERATIONS,
    RecordedInput,
    by_default,
    by_owner,
    filled,
    number,
    of_each,
    outstanding,
    series_of,
    total,
)
from leadline.estate.knowledge.stored import stored_gib
from leadline.faces.cli.main import build_app
from leadline.generators.esxtop import write
from leadline.generators.guest import inventory_text, iostat_text
from leadline.generators.host_model import CaptureShape, HostModel
from leadline.planners._layout.inputs import LayoutInputs
from leadline.planners._qos.inputs import Qos
from leadline.planners._qos.recorded import disks as recorded_disks
from leadline.planners.backup import Backup, consolidation_iops
from leadline.planners.layout import begin_kib
from leadline.planners.queues import Queues
from tests.importers import rvtools_workbook

GUEST = Entity(EntityKind.GUEST, "db01")
WINDOW = "2026-02-16 00:00:05 to 2026-02-16 00:05:00 UTC"  # 60 samples of 5 s from the model's start


@pytest.fixture(scope="module")
def model() -> HostModel:
    """Three VMs of two disks each; the middle one is the busiest."""
    made = HostModel(CaptureShape(vm_count=3, sample_count=60), np.random.default_rng(3))
    made.disk_reads[2:4] *= 10.0
    return made


@pytest.fixture(scope="module")
def esxtop(model: HostModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capture") / "capture.csv"
    write(model, path)
    return path


def inventory(path: Path, **of_vm: object) -> Path:
    path.write_text(yaml.safe_dump({"leadline_inventory": 1, "vms": [{"name": "vm002", **of_vm}]}))
    return path


def captured(*paths: Path) -> Capture:
    return import_paths(list(paths)).capture


def p95(values: object) -> float:
    return float(np.percentile(np.asarray(values), 95))


def said(plan: Plan, key: str) -> str:
    return next(line for line in plan.evidence if line.startswith(f"{key} "))


def test_qos_takes_the_busiest_disks_and_says_when_and_where(model: HostModel, esxtop: Path) -> None:
    plan = make_plan("qos", None, {"capacity_iops": 1e6, "most_disks": 4}, captured(esxtop)).plan
    rates = {f"vm{1 + i // 2:03} scsi{i % 2}:0": row for i, row in enumerate(model.disk_iops())}
    busiest = sorted(rates, key=lambda name: -p95(rates[name]))
    assert [row[0] for row in plan.sheets[0].rows] == busiest[:4]
    assert busiest[0].startswith("vm002")
    for name in busiest[:4]:
        assert plan.figure(f"{name} gets").value == pytest.approx(p95(rates[name]), abs=0.1)
    assert plan.evidence[0].startswith(f"95th percentiles of 4 disks, {WINDOW}, ")
    assert "capture.csv; less than a day" in plan.evidence[0]
    left = sum(rates[name].mean() for name in busiest[4:]) / sum(row.mean() for row in rates.values())
    assert plan.evidence[5] == f"2 disks with less, {100 * left:.2g} % of the operations, are left out (most_disks)"


def test_the_simulator_agrees_on_recorded_disks(esxtop: Path) -> None:
    inputs = {"capacity_iops": 4000.0, "most_disks": 3, "is_checked": True}
    apart = make_plan("qos", None, inputs, captured(esxtop)).plan.figure("simulated apart by").value
    assert isinstance(apart, float)
    assert apart < 2.0


def test_size_and_outstanding_are_those_of_the_model(model: HostModel, esxtop: Path) -> None:
    made, told = recorded_disks(captured(esxtop), 6)
    assert made[0]["block_kib"] == pytest.approx(8.0, rel=0.01)  # 1/128 MiB for each operation
    disk = {"vm002 scsi0:0": 2, "vm002 scsi1:0": 3}[made[0]["name"]]
    under_way = model.disk_iops()[disk] * model.disk_latency()[disk] / 1000.0
    assert made[0]["outstanding"] == max(1, round(p95(under_way)))
    assert "outstanding (rate x latency)" in told[1]
    wanted = p95(model.disk_iops()[disk])
    assert made[0]["wanted_iops"] == pytest.approx(wanted, rel=1e-3)


def test_a_guest_s_disks_have_their_queue_and_what_the_inventory_grants(model: HostModel, tmp_path: Path) -> None:
    (tmp_path / "iostat.txt").write_text(iostat_text(model, 1))
    (tmp_path / "links.yaml").write_text(inventory_text(model, 1))
    granted = {"name": "scsi0:0", "iops_limit": 900, "shares": 2000, "size_gib": 100, "label": "Hard disk 2"}
    own = inventory(tmp_path / "limits.yaml", tier="1", disks=[granted])
    capture = captured(tmp_path / "iostat.txt", tmp_path / "links.yaml", own)
    plan = make_plan("qos", None, {"capacity_iops": 1e6, "cloud": "aws-gp3"}, capture).plan
    rows = {row[0]: row for row in plan.sheets[0].rows}
    assert rows["vm002 sda"][3] == "limit"
    assert rows["vm002 sdb"][3] == "nothing"
    assert any("outstanding (as recorded)" in line for line in plan.evidence)
    assert {bend.rule for bend in plan.bends} >= {"tier 1 databases have no IOPS limit"}
    text = {snippet.tool: snippet.text for snippet in plan.snippets}
    assert 'Get-HardDisk -VM "vm002" -Name "Hard disk 2") -NumDiskShares 2000' in text["powercli"]
    assert 'Get-SpbmCapability "VSAN.iopsLimit") -Value 900' in text["spbm"]
    assert 'Set-SpbmEntityConfiguration (Get-HardDisk -VM "vm002" -Name "Hard disk 2")' in text["spbm"]
    assert "-object throttle-group,id=vm002-sda,x-iops-total=900" in text["qemu"]


def test_given_disks_go_over_recorded_ones(esxtop: Path) -> None:
    plan = make_plan("qos", None, {"disks": [{"name": "own"}], "latency_ms": 3.0}, captured(esxtop)).plan
    assert plan.evidence == ()
    assert [row[0] for row in plan.sheets[0].rows] == ["own"]
    assert any("so by default: capacity_iops 1200.0." in line for line in plan.assumptions)


@pytest.mark.parametrize(
    ("cloud", "limit", "command", "rule"),
    [
        ("aws-gp3", 10_000, "--volume-type gp3 --iops 10000 --throughput 125", None),
        ("aws-gp3", 80_001, "--iops 80000", "IOPS are within the range of the cloud's disks"),
        ("aws-gp3", 2_999, "--iops 3000", "IOPS are within the range of the cloud's disks"),
        ("azure-premium-v2", 80_000, "--disk-iops-read-write 80000 --disk-mbps-read-write 656", None),
        ("gcp-hyperdisk-balanced", 160_000, "--provisioned-iops=160000 --provisioned-throughput=1250", None),
        ("gcp-hyperdisk-balanced", 160_001, "=160000", "IOPS are within the range of the cloud's disks"),
    ],
)
def test_disks_of_clouds_keep_their_ranges(cloud: str, limit: float, command: str, rule: str | None) -> None:
    disks = [{"name": "db01", "limit_iops": limit}]
    plan = make_plan("qos", None, {"capacity_iops": 1e6, "disks": disks, "cloud": cloud}).plan
    assert command in plan.snippets[-1].text
    assert [bend.rule for bend in plan.bends] == ([] if rule is None else [rule])


def test_a_small_or_wide_disk_of_a_cloud_is_told() -> None:
    small = [{"name": "db01", "wanted_iops": 10_000, "size_gib": 10}]
    plan = make_plan("qos", None, {"capacity_iops": 1e6, "disks": small, "cloud": "aws-gp3"}).plan
    assert plan.bends[0].cost == "db01 is to have 10,000; aws-gp3 has 3,000 to 5,000 at 10 GiB"
    wide = [{"name": "db01", "wanted_iops": 10_000, "block_kib": 256}]
    plan = make_plan("qos", None, {"capacity_iops": 1e6, "disks": wide, "cloud": "aws-gp3"}).plan
    assert plan.bends[0].cost == "db01 moves 2,500 MiB/s at that rate; aws-gp3 gives 2,000"
    assert "--iops 10000 --throughput 2000" in plan.snippets[-1].text


def test_queues_take_the_busiest_machine_and_what_makes_the_whole(model: HostModel, esxtop: Path) -> None:
    plan = make_plan("queues", None, {"array_ports": 1}, captured(esxtop)).plan
    disks = model.disk_iops()
    iops, whole = p95(disks[2] + disks[3]), p95(disks.sum(axis=0))
    first = max(p95(disks[2]), p95(disks[3]))
    luns = model.lun_rate(disks)
    latency = p95((luns * model.davg).sum(axis=0) / luns.sum(axis=0))
    outstanding_of_vm = iops * latency / 1000.0
    assert plan.figure("outstanding of a VM").value == pytest.approx(outstanding_of_vm, abs=0.06)
    assert said(plan, "iops").startswith(f"iops {number(iops)}: 95th percentile of vm002, the busiest, {WINDOW}")
    assert said(plan, "vms").startswith(f"vms {int(np.ceil(whole / iops))}: ")
    assert said(plan, "disks").startswith(f"disks {int(iops / first)}: ")
    assert said(plan, "lun_depth").startswith("lun_depth 32: of naa.")
    assert said(plan, "hosts") == "hosts 1: they run on esx01.example"
    assert any("by default: disk_depth 64" in line for line in plan.assumptions)
    assert not any("array_ports" in line for line in plan.assumptions)


def test_queues_read_depths_and_adapters_of_the_inventory(esxtop: Path, tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    adapters = [{"name": "scsi0", "type": "lsilogicsas"}]
    disks = [{"name": f"scsi0:{i}", "adapter": "scsi0"} for i in range(3)]
    vm = {"name": "vm002", "guest": "db", "adapters": adapters, "disks": disks}
    guest = {"name": "db", "module_parameters": {"vmw_pvscsi.cmd_per_lun": 200, "vmw_pvscsi.ring_pages": 16}}
    host = {"name": "esx01", "devices": [{"name": "naa.1", "queue_depth_count": 48, "competing_worlds_count": 16}]}
    document = {"leadline_inventory": 1, "vms": [vm], "guests": [guest], "hosts": [host]}
    path.write_text(yaml.safe_dump(document))
    plan = make_plan("queues", None, {}, captured(path)).plan
    assert said(plan, "disks").startswith("disks 2: of vm002")  # the third boots
    assert not any(line.startswith("vms") for line in plan.evidence), "no rate to give each of them"
    assert said(make_plan("queues", None, {"iops": 100.0}, captured(path)).plan, "vms").startswith("vms 1: VMs of the")
    assert said(plan, "disk_depth").startswith("disk_depth 32: adapters of vm002 are emulated")
    assert said(plan, "lun_depth").startswith("lun_depth 48: the least there is, of naa.1, ")
    assert said(plan, "competing_depth").startswith("competing_depth 16: ")
    assert [bend.rule for bend in plan.bends][-1] == "disks of databases hang on paravirtual adapters"
    adapters[0]["type"] = "pvscsi"
    path.write_text(yaml.safe_dump(document))
    plan = make_plan("queues", None, {"lun_depth": 128}, captured(path)).plan
    assert said(plan, "disk_depth") == "disk_depth 200: vmw_pvscsi.cmd_per_lun 200 of db"
    assert said(plan, "adapter_depth") == "adapter_depth 512: vmw_pvscsi.ring_pages 16 of db"
    assert not any(line.startswith("lun_depth") for line in plan.evidence), "what is given goes over it"


def test_a_host_adapter_can_be_the_narrow_queue() -> None:
    inputs = {"iops": 20_000, "vms": 8, "luns": 8, "disks": 4, "host_adapters": 1, "host_adapter_depth": 256}
    plan = make_plan("queues", None, {**inputs, "competing_depth": 64}).plan
    assert plan.figure("narrow queue").value == "a host adapter's queue"  # 8 x 40 on 256
    assert plan.figure("rate it leaves a VM").value == 16_000
    assert plan.infeasible is not None, "its driver sets the depth"
    assert make_plan("queues", None, {"lun_depth": 16, "vms": 2, "iops": 100}).plan.infeasible is None


def test_layout_reads_the_disks_with_data(model: HostModel, esxtop: Path, tmp_path: Path) -> None:
    disks = [{"name": "scsi0:0", "role": "data", "size_gib": 700}, {"name": "scsi1:0", "role": "wal", "size_gib": 50}]
    own = inventory(tmp_path / "roles.yaml", disks=disks)
    plan = make_plan("layout", None, {}, captured(esxtop, own)).plan
    reads, writes = p95(model.disk_reads[2]), p95(model.disk_writes[2])
    assert plan.figure("share of writes").value == pytest.approx(100 * writes / (reads + writes), abs=0.1)
    assert said(plan, "reads_per_s").startswith(
        f"reads_per_s {number(reads)}: disks of data, 95th percentile of the sum"
    )
    assert WINDOW in said(plan, "writes_per_s")
    assert said(plan, "data_gib") == "data_gib 700: vm002 scsi0:0"
    assert said(plan, "log_gib") == "log_gib 50: vm002 scsi1:0"
    assert any("by default: engine postgresql, temp_gib 200.0." in line for line in plan.assumptions)
    bare = make_plan("layout", None, {}, captured(esxtop)).plan
    assert "all disks, as none is known to hold data" in said(bare, "reads_per_s")
    assert number(p95(model.disk_reads.sum(axis=0))) in said(bare, "reads_per_s")


def test_partitions_begin_at_stripe_units() -> None:
    assert begin_kib(LayoutInputs(stripe_kib=64)) == 1024
    assert begin_kib(LayoutInputs(stripe_kib=192)) == 3072
    bent = make_plan("layout", None, {"engine": "sqlserver", "stripe_kib": 96}).plan
    assert [bend.rule for bend in bent.bends] == [
        "stripe unit / allocation unit is a whole number",
        "the load is carried while a device is replaced",
    ]
    assert "-Alignment 3145728" in bent.snippets[1].text
    assert "-AllocationUnitSize 65536" in bent.snippets[1].text


def test_backup_reads_an_rvtools_workbook_and_the_busiest_writer(
    model: HostModel, esxtop: Path, tmp_path: Path
) -> None:
    book = rvtools_workbook.write(tmp_path / "rvtools.xlsx", rvtools_workbook.estate(30))
    capture = captured(book)
    stores = capture.inventory.of_kind(EntityKind.DATASTORE)
    used = sum(capture.inventory.get(s, "capacity_gib") - capture.inventory.get(s, "free_gib") for s in stores)
    plan = make_plan("backup", None, {}, captured(book, esxtop)).plan
    assert said(plan, "data_tib").startswith(
        f"data_tib {number(used / 1024)}: capacity less free space of 2 datastores"
    )
    assert said(plan, "vms").startswith("vms 33: ")  # 30 and the three recorded
    written = [p95(model.disk_writes[2 * vm : 2 * vm + 2].sum(axis=0) / 128) for vm in range(3)]
    assert said(plan, "vm_write_mib_per_s").startswith(f"vm_write_mib_per_s {number(max(written))[:4]}")
    assert WINDOW in said(plan, "vm_write_mib_per_s")
    assert make_plan("protect", None, {}, capture).plan.evidence == (said(plan, "data_tib"),)
    given = make_plan("backup", None, {"data_tib": 3.0, "vms": 5, "vm_write_mib_per_s": 1.0}, captured(book, esxtop))
    assert given.plan.evidence == ()


def test_disks_that_machines_share_make_a_cluster(tmp_path: Path) -> None:
    shared = inventory(tmp_path / "rac.yaml", disks=[{"name": "scsi1:0", "sharing": "multi-writer", "size_gib": 512}])
    plan = make_plan("backup", None, {}, captured(shared)).plan
    assert said(plan, "is_cluster") == "is_cluster True: vm002 scsi1:0 is shared between machines"
    assert "clusters are not quiesced from outside" in {bend.rule for bend in plan.bends}
    assert said(plan, "data_tib").startswith("data_tib 0.5: sizes of 1 virtual disks, thin ones hold less, ")


def test_consolidation_s_operations_by_hand() -> None:
    """200 MiB/s in blocks of 64 KiB are 3,200 reads and 3,200 writes."""
    assert consolidation_iops(Backup(consolidate_mib_per_s=200, consolidate_kib=64)) == pytest.approx(6400)
    bent = make_plan("backup", None, {"consolidate_spare_iops": 6399.0}).plan
    assert "consolidation fits what the datastore has to spare" in {bend.rule for bend in bent.bends}
    assert make_plan("backup", None, {"consolidate_spare_iops": 6400.0}).plan.bends != bent.bends
    rows = {row[0]: float(row[3]) for row in bent.sheets[1].rows}
    assert rows["3 copies"] == pytest.approx(rows["3+2"] * 1.8, rel=1e-3)


def of_guest(**rates: tuple[str, float]) -> Capture:
    """A guest's disks at a steady rate: name = metric and value."""
    builder = CaptureBuilder("day.txt", "test", "iostat")
    times = np.arange(1, 11, dtype=np.int64) * NS_PER_S
    for name, (metric, rate) in rates.items():
        disk = Entity(EntityKind.BLOCK_DEVICE, name.replace("_", "-"), GUEST)
        builder.add_series(metric, disk, times, np.full(10, rate))
    return builder.build()


def test_partitions_and_stacked_devices_are_not_counted_twice() -> None:
    rate = "disk_iops"
    capture = of_guest(sda=(rate, 100.0), sda1=(rate, 100.0), dm_0=(rate, 90.0), sdb=(rate, 5.0))
    load = total(capture, OPERATIONS, EntityKind.BLOCK_DEVICE)
    assert load is not None
    assert load.peak == pytest.approx(105.0)
    alone = total(of_guest(dm_0=(rate, 90.0)), OPERATIONS, EntityKind.BLOCK_DEVICE)
    assert alone is not None
    assert alone.peak == pytest.approx(90.0)


def test_what_was_not_measured_is_not_zero() -> None:
    capture = of_guest(sda=("disk_iops", 100.0), sdb=("disk_iops", np.nan))
    (group,) = series_of(capture, OPERATIONS, EntityKind.BLOCK_DEVICE)
    assert set(of_each(capture, [group])) == {Entity(EntityKind.BLOCK_DEVICE, "sda", GUEST)}
    assert outstanding(capture, group) is None
    made, told = recorded_disks(capture, 9)
    assert [set(disk) for disk in made] == [{"name", "wanted_iops", "vm"}]
    assert told[1].endswith("size not recorded, outstanding not recorded")
    (alone,) = by_owner([group.take([1])], lambda _: GUEST)
    assert np.isnan(alone.values).all()
    with pytest.raises(UsageError, match="nothing that this planner plans from"):
        make_plan("qos", None, {}, of_guest(sda=("disk_iops", np.nan)))
    given = make_plan("layout", None, {"data_gib": 500.0}, capture).plan
    assert given.evidence == ()
    assert "Nothing was taken from day.txt: the answer is for the inputs alone." in given.assumptions
    assert stored_gib(capture.inventory) is None


def test_an_idle_recording_and_an_unlimited_disk_break_nothing(tmp_path: Path) -> None:
    host = Entity(EntityKind.HOST, "esx01")
    builder = CaptureBuilder("idle.csv", "test", "esxtop")
    times = np.arange(1, 11, dtype=np.int64) * NS_PER_S
    for metric, value in (("disk_iops", 5.0), ("disk_device_latency_ms", 0.0), ("disk_queue_depth_count", 0.0)):
        builder.add_series(metric, Entity(EntityKind.DEVICE, "naa.1", host), times, np.full(10, value))
    builder.inventory.add(Entity(EntityKind.DEVICE, "naa.1", host), "a.yaml", shares=0, iops_limit=-1)
    idle = builder.build()
    for name in ("qos", "queues"):
        plan = make_plan(name, None, {}, idle).plan
        assert not any(line.startswith(("latency_ms", "lun_depth")) for line in plan.evidence)
        assert any("latency_ms" in line and "by default" in line for line in plan.assumptions)
    assert set(recorded_disks(idle, 1)[0][0]) == {"name", "wanted_iops"}


def test_only_what_is_known_and_not_given_is_filled() -> None:
    found = [
        RecordedInput("iops", 10.0, "a"),
        RecordedInput("iops", 20.0, "b"),
        RecordedInput("vms", None, "c"),
        RecordedInput("latency_ms", 1.0, "d"),
    ]
    own, told = filled(Queues(latency_ms=9.0), [RecordedInput("iops", float("nan"), "e"), *found])
    assert (own.iops, own.latency_ms, own.vms) == (10.0, 9.0, 1)
    assert told == ("iops 10: a",)
    assert by_default(own, ("iops", "latency_ms", "vms")) == (
        "Neither given nor in the recordings, so by default: vms 1.",
    )
    assert by_default(own, ("iops",)) == ()
    assert filled(Qos(), [])[1] == ()


def test_real_recordings_are_read(samples: Path) -> None:
    """pgbench with 480 clients on an NVMe disk; rates and queues read off the text itself."""
    log = samples / "sysstat" / "gregs1104__pgbench-tools__pgbenchtools_480_iostat.log"
    lines = [line.split()[2:] for line in log.read_text().splitlines()]
    header = next(line for line in lines if line[:1] == ["Device"])
    rows = [dict(zip(header[1:], map(float, line[1:]), strict=True)) for line in lines if line[:1] == ["nvme2n1"]][1:]
    rate = p95([row["r/s"] + row["w/s"] for row in rows])
    capture = captured(log)
    for name in ("qos", "queues", "layout", "backup"):
        plan = make_plan(name, None, {}, capture).plan
        assert any("2020-08-28 21:33:58 to 2020-08-28 21:43:57 UTC" in line for line in plan.evidence), name
    (made,), told = recorded_disks(capture, 1)
    assert made["name"] == "rising nvme2n1"
    assert made["wanted_iops"] == pytest.approx(rate)
    assert made["outstanding"] == round(p95([row["aqu-sz"] for row in rows]))
    assert "outstanding (as recorded)" in told[1]
    plan = make_plan("queues", None, {}, capture).plan
    assert any("Disks of rising are NVMe" in line for line in plan.assumptions)
    esx = samples / "esxtop" / "rach-sharp__esxtopd__small-esxtop-data.csv"
    plan = make_plan("queues", None, {}, captured(esx)).plan
    assert said(plan, "lun_depth").startswith("lun_depth 31: of t10.ATA")


def test_the_command_takes_recordings(esxtop: Path) -> None:
    done = CliRunner().invoke(build_app(), ["plan", "qos", str(esxtop), "--set", "most_disks=2"])
    assert done.exit_code == 0, done.output
    assert "4 disks with less" in " ".join(done.stdout.split())
