"""The guides on recorded incidents, whose fault is known, and on a vCenter: which step has the problem, which not."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from benches.incidents.recordings import read_recording
from benches.incidents.views import FULL, views
from leadline.app.collecting import collect
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.guide.walking import StepState, Walk, walk
from leadline.core.model.finding import Diagnosis
from leadline.faces.words.guides import headline
from tests.collectors.test_vcenter import VCSIM, simulated
from tests.conftest import ROOT

OUTSIDE, REAL_LOAD, KNOWN_LOAD = "From outside", "Round one: the real load", "Round two: a load that is known"


@cache
def diagnosed(name: str) -> Diagnosis:
    kind, _, variant = name.partition("/")
    with TemporaryDirectory() as folder:
        recording = read_recording(ROOT / "incidents/recorded" / kind / f"{variant}.tar.xz", Path(folder))
        (seen,) = views(recording, [FULL])
        assert seen.capture is not None
        return diagnose(seen.capture)


def states(walked: Walk) -> dict[str, StepState]:
    return {one.step.title: one.state for one in walked.steps}


@pytest.mark.parametrize("name", ["iops-limit-data/1", "slow-disk/1", "slow-flush/1"])
def test_a_slow_disk_is_a_problem_under_its_real_load(name: str) -> None:
    walked = walk("slow-disk", diagnosed(name))
    assert states(walked)[REAL_LOAD] is StepState.PROBLEM
    assert states(walked)[OUTSIDE] is not StepState.PROBLEM
    assert "to mend" in headline(walked)


@pytest.mark.parametrize("name", ["lock-waits/1", "cpu-taken/1", "healthy-plain/1"])
def test_a_disk_that_has_no_part_in_it_is_no_problem(name: str) -> None:
    """Its latency is over a limit all the time in two of them, incident or not: that is minor."""
    walked = walk("slow-disk", diagnosed(name))
    assert StepState.PROBLEM not in states(walked).values()
    assert states(walked)[KNOWN_LOAD] is StepState.NOTHING
    assert headline(walked).startswith(("Only minor", "Nothing found"))


def test_a_ladder_does_not_begin_at_what_was_always_so() -> None:
    walked = walk("vsan", diagnosed("network-loss/1"))
    assert states(walked)["Guest"] is StepState.MINOR
    assert walked.first is None


def test_the_sizing_of_cpus_and_the_checklist_of_postgresql_see_what_was_recorded() -> None:
    assert states(walk("cpu-sizing", diagnosed("cpu-taken/1")))["Record the peak"] is StepState.PROBLEM
    checklist = states(walk("postgresql-on-vmware", diagnosed("slow-flush/1")))
    assert checklist["Latency of the disks"] is StepState.PROBLEM
    assert checklist["Hardware and firmware"] is StepState.NOT_RECORDED


@pytest.mark.real
@pytest.mark.skipif(VCSIM is None, reason="vcsim is not installed")
def test_all_guides_on_the_inventory_of_a_vcenter() -> None:
    """The simulator has hosts, VMs and datastores with settings, and no measurement of how fast they are."""
    with simulated("-cluster", "1", "-host", "2", "-vm", "4", "-standalone-host", "0") as access:
        diagnosis = diagnose(collect("vcenter", access))
    vsan, checklist = walk("vsan", diagnosis), walk("postgresql-on-vmware", diagnosis)
    assert vsan.first is not None
    assert vsan.first.step.title == "Network"  # its hosts have one uplink each
    checked = {rule for one in checklist.steps for rule in (*one.checked, *(found.rule for found in one.findings))}
    assert {"host-power-policy", "vm-snapshot-present", "guest-tools-missing"} <= checked
    for name in ("slow-disk", "cpu-sizing", "benchmark"):
        assert all(one.state in StepState for one in walk(name, diagnosis).steps)
    assert {rule for one in vsan.steps for rule in one.checked}.isdisjoint({"guest-disk-await-high"})
