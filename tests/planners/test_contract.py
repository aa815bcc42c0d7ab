"""What every planner keeps: its example answers, files of inputs are written and read, more load never needs less."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from leadline.app.planning import PlannedAnswer, make_plan, planners
from leadline.core.contracts.docstrings import HEADINGS, sections
from leadline.core.contracts.planner import Plan, example_text, read_inputs
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.units import UNITS
from leadline.faces.cli.main import build_app
from leadline.faces.plans import document
from leadline.faces.report.plan import plan_page

PLANNERS = planners()
WORDS = {
    "",
    "requests",
    "nodes",
    "TB",
    "GB",
    "Gbit/s",
    "TiB",
    "GiB",
    "MiB/s",
    "h",
    "years",
    "vCPUs",
    "min",
    "cores",
    "hosts",
    "VMs",
    "devices",
    "GPUs",
}
STEPS = (0.25, 0.5, 1.0, 1.7, 3.0)


def worked(name: str, **changed: object) -> PlannedAnswer:
    plain = {**PLANNERS[name].META.example, **changed}
    return make_plan(name, None, plain)


@pytest.mark.parametrize("name", PLANNERS)
def test_planner_keeps_the_contract(name: str) -> None:
    planner = PLANNERS[name]
    assert [h for h in HEADINGS["planner"] if not sections(planner.__doc__).get(h)] == []
    planned = worked(name)
    assert planned.plan.headline.endswith(".")
    assert planned.plan.figures
    assert planned.plan.infeasible is None, "the worked example has an answer"
    assert {figure.unit for figure in planned.plan.figures} <= WORDS | set(UNITS)
    assert all(info.description for key, info in planner.MODEL.model_fields.items() if key != "leadline_plan")
    again: Plan = worked(name).plan
    assert again == planned.plan


@pytest.mark.parametrize("name", PLANNERS)
def test_the_example_file_is_the_example(name: str, tmp_path: Path) -> None:
    path = tmp_path / "inputs.yaml"
    path.write_text(example_text(name, PLANNERS[name]))
    assert read_inputs(PLANNERS[name], path, {}) == worked(name).inputs


@pytest.mark.parametrize(
    ("name", "key", "figure"), [(name, *pair) for name, planner in PLANNERS.items() for pair in planner.META.grows]
)
def test_more_never_needs_less(name: str, key: str, figure: str) -> None:
    start = getattr(PLANNERS[name].MODEL.model_validate(PLANNERS[name].META.example), key)
    values = []
    for step in STEPS:
        value = max(1, round(start * step)) if isinstance(start, int) else start * step
        try:
            plan = worked(name, **{key: value}).plan
        except UsageError:
            continue  # beyond what the inputs can be
        if plan.infeasible is None:
            found = plan.figure(figure).value
            assert isinstance(found, int | float)
            values.append(found)
    assert len(values) >= 2, "nothing to compare"
    assert values == sorted(values)


@pytest.mark.parametrize("name", PLANNERS)
def test_terminal_page_and_json_have_the_same_numbers(name: str, tmp_path: Path) -> None:
    planned = worked(name)
    path = tmp_path / "inputs.yaml"
    path.write_text(yaml.safe_dump(planned.inputs.model_dump(mode="json")))
    shown = CliRunner().invoke(build_app(), ["plan", name, "--input", str(path), "--json"])
    assert shown.exit_code == 0, shown.output
    plain = json.loads(shown.stdout)
    assert plain["schema"] == "leadline.plan/1"
    assert plain["headline"] == planned.plan.headline
    assert plain["figures"] == json.loads(json.dumps(document(planned)["figures"]))
    text = " ".join(CliRunner().invoke(build_app(), ["plan", name, "--input", str(path)]).stdout.split())
    page = plan_page(planned)
    for figure in planned.plan.figures:
        assert figure.name in text
        assert figure.name.replace("'", "&#39;") in page
        assert not isinstance(figure.value, float) or isfinite(figure.value)


def test_wrong_inputs_are_one_error(tmp_path: Path) -> None:
    path = tmp_path / "inputs.yaml"
    path.write_text("leadline_plan: 1\niops: -3\n")
    with pytest.raises(InputError, match=r"inputs\.yaml:2:1: iops: Input should be greater than 0; expected"):
        read_inputs(PLANNERS["queues"], path, {})
    with pytest.raises(UsageError, match="plan: cores: Extra inputs are not permitted"):
        make_plan("queues", None, {"cores": 3})
    with pytest.raises(UsageError, match="no such unit"):
        make_plan("lottery")


def test_the_verb_lists_and_refuses() -> None:
    listed = CliRunner().invoke(build_app(), ["plan"])
    assert listed.exit_code == 0
    assert all(name in listed.stdout for name in PLANNERS)
    done = CliRunner().invoke(build_app(), ["plan", "protect", "--set", "nodes=2", "--set", "survives=2"])
    assert done.exit_code == 1
    assert "Does not fit: 2 nodes; a chunk of a stripe must lie on each of 3" in done.stdout
    assert "Nearest: 3 nodes" in done.stdout


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no such key.*Did you mean vcpus\?"):
        make_plan("cpu", None, {"vcpu": 12})
    with pytest.raises(UsageError) as raised:
        make_plan("cpu", None, {"zzzz": 12})
    assert "Did you mean" not in str(raised.value)
