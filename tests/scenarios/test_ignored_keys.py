"""Keys without effect: each system names them, the simulator agrees, and scenarios that give one are refused."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from leadline.app.measure.simulated import outcome_of, system_of
from leadline.app.simulate.simulating import plan_simulation, simulate
from leadline.core.contracts.ignored_keys import given_keys, without_effect
from leadline.core.contracts.scenario import parse_axis, set_key
from leadline.core.model.errors import InputError, UsageError
from leadline.scenarios import far_memory, gpu_time_slicing, hypervisor_cpu, parda, write_cache
from leadline.scenarios._storage_path import parts
from leadline.scenarios._storage_path.parts import SCHEDULERS
from leadline.stores.runs import RunStore

SHORT = {"warm_up_s": 1, "measure_s": 4, "window_s": 1}
PATH: dict[str, Any] = {
    "system": "storage-path",
    "timing": SHORT,
    "vms": [
        {"name": "a", "adapter_depth": 256, "workload": {"io": [{"name": "x", "oio": 64}]}},
        {
            "name": "b",
            "adapter_depth": 256,
            "workload": {"io": [{"name": "y", "role": "wal", "rate_iops": 900, "burst": {"on_s": 0.1, "off_s": 0.3}}]},
            "disks": {"wal": {"shares": 1000}},
        },
    ],
    "hosts": [{"name": "h", "queue_depth": 8, "scheduler": "fifo"}],
    "devices": [{"name": "d", "service": {"kind": "exponential", "mean": 0.004}, "congestion_threshold": 0.001}],
}
CURVE = [{"name": "d", "curve": [[1000, 0.001], [1500, 0.004]]}]
DRIVE = [{"name": "d", "drive": {"rpm": 7200}}]
CPU: dict[str, Any] = {
    "system": "hypervisor-cpu",
    "timing": SHORT,
    "host": {"cores_per_node": 2, "nodes": 2, "scheduler": "default"},
    "vms": [
        {"name": "a", "vcpus": 4, "load": {"users": 12, "bursts": 2, "burst": 0.02, "wait": 0.001}},
        {"name": "b", "vcpus": 1, "load": {"users": 6, "burst": 0.01}},
    ],
}
GPU: dict[str, Any] = {
    "system": "gpu-time-slicing",
    "timing": SHORT,
    "gpu": {"policy": "best-effort", "kernel": 0.0013},
    "vms": [{"name": "a", "count": 3, "cpu": 0.003, "gpu": {"kind": "exponential", "mean": 0.005}}],
}
CLUSTER: dict[str, Any] = {
    "system": "cluster-storage",
    "timing": SHORT,
    "cluster": {"protection": "replicas-2", "chunk": "1m"},
    "nodes": [{"name": "n", "count": 6, "disks": 1, "mb_per_s": 1250}],
    "disks": [{"name": "hdd", "service": 0.002, "mb_per_s": 200}],
    "vms": [{"name": "a", "size": "64m", "workload": {"io": [{"block": "256k", "read_pct": 50, "oio": 4}]}}],
}
# One idle VM and four busy ones: of two nodes one has three of these, until one of them is moved.
UNEVEN = {
    "vms.a.vcpus": 2,
    "vms.a.load": {"users": 1, "think_time": 1.0, "burst": 0.001},
    "vms.b.count": 4,
    "timing.measure_s": 12,
}
FAILS = [{"at": 1, "what": "n-1", "state": "absent"}]
TIERS: dict[str, Any] = {
    "system": "cache-tiers",
    "timing": SHORT,
    "workload": {"io": [{"read_pct": 0, "rate_iops": 2000}]},
    "hosts": 2,
    "groups": [
        {"name": "g", "cache": {"gb": 10, "mb_per_s": 500}, "devices": {"count": 2, "mb_per_s": 100, "used_gb": 1}}
    ],
}
PARDA: dict[str, Any] = {
    "system": "parda",
    "timing": SHORT,
    "control": "parda",
    "law": {"period": 0.2},
    "hosts": [
        {"name": "h1", "vms": [{"name": "a", "workload": {"io": [{"oio": 40}]}}]},
        {"name": "h2", "vms": [{"name": "b", "workload": {"io": [{"rate_iops": 300}]}}]},
    ],
    "array": {"slots": 2, "service": {"kind": "exponential", "mean": 0.003}},
}
CACHE: dict[str, Any] = {
    "system": "write-cache",
    "timing": SHORT,
    "cache": "log-structured",
    "size": "1m",
    "batch": "64k",
    "workload": {"io": [{"block": "4k", "read_pct": 0, "oio": 4, "working_set": "16m"}]},
    "disk": {"seek_least": 0.0005, "seek_most": 0.01, "rpm": 7200, "mb_per_s": 200},
}
MEMORY: dict[str, Any] = {
    "system": "far-memory",
    "timing": {"window_s": 1},
    "program": {"memory_mb": 16, "run": 1, "pattern": "uniform"},
    "local_pct": 50,
}
READ: dict[str, Any] = {
    "system": "read-cache",
    "timing": SHORT,
    "trace": {"rate_iops": 1000, "parts": [{"name": "p", "size": "16m", "zipf": 0.9}]},
    "caches": [{"name": "c", "size": "1m"}],
}
PLANE: dict[str, Any] = {
    "system": "management-plane",
    "timing": {"warm_up_s": 1, "measure_s": 60, "window_s": 5},
    "operations": [{"name": "power-on"}, {"name": "statistics"}],
}


MIXED = {"name": "inline", "io": [{"name": "x", "oio": 8, "read_pct": 50}]}
Changes = dict[str, Any]
LOST = [{**FAILS[0], "state": "lost"}]
LAW = {
    "threshold": 0.002, "gain": 0.1, "memory": 0.9, "beta_per_1000_shares": 30.0, "window_min": 20.0,
    "window_max": 64.0, "adapts_to_idle": False,
}  # fmt: skip


def each(key: str, *values: object, **more: Any) -> list[Changes]:
    return [{key: value, **more} for value in values]


# A scenario, what is changed of it first, one after the other, and keys with another value for each.
CASES: list[tuple[dict[str, Any], list[Changes], Changes]] = [
    (
        PATH,
        each("hosts.h.scheduler", *SCHEDULERS),
        {f"vms.b.disks.wal.{key}": v for key, v in (("shares", 9e3), ("reservation_iops", 150), ("idle_credit", 40))},
    ),
    (
        PATH,
        [{**own, "timing.measure_s": 20, "hosts.h.queue_depth": 64} for own in each("hosts.h.scheduler", *SCHEDULERS)],
        {"devices.d.congestion_threshold": 0.5},
    ),
    (PATH, each("vms.a.iops_limit", None, 100), {"vms.a.iops_burst": 500}),
    (PATH, [{}], {"vms.b.iops_limit": 10}),
    (
        PATH,
        [{**own, "vms.a.workload": MIXED} for own in each("devices", PATH["devices"], CURVE, DRIVE)],
        {"devices.d.spread": 0.5, "devices.d.mb_per_s": 5.0, "devices.d.write_service": {"mean": 0.02}},
    ),
    (CPU, each("host.scheduler", *hypervisor_cpu.HONOURED), {"host.thread_gain_pct": 80.0}),
    (CPU, [{"host.hyper_threading": False}], {"host.thread_gain_pct": 80.0}),
    (
        CPU,
        [{**UNEVEN, **own} for own in each("host.nodes", 1, 2)],
        {"host.remote_penalty_pct": 90.0, "host.balance_s": 0.3, "host.memory_move_s": 0.1},
    ),
    (CPU, each("host.nodes", 1, 2), {"vms.a.vnuma": False}),
    (CPU, each("vms.a.load.bursts", 1, 2), {"vms.a.load.wait": {"mean": 0.02}}),
    (
        CPU,
        each("vms.b.load", {"users": 3, "burst": 0.01}, {"per_s": 50, "burst": 0.01}),
        {"vms.b.load.think_time": {"mean": 0.05}},
    ),
    (
        CPU,
        [{**own, "host.hyper_threading": False} for own in each("vms.a.vcpus", 1, 4)],
        {"host.co_stop_s": 0.5},
    ),
    (GPU, each("gpu.policy", *gpu_time_slicing.HONOURED), {"gpu.strict": False, "gpu.averaging_factor": 1}),
    (GPU, [{"gpu.policy": "equal-share", "gpu.strict": False}], {"gpu.averaging_factor": 1}),
    (GPU, each("vms.a.count", 1, 3), {"vms.a.stagger": 0.7}),
    (CLUSTER, each("cluster.protection", "replicas-2", "ec-2+1"), {"cluster.stripe_unit": 65536}),
    (CLUSTER, each("failures", [], FAILS, LOST), {"recovery.absent_delay": 1.0}),
    (CLUSTER, each("failures", [], LOST), {"recovery.piece": 65536}),
    (CLUSTER, each("vms.a.iops_limit", None, 50), {"vms.a.iops_burst": 500}),
    (TIERS, each("failures", [], [{"at": 1, "group": "h1-g"}]), {"rebuild_mb_per_s": 5.0}),
    (
        PARDA,
        each("control", *parda.HONOURED),
        {**{f"law.{key}": value for key, value in LAW.items()}, "hosts.h1.vms.a.shares": 7000},
    ),
    (
        CACHE,
        each("cache", *write_cache.HONOURED),
        {"ram": 0.004, "order": "arrival", "log.latency": 0.004, "batch": 8192},
    ),
    (MEMORY, each("backing", *far_memory.HONOURED), {"rdma.read": 0.001, "ssd.read": 0.001}),
    (
        MEMORY,
        each("program.pattern", *far_memory.PATTERNS),
        {"program.passes": 2, "program.visits": 3.0, "program.skew": 0.2},
    ),
    (MEMORY, [{}], {"timing.measure_s": 7.0}),
    (READ, [{}], {"trace.reads_only": False, "trace.rate_iops": 2000.0}),
    (PLANE, [{}], {"operations.power-on.count": 40, "operations.statistics.count": 40}),
]


def cases() -> Iterator[Any]:
    for plain, firsts, others in CASES:
        for first in firsts:
            told = [str(own) for own in first.values() if isinstance(own, str | int | None)]
            for key, value in others.items():
                yield pytest.param(plain, first, key, value, id="-".join([*told, key]))


def whole(plain: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The scenario with every default written out and these keys changed."""
    model = system_of(plain["system"]).MODEL
    given = model.model_validate({"name": "own", **plain}).plain()
    for key, value in changes.items():
        set_key(given, key, deepcopy(value))
    return model.model_validate(given).plain()


@pytest.mark.parametrize(("plain", "first", "key", "value"), list(cases()))
def test_a_key_is_called_ignored_exactly_when_the_simulator_ignores_it(
    plain: dict[str, Any], first: dict[str, Any], key: str, value: object
) -> None:
    before = whole(plain, first)
    after = whole(before, {key: value})
    if key.endswith("statistics.count"):
        del after["operations"][1]["request_bytes"], after["operations"][1]["response_bytes"]
    model = system_of(plain["system"]).MODEL
    is_ignored = bool(without_effect([key], model.model_validate(before).ignored()))
    one, other = outcome_of(before), outcome_of(after)
    assert is_ignored == (repr((one.measures, one.series)) == repr((other.measures, other.series)))


def written(tmp_path: Path, plain: dict[str, Any]) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({"name": "own", **plain}, sort_keys=False))
    return path


def test_shares_that_no_scheduler_honours_are_refused_where_they_stand(tmp_path: Path) -> None:
    path = written(tmp_path, {**PATH, "devices": [{"name": "d", "service": 0.001}]})
    with pytest.raises(InputError) as raised:
        plan_simulation(path)
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "shares:" in text)
    assert str(raised.value).startswith(f"{path}:{line}:")
    assert raised.value.found == "vms.b.disks.wal.shares: scheduler fifo of host h ignores it"
    assert raised.value.expected == "a scheduler that honours it: sfq, mclock, sioc-v1, sioc-v2"


def test_a_comparison_may_have_variants_that_ignore_a_key_and_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, {**PATH, "devices": [{"name": "d", "service": 0.001}]})
    fifo, sfq = simulate(plan_simulation(path, policies=("sfq",)), RunStore(tmp_path / "runs"))
    told = "vms.b.disks.wal.shares: scheduler fifo of host h ignores it"
    assert told in fifo.outcome.notes
    assert told in fifo.run.notes
    assert told not in sfq.outcome.notes


def test_a_varied_key_without_effect_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {**PATH, "devices": [{"name": "d", "service": 0.001}], "vms": PATH["vms"][:1]})
    with pytest.raises(UsageError, match="scheduler fifo of host h ignores it"):
        plan_simulation(path, [parse_axis("vms.a.shares=1000,2000")])
    plan_simulation(path, [parse_axis("vms.a.shares=1000,2000"), parse_axis("hosts.h.scheduler=sfq")])


def test_what_is_given_is_found_whatever_has_a_default() -> None:
    found = given_keys(parts.StoragePath.model_validate({"name": "own", **PATH}))
    assert found["vms.b.disks.wal.shares"] == ("vms", 1, "disks", "wal", "shares")
    assert "vms.a.shares" not in found
    assert not any("workload" in key for key in found)


@pytest.mark.parametrize(
    ("plain", "told"),
    [
        ({**PATH, "vms": [{**PATH["vms"][0], "iops_limit": 100, "reservation_iops": 200}]},
         "reservation_iops 200 is above iops_limit 100"),
        ({**CPU, "vms": [{**CPU["vms"][0], "limit_cores": 1, "reservation_cores": 2}]},
         "reservation_cores 2 is above limit_cores 1"),
    ],
)  # fmt: skip
def test_a_reservation_above_its_limit_is_refused(tmp_path: Path, plain: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        plan_simulation(written(tmp_path, plain))
