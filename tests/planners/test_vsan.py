"""vSAN against the worked examples of its sources, and its write buffer against the simulator."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from leadline.app.measure.simulated import outcome_of
from leadline.app.planning import make_plan
from leadline.core.contracts.planner import Plan, PlanContext
from leadline.core.model.capture import NS_PER_S, Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.planners._vsan.buffer import DiskGroupLoad, group_of, simulated_s
from leadline.planners._vsan.endurance import class_of, drive_writes_per_day, tbw
from leadline.planners._vsan.inputs import Vsan
from leadline.planners._vsan.network import port_buffer_mb, site_mbit, witness_rtt_max_ms
from leadline.planners._vsan.protection import ObjectLayout, erasure, layouts, mirror, protected_gb
from leadline.planners._vsan.sizing import cache_needed_gb
from leadline.planners.vsan import META


def planned(**changed: object) -> Plan:
    return make_plan("vsan", None, {**META.example, **changed}).plan


def rules_bent(plan: Plan) -> set[str]:
    return {bend.rule for bend in plan.bends}


@pytest.mark.parametrize(
    ("layout", "factor", "hosts"),
    [
        (mirror(1), 2.0, 3),
        (mirror(2), 3.0, 5),
        (mirror(3), 4.0, 7),
        (erasure(1, 4, is_esa=False), 4 / 3, 4),
        (erasure(2, 6, is_esa=False), 1.5, 6),
        (erasure(1, 5, is_esa=True), 1.5, 3),
        (erasure(1, 6, is_esa=True), 1.25, 5),
    ],
)
def test_capacity_and_hosts_are_the_documentations(layout: ObjectLayout, factor: float, hosts: int) -> None:
    assert layout.factor == pytest.approx(factor)
    assert layout.hosts == hosts


@pytest.mark.parametrize(
    ("ftt", "method", "hosts", "stored"),
    [(1, "mirror", 4, 45.24), (1, "erasure", 6, 28.275), (2, "erasure", 7, 33.93), (1, "erasure", 4, 33.93)],
)
def test_space_of_express_objects_is_that_of_the_kb(ftt: int, method: str, hosts: int, stored: float) -> None:
    """Broadcom KB 394410: 20 GB, thick."""
    own = Vsan(
        architecture="esa",
        version="8.0U2",
        ftt=ftt,
        data_method=method,
        log_method=method,
        data_gb=17,
        log_gb=1,
        temp_gb=1,
        system_gb=1,
    )
    assert protected_gb(own, hosts) == pytest.approx(stored, abs=0.005)


def test_the_ten_percent_are_of_what_is_used_before_copies() -> None:
    """mrvsan.com: 25.2 TB usable in three hosts of two groups need 420 GB for each group."""
    own = Vsan(media="hybrid", data_gb=25_200 - 300, log_gb=100, temp_gb=100, system_gb=100, working_set_gb=1)
    assert cache_needed_gb(own) / 6 == pytest.approx(420)
    assert cache_needed_gb(own.model_copy(update={"ftt": 2})) == cache_needed_gb(own)
    assert cache_needed_gb(own.model_copy(update={"used_pct": 50.0})) == pytest.approx(1260)


def test_hybrid_caches_hold_the_working_set_twice() -> None:
    own = Vsan(media="hybrid", working_set_gb=700)
    assert cache_needed_gb(own) == 1400
    before = own.model_copy(update={"media": "all-flash", "version": "6.5"})
    assert cache_needed_gb(before) == pytest.approx(250)
    plan = planned(media="hybrid", tier="tier-2", working_set_gb=8000.0, write_mb_per_s=160.0, read_iops=2000.0)
    assert plan.figure("cache needed").value == 16_000
    cache = plan.figure("cache").value
    assert isinstance(cache, int)
    assert cache >= 16_000


@pytest.mark.parametrize(
    ("given", "is_by_size", "buffer_gb"),
    [
        ({"version": "6.5"}, True, 600),
        ({"version": "6.7"}, False, 600),
        ({"version": "6.7U3"}, False, 600),
        ({"version": "7.0U3"}, False, 600),
        ({"version": "7.0 U3"}, False, 600),
        ({"version": 8.0}, False, 600),
        ({"version": "8.0U2", "is_large_buffer": True}, False, 1600),
        ({"version": "8.0 U2", "is_large_buffer": True}, False, 1600),
        ({"version": 9.0, "is_large_buffer": True}, False, 1600),
        ({"version": "8.0U3", "media": "hybrid", "tier": "tier-2"}, True, 576),
        ({"version": 8.0, "architecture": "esa"}, False, None),
    ],
)
def test_a_cache_that_only_buffers_writes_is_not_sized_by_what_is_stored(
    given: dict[str, Any], is_by_size: bool, buffer_gb: float | None
) -> None:
    plan = planned(**{"cache_gb": 1920.0, **given})
    figures = {figure.name: figure for figure in plan.figures}
    assert ("cache needed" in figures) == ("cache needed per group" in figures) == is_by_size
    assert any("10 %" in line for line in plan.assumptions) == (not is_by_size and buffer_gb is not None)
    assert ("write buffer per group" in figures) == (buffer_gb is not None)
    if buffer_gb is not None:
        assert figures["write buffer per group"].value == pytest.approx(buffer_gb)
    assert "cache is 10 % of what is used before copies" not in rules_bent(plan) or is_by_size


@pytest.mark.parametrize("text", ["none", "", "vSAN"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no version as"):
        planned(version=text)


def test_endurance_is_the_documentations_example() -> None:
    """VMware Validated Design 4.1: 0.4 TB at 10 drive writes per day are 7,300 TB in five years."""
    written = tbw(0.4e6 * 10 / 86_400)
    assert written == pytest.approx(7300)
    assert drive_writes_per_day(written, 400) == pytest.approx(10)
    assert [class_of(tb, "C") for tb in (100, 3650, 3651, 7301)] == ["C", "C", "D", "beyond D"]


def test_sites_are_linked_as_the_sizing_guide_says() -> None:
    """10,000 writes of 4 KB are 40 MB/s: 560 Mbit/s."""
    assert site_mbit(40.0) == pytest.approx(560)
    assert [witness_rtt_max_ms(hosts) for hosts in (2, 20, 22)] == [500, 200, 100]
    plan = planned(is_stretched=True, write_mb_per_s=1000.0, site_rtt_ms=6.0)
    assert plan.figure("link between sites").value == 14_000
    assert plan.figure("hosts needed by policies").value == 6
    assert plan.figure("stored with protection").value == 40_000
    assert {"sites are within 5 ms", "the link between sites has 14 Gbit/s"} <= rules_bent(plan)
    assert '"VSAN.subFailuresToTolerate") -Value 1' in plan.snippets[0].text


@pytest.mark.parametrize(("fill", "rate", "copies"), [(0.0, 800.0, 2), (0.3, 600.0, 2), (0.5, 500.0, 3)])
def test_a_buffer_fills_as_the_arithmetic_says(fill: float, rate: float, copies: int) -> None:
    """B (1 - f) / (rate x copies - drain), destaged from the start and slowed only when full."""
    drain, size_gb = 2 * 100.0, 600.0
    expected = size_gb * 1000 * (1 - fill) / (rate * copies - drain)
    outcome = outcome_of(
        {
            "name": "fill",
            "system": "cache-tiers",
            "timing": {"warm_up_s": 0, "measure_s": 1200, "window_s": 10},
            "workload": {"io": [{"name": "w", "block": "64k", "read_pct": 0, "rate_iops": rate * 1e6 / 65_536}]},
            "groups": [
                {
                    "name": "group",
                    "cache": {"gb": 800, "mb_per_s": 2000},
                    "devices": {"count": 2, "mb_per_s": 100},
                    "fill_pct": 100 * fill,
                }
            ],
            "protection": {"copies": copies},
            "destage_from_pct": 0,
            "slow_from_pct": 100,
        }
    )
    assert outcome.measure("front-end", "slowed_after_s").value == pytest.approx(expected, rel=0.005)
    group = DiskGroupLoad(size_gb, 2000.0, drain, rate * copies)
    assert group.absorbed_s(fill, destage_from=0.0, slow_from=1.0) == pytest.approx(expected)


@pytest.mark.parametrize("media", ["all-flash", "hybrid"])
@pytest.mark.parametrize(("rate", "reads", "fill"), [(900.0, 0.0, 0.0), (1500.0, 1500.0, 30.0), (700.0, 300.0, 60.0)])
def test_peaks_are_absorbed_as_simulated(media: str, rate: float, reads: float, fill: float) -> None:
    own = Vsan(media=media, fill_pct=fill, device_mb_per_s=100, device_access_ms=0.1, burst_s=900)
    backend = (rate, reads, 8192.0)
    told = group_of(own, backend, 3, 1).absorbed_s(fill / 100)
    assert simulated_s(own, backend, 3, 1, PlanContext(None, outcome_of)) == pytest.approx(told, rel=0.01)


def test_slow_writes_never_fill_a_buffer_and_fast_ones_meet_the_device() -> None:
    assert DiskGroupLoad(600, 2000, 500, 499).absorbed_s(0.0) == inf
    assert DiskGroupLoad(600, 2000, 500, 2000).absorbed_s(0.0) == 0.0


def test_the_answer_absorbs_the_peak_and_no_smaller_one_does() -> None:
    hard = {"device_mb_per_s": 60.0, "write_mb_per_s": 8000.0, "burst_s": 3000.0}
    plan = planned(**hard)
    seconds = plan.figure("peak absorbed").value
    assert isinstance(seconds, int)
    assert seconds >= 3000 * 0.99
    assert seconds == pytest.approx(plan.figure("peak absorbed, closed form").value, rel=0.01)
    hosts = plan.figure("hosts").value
    assert isinstance(hosts, int)
    assert hosts > 4, "the policies ask for four: it is the peak that binds"
    fewer = planned(**hard, hosts=hosts - 1)
    assert fewer.infeasible is not None
    assert "write buffers absorb" in fewer.infeasible.constraint
    assert fewer.infeasible.nearest.startswith(f"{hosts} hosts of ")


def test_buffers_are_capped_by_version() -> None:
    sizes = [
        planned(version=version, is_large_buffer=large, cache_gb=1920.0).figure("write buffer per group").value
        for version, large in (("7.0U3", True), ("8.0", False), ("8.0U1", True))
    ]
    assert sizes == [600, 600, 1600]
    assert planned(media="hybrid", tier="tier-2", cache_gb=1000.0).figure("write buffer per group").value == 300


def test_switch_ports_buffer_what_other_hosts_send_at_once() -> None:
    """Senders deliver a MiB each in the time in which one MiB leaves: the other senders' wait."""
    assert port_buffer_mb(Vsan(), 10, 10.0) == pytest.approx(8 * 1.048576)
    assert port_buffer_mb(Vsan(), 3, 25.0) == pytest.approx(3.125)  # 25 Gbit/s x 1 ms, above the one MiB
    shared = {"switch_buffers": "shared", "cache_gb": 600.0}
    plan = planned(**shared, switch_buffer_mb=6.0)
    needed = plan.figure("buffer of a switch port").value
    assert isinstance(needed, float)
    assert needed > 3.0
    bend = next(own for own in plan.bends if "switch ports buffer" in own.rule)
    assert bend.cost.startswith("3 MB, half of the switch's")
    assert rules_bent(planned(**shared, switch_buffer_mb=32.0)) == set()
    assert rules_bent(planned(cache_gb=600.0, switch_buffer_mb=32.0)) == set()
    assert rules_bent(planned(**shared)) == {"switches have deep buffers of each port"}


def test_tiers_have_their_policies() -> None:
    first = planned()
    assert {row[3] for row in first.sheets[0].rows} == {"RAID-1 FTT 1"}
    assert {row[4] for row in first.sheets[0].rows} == {"100"}
    second = planned(tier="tier-2", engine="postgresql", hosts=6)
    by_disk = {row[0]: row for row in second.sheets[0].rows}
    assert by_disk["pgdata-1"][3] == "RAID-5 FTT 1"
    assert by_disk["pg_wal"][3] == "RAID-1 FTT 1"
    policies = second.snippets[0].text
    assert "postgresql-tier-2-log" in policies
    assert "RAID-5/6 (Erasure Coding) - Capacity" in policies
    warehouse = planned(tier="data-warehouse", engine="oracle", hosts=6)
    assert {row[0]: row[4] for row in warehouse.sheets[0].rows if row[4] != "0"} == {"redo": "100", "temp": "100"}
    assert "-SpaceCompressionEnabled $true" in warehouse.snippets[2].text
    assert "-SpaceCompressionEnabled $false" in first.snippets[2].text
    assert [layout.raid for layout in layouts(Vsan(tier="tier-2", ftt=2), 7)] == ["RAID-6", "RAID-1"]


def test_bent_rules_are_told() -> None:
    assert rules_bent(planned(cache_gb=600.0)) == set()
    bent = planned(
        hosts=4,
        groups=1,
        devices=7,
        data_method="erasure",
        log_method="erasure",
        stripes=2,
        iops_limit=5000,
        efficiency="dedup",
        space_reservation_pct=0.0,
        nic_gbit=10.0,
        switch_buffers="shared",
        cache_tbw=365.0,
        burst_s=60.0,
    )
    assert bent.infeasible is None
    assert rules_bent(bent) >= {
        "one host more than policies need",
        "two or more disk groups per host",
        "logs and tier 1 data are on RAID-1",
        "disks of databases are thick",
        "one stripe per object",
        "tier 1 has no IOPS limit",
        "no deduplication or compression with tier 1",
        "vSAN has links of 25 Gbit/s",
        "switches have deep buffers of each port",
        "cache devices endure what is written",
        "write buffers use a cache device whole",
    }
    assert "tier 1 is on all-flash" in rules_bent(planned(media="hybrid", read_iops=2000.0))


@pytest.mark.parametrize(
    ("changed", "constraint"),
    [
        ({"architecture": "esa"}, "begins with 8.0, not 7.0U3"),
        ({"architecture": "esa", "version": "8.0", "media": "hybrid"}, "no hybrid clusters"),
        ({"media": "hybrid", "data_method": "erasure"}, "erasure codes need all-flash"),
        ({"ftt": 3, "data_method": "erasure"}, "no erasure code tolerates 3"),
        ({"devices": 8}, "8 devices in a disk group, at most 7"),
        ({"hosts": 2}, "2 hosts; policies need 3"),
        ({"is_stretched": True, "hosts": 7}, "the same at both sites"),
        ({"data_gb": 900_000.0}, "GB raw of"),
    ],
)
def test_what_does_not_fit_is_told_with_the_nearest(changed: dict[str, object], constraint: str) -> None:
    plan = planned(**changed)
    assert plan.infeasible is not None
    assert constraint in plan.infeasible.constraint
    assert plan.infeasible.nearest


def test_an_average_above_the_peak_is_refused() -> None:
    with pytest.raises(UsageError, match="writes of 300 MB/s on average, above their peak of 200"):
        planned(write_mb_per_s=200.0, write_mean_mb_per_s=300.0)


def test_express_clusters_have_no_cache() -> None:
    plan = planned(architecture="esa", version="8.0U2")
    names = {figure.name for figure in plan.figures}
    assert not names & {"cache", "disk groups per host", "peak absorbed", "written to a cache device"}
    assert plan.figure("link of a host").value >= 25  # type: ignore[operator]


def recorded() -> Capture:
    builder = CaptureBuilder("week.csv", "test", "esxtop")
    times = np.arange(1, 101, dtype=np.int64) * 20 * NS_PER_S
    for number in (1, 2):
        vm = Entity(EntityKind.VM, f"db0{number}", Entity(EntityKind.HOST, "esx01"))
        disk = Entity(EntityKind.VIRTUAL_DISK, "scsi0:0", vm)
        ramp = np.linspace(1.0, 100.0, 100) * number
        for metric, factor in (
            ("disk_write_mib_per_s", 1.0),
            ("disk_read_mib_per_s", 2.0),
            ("disk_writes_per_s", 64.0),
            ("disk_reads_per_s", 128.0),
        ):
            builder.add_series(metric, disk, times, ramp * factor)
    # The same requests, counted again below: not added.
    builder.add_series("disk_write_mib_per_s", Entity(EntityKind.DEVICE, "naa.1"), times, np.full(100, 1e6))
    return builder.build()


def test_rates_come_from_the_recording_and_its_window_is_told() -> None:
    plan = make_plan("vsan", None, {"machines": 2}, recorded()).plan
    peak = np.percentile(np.linspace(3.0, 300.0, 100), 95) * 2**20 / 1e6
    assert plan.figure("written by devices at peak").value == pytest.approx(2 * peak, abs=0.1)
    assert plan.evidence[0].startswith(
        f"{peak:,.4g} MB/s written: 95th percentile of the sum of 2 of kind virtual-disk"
    )
    assert "1970-01-01 00:00:20 to 1970-01-01 00:33:20 UTC, week.csv" in plan.evidence[0]
    assert any("on average, same window" in line for line in plan.evidence)
    mean = tbw(2 * 151.5 * 2**20 / 1e6 / 8)
    assert plan.figure("hosts").value == 4
    groups = plan.figure("disk groups per host").value
    assert isinstance(groups, int)
    assert plan.figure("written to a cache device").value == pytest.approx(mean * 8 / (4 * groups), rel=1e-3)


def test_given_rates_go_over_the_recording_and_the_same_twice_is_not_added() -> None:
    given = make_plan("vsan", None, {"write_mb_per_s": 10.0}, recorded()).plan
    assert given.figure("written by devices at peak").value == 20
    assert not any("written" in line for line in given.evidence)
    once = make_plan("vsan", None, {}, recorded()).plan
    twice = make_plan("vsan", None, {}, Capture.merged([recorded(), recorded()])).plan
    name = "written by devices at peak"
    assert twice.figure(name).value == once.figure(name).value


def test_the_inventory_s_cluster_fills_what_is_not_given() -> None:
    builder = CaptureBuilder("site.yaml", "test", "inventory")
    cluster = Entity(EntityKind.CLUSTER, "prod")
    builder.inventory.add(cluster, "site.yaml", vsan_version="8.0U2", vsan_esa=True, vsan_working_set_gib=500.0)
    plan = make_plan("vsan", None, {}, builder.build()).plan
    assert "cache" not in {figure.name for figure in plan.figures}
    assert "architecture esa: cluster prod, site.yaml" in plan.evidence
    given = make_plan("vsan", None, {"architecture": "osa", "version": "7.0"}, builder.build()).plan
    assert "cache" in {figure.name for figure in given.figures}
    assert given.evidence == ("working_set_gb 536.9: cluster prod, site.yaml",)
    builder.inventory.add(Entity(EntityKind.CLUSTER, "other"), "site.yaml", vsan_enabled=True)
    assert make_plan("vsan", None, {"version": "8.0"}, builder.build()).plan.evidence == ()
    with pytest.raises(UsageError, match="nothing that this planner plans from"):
        make_plan("vsan", None, {}, builder.build())


@pytest.mark.parametrize("ftt", [1, 2])
@pytest.mark.parametrize(
    "kind",
    [
        {"tier": "tier-2"},
        {"tier": "data-warehouse", "reduction": 1.5},
        {"architecture": "esa", "version": "8.0"},
        {"media": "hybrid", "tier": "tier-2", "read_iops": 2000.0, "device_mb_per_s": 120.0},
        {"is_stretched": True},
    ],
)
def test_more_data_or_writes_never_need_fewer_hosts(kind: dict[str, object], ftt: int) -> None:
    for key, values in (("data_gb", (500, 20_000, 60_000, 100_000, 150_000)), ("write_mb_per_s", (200, 3000, 9000))):
        plans = [planned(**kind, ftt=ftt, **{key: value}) for value in values]
        hosts = [64 if plan.infeasible else plan.figure("hosts").value for plan in plans]
        assert hosts == sorted(hosts)
        assert key != "data_gb" or hosts[-1] != hosts[0], "the last needs more than the first"
        assert plans[0].infeasible is None


def test_unknown_rates_are_not_sized() -> None:
    plan = make_plan("vsan", None, {}).plan
    assert any("Writes are not known" in line for line in plan.assumptions)
    names = {figure.name for figure in plan.figures}
    assert not names & {"peak absorbed", "link of a host", "endurance class of cache devices"}


def test_a_warehouse_reserves_log_and_temporary_space_but_not_data() -> None:
    """The article allocates logs beforehand for every tier; reserved space cannot be reduced."""
    plan = make_plan("vsan", None, {"tier": "data-warehouse", "hosts": 6, "reduction": 2.0}).plan
    columns = plan.sheets[0].columns
    reserved = {str(row[0]): row[columns.index("reserved %")] for row in plan.sheets[0].rows}
    assert reserved["log"] == reserved["tempdb"] == "100"
    assert {value for name, value in reserved.items() if name not in ("log", "tempdb")} == {"0"}
    policies = plan.snippets[0].text.split("New-SpbmStoragePolicy")
    kept = [text for text in policies if '"VSAN.proportionalCapacity") -Value 100' in text]
    assert [text.split()[1] for text in kept] == ["sqlserver-data-warehouse-log", "sqlserver-data-warehouse-temp"]
    whole = make_plan("vsan", None, {"tier": "data-warehouse", "hosts": 6, "reduction": 1.0}).plan
    saved_gb = float(whole.figure("stored with protection").value) - float(plan.figure("stored with protection").value)
    assert saved_gb == pytest.approx(2100 / 2 * 4 / 3, abs=2)


def test_disk_groups_on_one_controller_are_lost_together() -> None:
    """Three groups of two devices on one controller, on two, and on three."""
    shape = {"hosts": 6, "groups": 3, "devices": 2, "device_gb": 20_000.0, "burst_s": 0.0}
    one = planned(**shape, controllers=1)
    assert one.figure("disk groups lost with a controller").value == 3
    cost = next(bend.cost for bend in one.bends if bend.rule == "disk groups are on separate controllers")
    assert cost == "1 controller for 3 groups: a failed one takes 3 groups, 6 of 6 capacity devices of the host"
    assert planned(**shape, controllers=2).figure("disk groups lost with a controller").value == 2
    apart = planned(**shape)
    assert apart.figure("storage controllers per host").value == 3
    assert apart.figure("disk groups lost with a controller").arithmetic == "of 3, with 2 of 6 capacity devices"
    assert "disk groups are on separate controllers" not in rules_bent(apart)


def test_sata_flash_is_warned_of_by_tier_and_by_place() -> None:
    tier_1 = rules_bent(planned(device_interface="sata", device_read_mb_per_s=530.0))
    assert "tier 1 is on SAS or NVMe devices" in tier_1
    assert "flash is SAS rather than SATA where that is possible" in rules_bent(
        planned(tier="tier-2", device_interface="sata")
    )
    assert "cache devices are SAS or NVMe" in rules_bent(planned(cache_interface="sata", cache_mb_per_s=500.0))
    for interface in ("unknown", "sas", "nvme"):
        bent = rules_bent(planned(device_interface=interface, cache_interface=interface, cache_mb_per_s=1000.0))
        assert not {rule for rule in bent if "SAS" in rule or "link" in rule}


@pytest.mark.parametrize(("interface", "requests", "link"), [("sata", 32, 600), ("sas", 254, 1200)])
def test_an_interface_limits_queue_and_speed(interface: str, requests: int, link: int) -> None:
    plan = planned(device_interface=interface, device_read_mb_per_s=1500.0)
    assert plan.figure("requests a capacity device queues").value == requests
    assert plan.figure("link of a capacity device").value == link
    assert "a capacity device is no faster than its link" in rules_bent(plan)


def test_nvme_has_its_lanes_and_no_storage_controller() -> None:
    """PCIe 3.0: 8 GT/s, 128 of 130 bits, 4 lanes: 3,938 MB/s."""
    plan = planned(device_interface="nvme", device_read_mb_per_s=3900.0)
    assert plan.figure("link of a capacity device").value == 3938
    assert "a capacity device is no faster than its link" not in rules_bent(plan)
    assert "storage controllers per host" not in {figure.name for figure in plan.figures}


def test_the_express_architecture_takes_nvme_only() -> None:
    plan = planned(architecture="esa", version="8.0U2", device_interface="sas")
    assert plan.infeasible is not None
    assert plan.infeasible.constraint == "the Express architecture takes NVMe devices only, not SAS"
