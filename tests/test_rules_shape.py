"""A rule cannot ask all series again for one entity after the other: what would is seen, by its text or by the meter.

Ten ways to ask more than in proportion, as one might write them, must be caught: by `asks_for_each` (a function of one
entity or finding that looks at all series of a metric) or by the meter of `tests.test_rules_cost`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.rule import RuleContext
from leadline.core.model.derived import P, Recorded, T, TableDefinition, derived
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding, Window
from leadline.core.model.meter import Meter
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.disks import means_over
from leadline.estate.language.templates import Over, over_threshold
from tests.conftest import ROOT
from tests.rule_cases import RuleCase, capture_of, rule_cases, scope_of
from tests.test_rules_cost import GROWTH_MAX, SLACK, MeteredInventory, copied, firing_cases

# What looks at all series of a metric, or at all entities of a kind.
ALL = frozenset({"of", "of_kind", "changes", "change", "aligned"})
ONE = frozenset({"Entity", "Finding", "Episode", "Entity | None", "Finding | None"})
# With an axis, NumPy takes most of them row by row in Python.
SLOW = frozenset({"nanquantile", "nanpercentile", "nanmedian", "nanmean"})
METRIC = "cpu_ready_pct"
ROOMS = ("src/leadline/rules", "src/leadline/estate")


def asks_for_each(tree: ast.AST) -> Iterator[str]:
    """Functions of one entity, finding or episode that look at all series of a metric or at all entities."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        arguments = (*node.args.args, *node.args.kwonlyargs)
        if not any(one.annotation is not None and ast.unparse(one.annotation) in ONE for one in arguments):
            continue
        names = {
            call.func.attr
            for call in ast.walk(node)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and not _is_of_a_class(call.func)
        }
        if names & ALL:
            yield f"{node.name}: {', '.join(sorted(names & ALL))}"


def _is_of_a_class(function: ast.Attribute) -> bool:
    """Whether it is a constructor such as ``Inventory.of``."""
    return isinstance(function.value, ast.Name) and function.value.id[:1].isupper()


def _slow_calls(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SLOW:
            if any(keyword.arg == "axis" for keyword in node.keywords):
                yield f"{node.func.attr} at line {node.lineno}"


def _modules() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def test_no_function_of_one_entity_looks_at_all_series() -> None:
    asking = {
        path.relative_to(ROOT).as_posix(): some
        for path in _modules()
        if (some := list(asks_for_each(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert asking == {}, "ask for a table over all entities (context.table) and take the entity's row"


def test_no_rule_takes_quantiles_row_by_row() -> None:
    slow = {
        path.relative_to(ROOT).as_posix(): some
        for path in _modules()
        if (some := list(_slow_calls(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert slow == {}, "leadline.core.statistics.rows has quantiles of all rows at once"


class _Declaring(RuleContext):
    """A context that notes what its tables read."""

    def table(self, definition: TableDefinition[P, T], *key: P.args, **named: P.kwargs) -> T:
        """As the rule is answered."""
        undeclared = definition.metrics(key) - self.meta.metrics()
        assert not undeclared, f"{definition.name} reads {sorted(undeclared)}: put them into META.uses of {self.name}"
        return super().table(definition, *key, **named)


@pytest.mark.parametrize("case", firing_cases(), ids=lambda case: case.rule)
def test_a_rule_declares_what_its_tables_read(case: RuleCase) -> None:
    module = load_unit("rule", case.rule)
    capture, scope = capture_of(case.document), scope_of(case.document)
    context = _Declaring(case.rule, module.META, module.__doc__ or "", capture, case.document.get("limits"), scope)
    list(module.check(context))


def _of_entity(context: RuleContext, vcpu: Entity) -> float:
    return max(float(np.nanmax(group.values)) for group in context.of(METRIC) if vcpu in group.entities)


def asks_for_each_entity(context: RuleContext) -> None:
    for group in context.of(METRIC):
        for entity in list(group.entities):
            _of_entity(context, entity)


def takes_a_mean_of_all_for_each(context: RuleContext) -> None:
    for group in context.of(METRIC):
        for entity in list(group.entities):
            means_over(context.of(METRIC), (Window(0, int(group.times_ns[-1])),)).get(entity)


def takes_the_highest_of_all_for_each(context: RuleContext) -> None:
    for group in context.of(METRIC):
        highest = [float(np.nanmax(group.values)) for _ in list(group.entities)]
        assert highest


def finds_its_row_by_looking(context: RuleContext) -> None:
    for group in context.of(METRIC):
        for entity in list(group.entities):
            next(row for row, other in enumerate(group.entities) if other == entity)


def compares_all_pairs(context: RuleContext) -> None:
    for group in context.of(METRIC):
        assert sum(one[0] <= other[0] for one in group.values for other in group.values)


def aligns_all_for_each(context: RuleContext) -> None:
    for group in context.of(METRIC):
        for row in range(len(group.entities)):
            other = context.aligned(group, METRIC)
            assert other is not None
            float(np.nanmean(np.where(np.isnan(other), 0.0, other)[row]))


def goes_through_the_inventory_for_each(context: RuleContext) -> None:
    inventory = context.inventory
    for one in inventory.of_kind(EntityKind.VM):
        assert [other for other in inventory.of_kind(EntityKind.VM) if other == one]


def counts_its_siblings(context: RuleContext) -> None:
    for finding in over_threshold(context, Over(METRIC, "ready time")):
        assert sum(entity.parent == finding.entity.parent for g in context.of(METRIC) for entity in g.entities)


@derived()
def _of_one(reader: Recorded, metric: str, entity: Entity) -> float:
    return max(float(np.nanmax(group.values)) for group in reader.of(metric) if entity.name)


def keys_a_table_by_entity(context: RuleContext) -> None:
    for group in context.of(METRIC):
        for entity in list(group.entities):
            context.table(_of_one, METRIC, entity)


def _worst_of_all(context: RuleContext, finding: Finding) -> float:
    return max(float(group.values.max()) for group in context.of(METRIC)) if finding.windows else 0.0


def looks_at_all_for_each_finding(context: RuleContext) -> None:
    for finding in over_threshold(context, Over(METRIC, "ready time")):
        _worst_of_all(context, finding)


ADVERSARIES: dict[Callable[[RuleContext], None], tuple[Callable[..., Any], ...]] = {
    asks_for_each_entity: (_of_entity,),
    takes_a_mean_of_all_for_each: (),
    takes_the_highest_of_all_for_each: (),
    finds_its_row_by_looking: (),
    compares_all_pairs: (),
    aligns_all_for_each: (),
    goes_through_the_inventory_for_each: (),
    counts_its_siblings: (),
    keys_a_table_by_entity: (),
    looks_at_all_for_each_finding: (_worst_of_all,),
}


def _work(check: Callable[[RuleContext], None], count: int) -> int:
    case = next(case for case in rule_cases()["cpu-ready-high"] if case.kind in ("fires", "warning"))
    meter, capture = Meter(), copied(capture_of(case.document), count, "parts")
    inventory = MeteredInventory(capture.inventory.facts, capture.inventory.links)
    inventory.meter = meter
    module = __import__("leadline.rules.hypervisor_cpu.cpu_ready_high", fromlist=["META"])
    metered = replace(capture, inventory=inventory, meter=meter)
    check(RuleContext("cpu-ready-high", module.META, module.__doc__ or "", metered))
    return meter.total


@pytest.mark.parametrize("check", ADVERSARIES, ids=lambda check: check.__name__)
def test_a_rule_that_asks_more_than_in_proportion_is_caught(check: Callable[[RuleContext], None]) -> None:
    small, large = _work(check, 16), _work(check, 32)
    helpers = (check, *ADVERSARIES[check])
    by_text = [one for each in helpers for one in asks_for_each(ast.parse(textwrap.dedent(inspect.getsource(each))))]
    assert large > GROWTH_MAX * small + SLACK or by_text, f"{small} -> {large}"


def test_a_rule_that_asks_in_proportion_is_not() -> None:
    def check(context: RuleContext) -> None:
        for group in context.of(METRIC):
            for entity, values in zip(group.entities, group.values, strict=True):
                assert entity.name
                assert np.isfinite(values).any()

    small, large = _work(check, 16), _work(check, 32)
    assert large <= GROWTH_MAX * small
