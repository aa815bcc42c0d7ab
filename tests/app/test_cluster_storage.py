"""Simulated clusters from a scenario file to what is shown."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from leadline import _core
from leadline.app.simulate.simulating import Simulated, plan_simulation, simulate
from leadline.core.contracts.scenario import Axis
from leadline.core.model.errors import InputError, LeadlineError
from leadline.faces.cli.main import build_app
from leadline.stores.runs import RunStore
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples" / "scenarios"
SHORT = (Axis("timing.warm_up_s", (2,)), Axis("timing.measure_s", (20,)))
DISK = "{name: ssd, service: 100us, write_service: 50us, mb_per_s: 500}"


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


def simulated(store: RunStore, path: Path, *axes: Axis, policies: tuple[str, ...] = ()) -> list[Simulated]:
    return simulate(plan_simulation(path, axes, policies), store)


def value(own: Simulated, entity: str, name: str) -> float:
    return own.outcome.measure(entity, name).value


def scenario(folder: Path, **changes: Any) -> Path:
    plain: dict[str, Any] = {
        "name": "own",
        "system": "cluster-storage",
        "timing": {"warm_up_s": 1, "measure_s": 10, "window_s": 1},
        "cluster": {"protection": "replicas-2", "chunk": "64m"},
        "nodes": [{"name": "node", "count": 4, "disks": 2, "mb_per_s": 1000}],
        "disks": [yaml.safe_load(DISK)],
        "vms": [{"name": "db", "count": 4, "size": "1g", "workload": {"io": [{"rate_iops": 200, "read_pct": 50}]}}],
        **changes,
    }
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(plain))
    return path


def test_a_code_saves_space_and_costs_small_writes(store: RunStore) -> None:
    copies, code = simulated(store, EXAMPLES / "copies-or-code.yaml", *SHORT, policies=("ec-3+2",))
    assert value(copies, "capacity", "raw_by_data") == pytest.approx(3.0)
    assert value(code, "capacity", "raw_by_data") == pytest.approx(5 / 3)
    assert value(code, "db", "latency_ms_mean") > 1.1 * value(copies, "db", "latency_ms_mean")
    assert value(code, "backup", "mb_per_s") > 1.1 * value(copies, "backup", "mb_per_s")
    assert [part.name for part in copies.run.pooled()] == ["db/io read", "db/io write", "backup/backup write"]


def test_the_share_of_a_rebuild_decides_how_long_it_takes(store: RunStore) -> None:
    times = Axis("timing.measure_s", (120,)), Axis("recovery.share_pct", (20, 80))
    slow, fast = simulated(store, EXAMPLES / "node-failure.yaml", *times)
    assert value(slow, "cluster", "rebuild_s") > 2 * value(fast, "cluster", "rebuild_s")
    assert value(fast, "recovery", "delay_s") == 0.0
    assert value(fast, "recovery", "unreadable_count") == 0
    resync = next(part for part in fast.outcome.series if part.name == "resync_mb_per_s")
    window = 5.0
    assert sum(resync.values) * window == pytest.approx(value(fast, "recovery", "rebuilt_mb"), 1e-6)


def test_what_is_absent_is_waited_for(store: RunStore) -> None:
    late = (Axis("failures.0.state", ("absent",)), Axis("timing.measure_s", (60,)))
    own = simulated(store, EXAMPLES / "node-failure.yaml", *late, Axis("recovery.share_pct", (20,)))[0]
    assert isnan(value(own, "cluster", "rebuild_s"))
    soon = simulated(
        store,
        EXAMPLES / "node-failure.yaml",
        *late,
        Axis("recovery.share_pct", (80,)),
        Axis("recovery.absent_delay", (7,)),
    )[0]
    assert value(soon, "recovery", "delay_s") == pytest.approx(7.0)


def test_density_breaks_the_service_level(store: RunStore) -> None:
    axis = Axis("vms.desktop.count", (20, 60, 100))
    found = simulated(store, EXAMPLES / "vm-density.yaml", *SHORT, axis)
    tails = [value(own, "service-level", "latency_ms_p95_max") for own in found]
    assert tails == sorted(tails)
    assert value(found[0], "service-level", "vms_within_pct") == 100.0
    assert value(found[2], "service-level", "vms_within_pct") < 100.0


def test_limits_hold_guests_and_no_rebuild(store: RunStore, tmp_path: Path) -> None:
    vm = {"name": "db", "count": 4, "size": "1g", "workload": {"io": [{"oio": 16}]}, "iops_limit": 50}
    path = scenario(tmp_path, vms=[vm], failures=[{"at": 1, "what": "node-2"}])
    limited, free = simulated(store, path, Axis("vms.db.iops_limit", (50, None)))
    assert value(limited, "cluster", "iops") == pytest.approx(150, 0.2)  # the VM of the lost node is gone
    assert value(free, "cluster", "iops") > 1000
    # 2 GB in about a second, thousands of times what the limit lets pass
    assert value(limited, "recovery", "rebuilt_mb") / value(limited, "cluster", "rebuild_s") > 300
    assert value(limited, "cluster", "rebuild_s") <= value(free, "cluster", "rebuild_s")


def test_what_goes_wrong_is_said(store: RunStore, tmp_path: Path) -> None:
    nodes = [{"name": "node", "count": 3, "disks": 1, "mb_per_s": 1000}]
    cluster = {"protection": "replicas-3", "chunk": "64m"}
    narrow = scenario(tmp_path, nodes=nodes, cluster=cluster, failures=[{"at": 1, "what": "node-2"}])
    own = simulated(store, narrow)[0]
    assert any("fragments cannot be rebuilt" in note for note in own.outcome.notes)
    both = [{"at": 1, "what": f"node-{number}/{disk}", "state": "absent"} for number in (1, 2) for disk in (1, 2)]
    own = simulated(store, scenario(tmp_path, failures=both))[0]
    assert any("wait for data that cannot be read" in note for note in own.outcome.notes)
    slow = {"streams": 1, "share_pct": 1, "piece": "4k"}
    own = simulated(store, scenario(tmp_path, failures=[{"at": 9, "what": "node-1/2"}], recovery=slow))[0]
    assert any("not done when the run ended" in note for note in own.outcome.notes)
    own = simulated(store, scenario(tmp_path, vms=[_vm(sync_every=1)]))[0]
    assert "db: flushes are not simulated" in own.outcome.notes


def _vm(**stream: Any) -> dict[str, Any]:
    return {"name": "db", "size": "1g", "workload": {"io": [{"rate_iops": 500, **stream}]}}


def test_roles_rates_and_sizes_come_through(store: RunStore, tmp_path: Path) -> None:
    streams = [
        {"name": "data", "rate_iops": {"read": 300, "write": 100}, "block": "8k"},
        {"name": "log", "read_pct": 0, "random_pct": 0, "rate_iops": 50, "block": "64k", "arrivals": "even"},
    ]
    own = simulated(store, scenario(tmp_path, vms=[{"name": "db", "size": "1g", "workload": {"io": streams}}]))[0]
    rates = {part.name: part.per_s for part in own.run.pooled()}
    assert rates["db/data read"] == pytest.approx(300, 0.1)
    assert rates["db/data write"] == pytest.approx(100, 0.2)
    assert rates["db/log write"] == pytest.approx(50, 0.01)
    assert value(own, "cluster", "mb_per_s") == pytest.approx((400 * 8192 + 50 * 65536) / 1e6, 0.1)
    assert abs(value(own, "cluster", "little_imbalance_pct")) < 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cluster": {"protection": "raid-7"}}, "replicas-N, or ec-K"),
        ({"cluster": {"protection": "ec-7+2"}}, "4 nodes with room"),
        ({"failures": [{"at": 1, "what": "node-9"}]}, "no node or disk node-9"),
        ({"nodes": [{"name": "node", "disks": 1, "disk": "tape", "mb_per_s": 1}]}, "no disk tape"),
        ({"vms": [{**_vm(), "nodes": "rack"}]}, "no nodes rack"),
        ({"vms": [_vm(), _vm()]}, "two VMs have the same name"),
        ({"vms": [{**_vm(), "size": "4k"}]}, "room for its largest request"),
        ({"vms": [{"name": "db", "workload": {"network": {}}}]}, "takes streams of io"),
        ({"disks": [{**yaml.safe_load(DISK), "size": "512m"}]}, "nodes with room"),
    ],
)
def test_what_makes_no_cluster_is_refused(
    store: RunStore, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(LeadlineError, match=message):
        simulated(store, scenario(tmp_path, **changes))


def test_a_scheme_has_its_facts_and_no_other_is_one() -> None:
    assert _core.protection_facts("ec-4+2") == (6, 2, 1.5)
    with pytest.raises(_core.CoreError, match="replicas-N"):
        _core.protection_facts("ec-0+1")


def test_the_verb_shows_clusters(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ["simulate", str(scenario(tmp_path, failures=[{"at": 1, "what": "node-2"}])), "--html", str(page)]
    done = CliRunner(env={"LEADLINE_HOME": str(tmp_path)}).invoke(build_app(), [*words, "--compare", "ec-2+1"])
    assert done.exit_code == 0, done.output
    assert "rebuild" in done.output
    assert "recovery: " in done.output
    assert "cluster.protection" in page.read_text() or "ec-2+1" in page.read_text()


def test_a_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    path.write_text(path.read_text().replace("mb_per_s: 1000", "mb_per_s: -1"))
    with pytest.raises(InputError, match=r"own.yaml:\d+"):
        plan_simulation(path)
