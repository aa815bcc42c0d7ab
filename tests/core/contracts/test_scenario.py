"""Scenario files: what is read, what is refused and where, and the variants of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from leadline.app.measure.simulated import system_of
from leadline.core.contracts.scenario import Axis, parse_axis, places, read_scenario, variants
from leadline.core.model.errors import InputError, LeadlineError, UsageError
from leadline.scenarios._draws import Draw
from leadline.scenarios.storage_path import StoragePath

TEXT = """\
leadline_scenario: 1
name: two-vms
system: storage-path
vms:
  - name: db01
    iops_limit: 200
    workload:
      io: [{oio: 4, think_time_s: 20us}]
  - name: db02
    workload: wal.yaml
hosts:
  - {name: esx01, queue_depth: 32}
devices:
  - name: ssd
    service: 20us
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "wal.yaml").write_text("name: wal\nio: [{block: 8k, read_pct: 0, rate_iops: 100}]\n")
    return tmp_path


def read(folder: Path, text: str) -> StoragePath:
    path = folder / "scenario.yaml"
    path.write_text(text)
    found = read_scenario(path, system_of)[1]
    assert isinstance(found, StoragePath)
    return found


def test_a_scenario_takes_workloads_of_its_own_of_files_and_shipped_ones(folder: Path) -> None:
    found = read(folder, TEXT.replace("    iops_limit: 200\n", "    count: 3\n"))
    assert [name for vm in found.vms for name in vm.names()] == ["db01-1", "db01-2", "db01-3", "db02"]
    assert [vm.workload.name for vm in found.vms if vm.workload is not None] == ["inline", "wal"]
    assert found.devices[0].service is not None
    assert found.devices[0].service.mean == pytest.approx(20e-6)
    shipped = read(folder, TEXT.replace("wal.yaml", "postgresql-io"))
    assert shipped.vms[1].workload is not None
    assert shipped.vms[1].workload.name == "postgresql-io"
    assert StoragePath.model_validate(found.plain()) == found


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("system: storage-path", "system: storage-paths", ":3", "system storage-paths"),
        ("iops_limit: 200", "iops_limit: -1", ":6:", "greater than 0"),
        ("iops_limit: 200", "iops_limits: 200", ":6:", "iops_limits"),
        ("oio: 4,", "oio: 0,", ":8:", "greater than or equal to 1"),
        ("wal.yaml", "nothing.yaml", ":10:", "no shipped workload"),
        ("wal.yaml", "pgbench", ":10:", "kind database"),
        ("service: 20us", "service: fast", ":15:", "no duration"),
        ("service: 20us", "service: {kind: erlang, mean: 1ms}", ":15:", "erlang has mean and stages"),
        ("service: 20us", "curve: [[100, 1ms], [50, 1ms]]", ":14:", "grows from point to point"),
        ("    service: 20us\n", "", ":14:", "either a service time, a curve or a drive"),
        ("queue_depth: 32", "scheduler: lottery", ":12:", "fifo"),
        ("name: db02", "name: db01", ":1:", "same name"),
        ("name: db02", "host: esx02\n    name: db02", ":1:", "no host esx02"),
        ("vms:", "timing: {window_s: 2m}\nvms:", ":4:", "0.5 windows"),
        ("vms:", "timing: {window_s: 1us}\nvms:", ":4:", "windows in what is measured"),
        ("vms:", "vms: [", "", "not YAML"),
        ("system: storage-path\n", "", ":1:", "system"),
    ],
)
def test_mistakes_are_told_with_their_line(folder: Path, old: str, new: str, place: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError) as found:
        read(folder, TEXT.replace(old, new, 1) if old != "    service: 20us\n" else TEXT.replace(old, new))
    assert f"scenario.yaml{place}" in found.value.where
    assert said in found.value.found, str(found.value)


def test_variants_are_every_combination(folder: Path) -> None:
    scenario = read(folder, TEXT)
    axes = [parse_axis("vms.db01.iops_limit=200,null"), parse_axis("hosts.*.scheduler=fifo,round-robin")]
    found = variants(scenario, axes)
    assert [own.label for own in found] == [
        "iops_limit=200, scheduler=fifo",
        "iops_limit=200, scheduler=round-robin",
        "iops_limit=null, scheduler=fifo",
        "iops_limit=null, scheduler=round-robin",
    ]
    limits = [own.scenario.vms[0].iops_limit for own in found if isinstance(own.scenario, StoragePath)]
    assert limits == [200.0, 200.0, None, None]
    assert variants(scenario, [])[0].label == ""
    same = variants(scenario, [parse_axis("vms.db01.shares=1,2"), parse_axis("vms.db02.shares=1,2")])
    assert same[1].label == "vms.db01.shares=1, vms.db02.shares=2"


def test_keys_name_items_by_name_number_or_all() -> None:
    plain: dict[str, Any] = {"vms": [{"name": "a", "depth": 1}, {"name": "b", "depth": 2}]}
    assert [held[at] for held, at in places(plain, "vms.b.depth")] == [2]
    assert [held[at] for held, at in places(plain, "vms.0.depth")] == [1]
    assert [held[at] for held, at in places(plain, "vms.*.depth")] == [1, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vms.db01.iops_limit", "no values"),
        ("=1,2", "no values"),
        ("vms.db01.iops_limit=[", "not YAML"),
        ("vms.db09.iops_limit=1", "no db09"),
        ("vms.db01.iops_limits=1", "no iops_limits"),
        ("vms.db01.iops_limit=-5", "greater than 0"),
        ("hosts.esx01.scheduler=lottery", "no scheduler lottery"),
    ],
)
def test_keys_and_values_that_are_none_are_refused(folder: Path, text: str, said: str) -> None:
    scenario = read(folder, TEXT)
    with pytest.raises(UsageError, match=said):
        variants(scenario, [parse_axis(text)])


def test_too_many_variants_are_refused(folder: Path) -> None:
    scenario = read(folder, TEXT)
    axis = Axis("vms.db01.iops_limit", tuple(range(1, 103)))
    with pytest.raises(LeadlineError, match="10,404 variants"):
        variants(scenario, [axis, axis])


def test_parameters_are_what_may_differ(folder: Path) -> None:
    found = read(folder, TEXT).parameters()
    assert found["vms.db01.iops_limit"] == "200.0"
    assert found["hosts.esx01.queue_depth"] == "32"
    assert not [key for key in found if "workload" in key or key in ("name", "seed")]


def test_lengths_of_time_go_to_the_simulator_as_they_stand() -> None:
    assert Draw(mean=0.002).document() == {"kind": "constant", "mean": 0.002}
    assert Draw(kind="empirical", buckets=((0.001, 0.002, 5),)).document()["buckets"] == [[0.001, 0.002, 5.0]]
    for draw in (
        Draw(kind="normal", mean=0.002, cv=0.5),
        Draw(kind="uniform", low=0.001, high=0.003),
        Draw(kind="empirical", buckets=((0.001, 0.002, 5), (0.002, 0.003, 5))),
    ):
        assert draw.mean_ns() == 2e6
    with pytest.raises(ValidationError, match="constant has mean, not cv, mean"):
        Draw(mean=0.002, cv=1.0)
