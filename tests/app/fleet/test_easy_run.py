"""Easy runs with exact loads: what is kept, compared, shown and written, and what an error in the midst leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline.app.fleet import easy_run
from leadline.app.fleet.easy_order import PROFILES, EasyOrder, profile_load
from leadline.app.fleet.easy_run import EasyReport, easy_report, run_easy
from leadline.app.fleet.fleet import FleetDone, FleetJob, FleetTalk
from leadline.app.fleet.services import service_states
from leadline.app.measure.hosts import Host, HostResult, HostsOptions, HostsResult, host_result
from leadline.app.measure.workloads import workload_of
from leadline.core.contracts.collector import Access
from leadline.core.model.errors import ToolError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result, Tick
from leadline.core.model.run import Round
from leadline.core.model.workload import Workload
from leadline.core.system.secret import Secret
from leadline.faces.fleets import easy_report_document, show_easy
from leadline.faces.report.fleet import easy_page
from leadline.formats.inventory_file import parse_inventory
from leadline.stores.runs import RunStore
from tests.app.fleet.test_easy_order import CLUSTER, PLAIN, ordered

QUIET = FleetTalk(lambda _: None, lambda _, __: None)
PER_S = 1000.0  # of a disk of the first worker; the second worker has twice that
BROKEN = "round-1: the connection to it was lost"


class ExactLoads:
    """Loads without fio: a thousand operations per second of 1 to 2 ms on each disk, one of which may fail."""

    def __init__(self, factor: float = 1.0, failing: int = 0, raising: int = 0) -> None:
        self.factor, self.failing, self.raising = factor, failing, raising
        self.names: list[str] = []
        self.filled: list[int] = []

    def fill(self, hosts: Sequence[Host], size_bytes: int, folder: Path, say: Callable[[str], None]) -> dict[str, str]:
        assert all(host.is_blank for host in hosts)
        self.filled.append(size_bytes)
        return {}

    def load(
        self, workload: Workload, hosts: Sequence[Host], folder: Path, *, options: HostsOptions, **_: Any
    ) -> HostsResult:
        assert options.is_filled
        self.names.append(workload.name)
        if len(self.names) == self.raising:
            raise ToolError("fio", found="killed", expected="a round", advice="Look at it.")
        histogram = Histogram.of([1.0, 1.5], [1.5, 2.0], [15_000, 5_000], "ms")
        results = tuple(
            Result("fio", workload.name, (Operation("read", rate, rate * 4096, 20_000, {}, histogram),), host=host.name)
            for host in hosts
            for rate in [PER_S * self.factor * (2 if "02" in host.name else 1)]
        )
        ticks = tuple(Tick(float(second), sum(r.operations[0].per_s for r in results)) for second in range(1, 21))
        rounds = (Round("round-1", results, ticks),)
        error = BROKEN if len(self.names) == self.failing else None
        each: list[HostResult] = [host_result(host, rounds, None) for host in hosts]
        each[-1] = replace(each[-1], error=error)
        done = HostsResult(tuple(each), rounds)
        if options.keep is not None:
            options.keep(done)
        return done


def order() -> EasyOrder:
    """Two workers of eight disks on a vSAN whose compression is on."""
    found = ordered(PLAIN, worker_count=2)
    found.access = Access("vc", "bench", Secret("x"))
    inventory = parse_inventory(CLUSTER % (", vsan_dedup: false, vsan_compression: true", "vsan"), "vcenter")
    found.services = service_states(inventory, "prod", "ds0")
    assert found.easy is not None
    found.workloads = tuple(profile_load(workload_of(name), found.easy, found.wish, 8) for name in PROFILES)
    return found


def measured(patch: pytest.MonkeyPatch, store: RunStore, loads: ExactLoads) -> EasyReport:
    def workers(job: FleetJob, work: Callable[[dict[str, str], FleetDone], None]) -> FleetDone:
        done = FleetDone("f")
        work({"leadline-01": "192.0.2.1", "leadline-02": "192.0.2.2"}, done)
        return done

    patch.setattr(easy_run, "with_workers", workers)
    patch.setattr(easy_run, "fill_devices", loads.fill)
    patch.setattr(easy_run, "load_hosts", loads.load)
    report = easy_report(order(), store, None)
    run_easy(report, QUIET, store)
    return report


def test_every_profile_is_a_run_and_the_disks_are_filled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, loads = RunStore(tmp_path), ExactLoads()
    report = measured(monkeypatch, store, loads)
    assert report.is_whole
    assert report.order.easy is not None
    assert loads.filled == [report.order.easy.disk_bytes]
    assert loads.names == list(PROFILES)
    kept = store.beginning(f"{report.id}.")
    assert [(run.name, run.state, run.target) for run in kept] == [
        (name, "done", "ds0 of prod at vc") for name in PROFILES
    ]
    assert "compression: on, as vCenter says" in kept[0].notes
    assert kept[0].host["compression"] == "on"
    profile = report.profiles[0]
    assert profile.per_s().mean == 8 * PER_S + 8 * 2 * PER_S
    assert [(part.name, part.per_s) for part in profile.workers] == [("leadline-01", 8000.0), ("leadline-02", 16000.0)]
    ms, low, high = profile.percentiles_ms()["p95"]
    assert (low <= ms <= high, ms) == (True, 1.75)


def test_the_second_run_is_compared_with_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = RunStore(tmp_path)
    first = measured(monkeypatch, store, ExactLoads())
    assert first.profiles[0].comparison is None
    second = measured(monkeypatch, store, ExactLoads(factor=0.5))
    assert second.against == first.id
    comparison = second.profiles[1].comparison
    assert comparison is not None
    change = next(part for part in comparison.metrics if part.name == "operations")
    assert change.change == pytest.approx(-0.5)
    assert comparison.unlike == ()
    show_easy(second)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    assert "hci-4k-read 24,000 12,000 -50.0 -50.0 -50.0 differs in these two runs" in words
    assert f"against {first.id}: one run each: what changes from run to run is not known" in words
    assert "deduplication: off, as vCenter says" in words
    assert "encryption: not known: vCenter did not answer for vSAN's configuration" in words
    page = easy_page(second)
    assert all(part in page for part in (*PROFILES, "leadline-02", "12,000", "not known", first.id))
    assert json.loads(json.dumps(easy_report_document(second)))["profiles"][3]["comparison"]["before"]


@pytest.mark.parametrize(("failing", "raising"), [(3, 0), (0, 3)])
def test_an_error_in_the_third_profile_leaves_a_report_of_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, raising: int
) -> None:
    store, loads = RunStore(tmp_path), ExactLoads(failing=failing, raising=raising)
    report = measured(monkeypatch, store, loads)
    assert not report.is_whole
    assert loads.names == list(PROFILES[:3])
    assert report.missing == PROFILES[3 if failing else 2 :]
    assert (BROKEN if failing else "killed") in report.stopped
    assert [run.state for run in store.beginning(f"{report.id}.")] == ["done", "done", "failed"]
    assert report.stopped in easy_page(report).replace("&#39;", "'")
    assert measured(monkeypatch, store, ExactLoads()).against == ""


def test_a_disk_that_cannot_be_filled_ends_it_before_any_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = ExactLoads()
    monkeypatch.setattr(ExactLoads, "fill", lambda *_: {"leadline-01 /dev/sdb": "fill: took 0 of 1 MiB"})
    report = measured(monkeypatch, RunStore(tmp_path), loads)
    assert (loads.names, report.missing) == ([], PROFILES)
    assert "leadline-01 /dev/sdb" in report.stopped
