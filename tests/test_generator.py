"""Generated captures: same seed same bytes, nothing left when cut short, and the diagnosis finds their faults."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from benches.configuration_trials import FAULTS, run_configuration_trial
from benches.fault_trials import fault_names, run_trial
from leadline.app import generating
from leadline.app.generating import FaultRequest, generate
from leadline.generators.host_model import CaptureShape, HostModel

SMALL = CaptureShape(vm_count=2, lun_count=2, sample_count=12)


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        generate(SMALL, [FaultRequest("device-slow")], tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    truth = yaml.safe_load((tmp_path / "a.truth.yaml").read_text())
    assert truth["faults"][0]["fault"] == "device-slow"


def test_cut_short_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(model: HostModel, path: Path, **_: object) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(generating, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        generate(SMALL, [], tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", fault_names())
def test_the_injected_fault_is_the_top_finding(fault: str, tmp_path: Path) -> None:
    assert run_trial("small", 11, fault, tmp_path).misses == []


@pytest.mark.parametrize("fault", ["device-slow", "disk-iops-limit", "cpu-contention", "kernel-slow"])
def test_with_the_guest_recorded_too_the_layer_below_is_still_accused(fault: str, tmp_path: Path) -> None:
    trial = run_trial("small", 21, fault, tmp_path, guest=True)
    assert trial.misses == []
    assert len(trial.accusations) == 1, "what the guest sees is a symptom"


def test_a_plain_list_of_limits_accuses_more(tmp_path: Path) -> None:
    trial = run_trial("small", 5, "device-slow", tmp_path)
    assert trial.plain_right >= 1
    assert len(trial.plain) > len(trial.accusations)


@pytest.mark.parametrize("seed", range(3))
def test_a_healthy_capture_accuses_nobody(seed: int, tmp_path: Path) -> None:
    assert run_trial("small", 100 + seed, None, tmp_path).misses == []


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_one_wrong_setting_of_a_sound_estate_is_accused_and_nothing_else(fault: str | None, tmp_path: Path) -> None:
    trial = run_configuration_trial(fault, tmp_path)
    assert trial.is_right, sorted(trial.accused)
