"""What every unit of every kind must keep: found by name, documented, and told apart from the others."""

from __future__ import annotations

import csv
import inspect
import re
from collections import defaultdict
from importlib import resources
from pathlib import Path
from typing import cast

import pytest
import yaml

from leadline.app.diagnose.diagnosing import metrics_read
from leadline.app.explain.explaining import explain, where_reported
from leadline.core.contracts.benchmark import Benchmark
from leadline.core.contracts.discovery import KINDS, load_unit, load_units, unit_modules
from leadline.core.contracts.docstrings import HEADINGS, sections, title
from leadline.core.contracts.experiment import EXACT_TOLERANCE, Experiment
from leadline.core.contracts.importer import Importer
from leadline.core.contracts.rule import rule_metas
from leadline.core.contracts.scenario import Axis, System, places, read_scenario, variants
from leadline.core.model.errors import UsageError
from leadline.core.model.metrics import foreign_sources, metric, metrics
from leadline.core.model.units import UNITS, factor
from leadline.core.model.vocabulary import EntityKind
from leadline.core.model.workload import KINDS as WORKLOAD_KINDS
from leadline.core.system.tools import TOOLS
from leadline.estate.knowledge.settings import TYPES, is_by_hand, is_setting, settings
from leadline.generators.fault import Fault
from tests.conftest import ROOT

IMPORTERS = load_units("importer")
FAULTS = load_units("fault")
BENCHMARKS = load_units("benchmark")
SYSTEMS = load_units("scenario")
EXPERIMENTS = load_units("experiment")
PUBLISHED = ROOT.parent / "shared" / "published" / "figures.yaml"


def test_only_tools_that_are_read_and_driven_share_a_name() -> None:
    kinds: dict[str, set[str]] = {}
    for kind in KINDS:
        for name in unit_modules(kind):
            kinds.setdefault(name, set()).add(kind)
    # A guide is walked by `leadline guide NAME`, whatever else has the name of what it is about.
    shared = {name: held for name, held in kinds.items() if len(held - {"guide"}) > 1}
    allowed = {"importer", "benchmark", "collector", "guide"}
    assert all("importer" in held and held <= allowed for held in shared.values())
    assert explain("fio")["facts"]["see also"] == ["benchmark:fio"]
    assert explain("benchmark:fio")["kind"] == "benchmark"


def test_unknown_unit_says_what_is_near() -> None:
    with pytest.raises(UsageError, match="cpu-ready-high"):
        load_unit("rule", "cpu-redy-high")


@pytest.mark.parametrize("name", IMPORTERS)
def test_importer_keeps_the_contract(name: str) -> None:
    module = IMPORTERS[name]
    parts = sections(module.__doc__)
    assert [h for h in HEADINGS["importer"] if not parts.get(h)] == []
    assert title(module.__doc__).endswith(".")
    importer = cast("Importer", module)
    for own, field in importer.META.fields.items():
        assert field.metric in metrics(), own
        factor(field.unit, metric(field.metric).unit)
    assert list(inspect.signature(importer.sniff).parameters) == ["source"]
    assert list(inspect.signature(importer.read).parameters) == ["source", "request"]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_driver_keeps_the_contract(name: str) -> None:
    module = BENCHMARKS[name]
    assert [h for h in HEADINGS["benchmark"] if not sections(module.__doc__).get(h)] == []
    meta = cast("Benchmark", module).META
    assert meta.kind in WORKLOAD_KINDS
    assert meta.program in {tool.name for tool in TOOLS}
    for function, words in (
        ("plan", ["workload", "target"]),
        ("prepare", ["plan", "folder", "say"]),
        ("measure", ["plan", "step", "folder", "watch"]),
        ("clean", ["plan"]),
    ):
        assert list(inspect.signature(getattr(module, function)).parameters) == words


@pytest.mark.parametrize("name", SYSTEMS)
def test_simulated_system_keeps_the_contract(name: str) -> None:
    module = SYSTEMS[name]
    assert [h for h in HEADINGS["scenario"] if not sections(module.__doc__).get(h)] == []
    system = cast("System", module)
    assert system.MODEL.model_fields["system"].default == name
    assert list(inspect.signature(system.simulate).parameters) == ["scenario", "progress"]
    examples = [read_scenario(path, lambda _: system) for path in scenarios_of(name)]
    assert examples, f"examples/scenarios has no scenario of {name}"
    for _, scenario in examples:
        again = system.MODEL.model_validate(scenario.plain())
        assert again == scenario, "what a run keeps is the scenario"
        policies = {held[at] for held, at in places(scenario.plain(), system.META.policy_key)}
        assert policies <= set(system.META.policies)
    axes = [Axis("timing.warm_up_s", (1,)), Axis("timing.measure_s", (5,))]
    short = variants(examples[0][1], axes)[0].scenario
    shares: list[float] = []
    first, second = (system.simulate(short, shares.append) for _ in range(2))
    assert first.trace == second.trace
    assert first.measures
    assert 0.0 <= min(shares) <= max(shares) <= 1.0
    columns = [column for column, _ in system.META.columns]
    assert set(columns) <= {measure.name for measure in first.measures}
    assert all(len(series.values) == len(first.ticks) for series in first.series)


def scenarios_of(system: str) -> list[Path]:
    found = sorted((ROOT / "examples" / "scenarios").glob("*.yaml"))
    return [path for path in found if f"system: {system}\n" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment_keeps_the_contract(name: str) -> None:
    """What it gives is in tests/experiments: twice the same, with a verdict."""
    module = EXPERIMENTS[name]
    assert [h for h in HEADINGS["experiment"] if not sections(module.__doc__).get(h)] == []
    assert title(module.__doc__).endswith(".")
    experiment = cast("Experiment", module)
    meta = experiment.META
    assert meta.claim
    assert meta.source
    assert meta.by
    assert set(meta.by) <= {"arithmetic", "simulation", "real"}
    assert 0.0 < meta.tolerance <= 0.5
    assert list(inspect.signature(experiment.reproduce).parameters) == ["simulated"]


def test_experiments_say_of_their_figures_what_the_list_says() -> None:
    if not PUBLISHED.is_file():
        pytest.skip("the list of published figures is not beside this checkout")
    listed = {own["id"]: own for own in yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))}
    apart = {}
    for name in listed.keys() & EXPERIMENTS.keys():
        meta = cast("Experiment", EXPERIMENTS[name]).META
        own = (meta.kind, meta.tolerance, meta.verified)
        known = listed[name]
        expected = (known["kind"], known.get("tolerance", EXACT_TOLERANCE), known["verified"])
        if own != expected:
            apart[name] = (own, expected)
    assert apart == {}


def test_every_published_figure_has_an_experiment() -> None:
    if not PUBLISHED.is_file():
        pytest.skip("the list of published figures is not beside this checkout")
    listed = [own["id"] for own in yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))]
    assert set(listed) - EXPERIMENTS.keys() == set()


@pytest.mark.parametrize("name", FAULTS)
def test_fault_keeps_the_contract(name: str) -> None:
    parts = sections(FAULTS[name].__doc__)
    assert [h for h in HEADINGS["fault"] if not parts.get(h)] == []
    meta = cast("Fault", FAULTS[name]).META
    assert set(meta.rules) <= set(unit_modules("rule"))


def test_every_metric_that_a_rule_reads_is_written_by_an_importer() -> None:
    known = set(metrics())
    read = {one for meta in rule_metas().values() for need in (*meta.needs, *meta.uses) for one in need.split("|")}
    assert len(read & known) > 200
    assert [name for name in sorted(read & known) if not where_reported(name)] == []


def test_settings_that_no_reader_writes_are_said_to_be_fed_by_hand() -> None:
    """What a rule reads and no source of readers names can only be written into an inventory."""
    readers = ("importers", "collectors", "formats", "app/read", "estate/derived")
    not_readers = {"inventory_file.py"}  # it reads what people wrote
    paths = [path for folder in readers for path in (ROOT / "src/leadline" / folder).rglob("*.py")]
    words = {word for path in paths if path.name not in not_readers for word in re.findall(r"\w+", path.read_text())}
    needs = [need for meta in rule_metas().values() for need in (*meta.needs, *meta.uses)]
    read = {one for need in needs for one in need.split("|") if is_setting(one)}
    assert len(read) > 200
    assert {one for one in read if one.partition(".")[2] not in words} == {one for one in read if is_by_hand(one)}
    marked = {f"{kind}.{name}" for kind, all_of in settings().items() for name, one in all_of.items() if one.is_by_hand}
    assert marked <= read


def test_settings_catalogue_is_sound() -> None:
    text = resources.files("leadline.estate.knowledge").joinpath("settings.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    keys = [(row["kind"], row["setting"]) for row in rows]
    assert len(keys) == len(set(keys))
    for row in rows:
        assert row["type"] in TYPES, row
        assert row["meaning"], row
        assert row["kind"] in {kind.value for kind in EntityKind}, row


def test_metric_catalogue_is_sound() -> None:
    for name, known in metrics().items():
        assert known.unit in UNITS, name
        assert known.kinds, name
        assert not known.meaning[0].islower(), name
    assert {name for name, _, _ in foreign_sources()} <= set(metrics())


def test_a_quantity_is_one_metric_in_one_unit() -> None:
    names: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
    for name, known in metrics().items():
        quantity = re.sub(rf"_{known.unit}(?=_|$)", "", name)
        for kind in known.kinds:
            names[quantity, kind, known.layer, UNITS[known.unit].dimension].append(name)
    assert [same for same in names.values() if len(same) > 1] == []


def test_every_metric_a_rule_reads_is_reported_by_someone() -> None:
    reported = {f.metric for m in IMPORTERS.values() for f in cast("Importer", m).META.fields.values()}
    reported |= {name for name, _, _ in foreign_sources()}
    assert metrics_read() <= reported
