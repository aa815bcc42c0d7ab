"""CPU fixes in the plan of vCPUs: what is added, when nothing is, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.app.planning import make_plan
from leadline.app.read.importing import import_paths
from leadline.core.contracts.planner import Plan
from leadline.core.model.capture import Capture
from leadline.core.model.errors import UsageError
from leadline.generators.esxtop import write
from leadline.generators.host_model import CaptureShape, HostModel

PTI = {"meltdown": "Mitigation: PTI", "mds": "Mitigation: Clear CPU buffers; SMT vulnerable"}


def facts(folder: Path, **states: str) -> Capture:
    guest = {"name": "db01", "cpu_count": 8, "cpu_vulnerabilities": states, "databases": [{"name": "main"}]}
    path = folder / "facts.json"
    path.write_text(json.dumps({"leadline_facts": 1, "guests": [guest]}))
    return import_paths([path]).capture


def answer(capture: Capture | None = None, **given: Any) -> Plan:
    return make_plan("cpu", None, given, capture).plan


def test_without_a_word_nothing_is_added() -> None:
    plan = answer(used_cores=6.08)
    assert "CPU fixes add" not in {figure.name for figure in plan.figures}
    assert plan.figure("vCPUs").value == 8


def test_added_fixes_raise_the_cores_by_the_larger_published_figure() -> None:
    plan = answer(used_cores=6.0, fixes="added")
    added = plan.figure("CPU fixes add")
    assert (added.value, added.unit) == ("0.186 to 2", "cores")
    assert added.arithmetic == "6 / (1 - 3 %) to / (1 - 25 %), less 6"
    assert "Red Hat" in added.source
    assert plan.figure("vCPUs").value == 10  # 8 cores at 80 %
    assert any("8 to 19 % for OLTP" in text for text in plan.assumptions)
    assert any("leadline facts" in text for text in plan.assumptions)


def test_facts_that_say_fixes_are_on_add_them_to_a_load_that_is_given(tmp_path: Path) -> None:
    plan = answer(facts(tmp_path, **PTI), used_cores=6.0)
    assert plan.figure("CPU fixes add").value == "0.186 to 2"
    assert plan.figure("vCPUs").value == 10
    assert any("set fixes: included" in text for text in plan.assumptions)
    (evidence,) = plan.evidence
    assert evidence.startswith(f"db01: mds {PTI['mds']}; meltdown {PTI['meltdown']}, ")
    assert evidence.endswith("facts.json")


def test_a_newer_processor_adds_less(tmp_path: Path) -> None:
    states = {"meltdown": "Not affected", "spectre_v2": "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional"}
    plan = answer(facts(tmp_path, **states, retbleed="Mitigation: Enhanced IBRS"), used_cores=6.0)
    assert plan.figure("CPU fixes add").value == "0.0606 to 0.667"
    assert any("No published figure covers the fixes of retbleed" in text for text in plan.assumptions)


def test_a_processor_that_needs_none_adds_nothing(tmp_path: Path) -> None:
    plan = answer(facts(tmp_path, meltdown="Not affected"), used_cores=6.0, fixes="added")
    assert plan.figure("vCPUs").value == 8
    assert any("nothing was added" in text for text in plan.assumptions)


def test_a_load_measured_with_the_fixes_includes_them(tmp_path: Path) -> None:
    plan = answer(facts(tmp_path, **PTI), used_cores=6.0, fixes="included")
    assert plan.figure("vCPUs").value == 8
    assert "The load was measured with the fixes that are on in db01: nothing was added." in plan.assumptions


def test_missing_fixes_are_bent_with_what_they_will_take(tmp_path: Path) -> None:
    plan = answer(facts(tmp_path, meltdown="Vulnerable", mds="Vulnerable"), used_cores=6.0)
    assert plan.figure("vCPUs").value == 8
    bend = next(bend for bend in plan.bends if bend.rule == "fixes of the processor are on")
    assert bend.cost.startswith("db01 lacks those of mds, meltdown: all fixes together take 3 to 25 %")
    assert "Phoronix" in bend.source


def test_growth_starts_from_the_cores_with_fixes() -> None:
    rows = answer(used_cores=6.0, load=2.0, fixes="added").sheets[0].rows
    assert rows[0][1] == 10


def test_facts_alone_are_nothing_to_plan_from(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing that this planner plans from"):
        answer(facts(tmp_path, **PTI))


def test_an_inventory_without_inputs_is_planned_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    hosts: list[dict[str, Any]] = [
        {"name": f"h{row}", "cluster": "c", "core_count": 24, "memory_mib": 262144} for row in range(2)
    ]
    hosts[0]["vms"] = [{"name": "db01", "vcpu_count": 8, "memory_mib": 65536}]
    path.write_text(f"leadline_inventory: 1\nhosts: {json.dumps(hosts)}\n")
    capture = import_paths([path]).capture
    assert answer(capture, fixes="added") == answer(capture)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A VM of 24 vCPUs that uses nine cores for ten minutes."""
    model = HostModel(CaptureShape(vm_count=1, vcpus_per_vm=24, sample_count=120), np.random.default_rng(7))
    model.ready *= 0.1
    model.costop *= 0.1
    model.used *= 100.0 * 9.0 / float(np.quantile(model.used.sum(axis=0), 0.95))
    path = tmp_path_factory.mktemp("capture") / "capture.csv"
    write(model, path)
    return path


def test_a_recorded_load_includes_what_is_on(recording: Path, tmp_path: Path) -> None:
    facts(tmp_path, **PTI)
    capture = import_paths([recording, tmp_path / "facts.json"]).capture
    plan = answer(capture)
    assert plan.figure("vm001 vCPUs").value == 12
    assert "The load was measured with the fixes that are on in db01: nothing was added." in plan.assumptions
    assert any(text.startswith("db01: mds") for text in plan.evidence)


def test_a_recorded_load_without_fixes_is_raised(recording: Path) -> None:
    plan = answer(import_paths([recording]).capture, fixes="added")
    assert plan.figure("vm001 vCPUs").value == 16  # 9 cores / (1 - 25 %) / 80 %
    assert plan.figure("CPU fixes, times the CPU").value == "1.03 to 1.33"
