"""Use case: everything a unit, metric or layer says of itself; the generated reference is made of the same."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

from leadline.core.contracts.discovery import KINDS, load_unit, load_units, unit_modules
from leadline.core.contracts.docstrings import sections, title
from leadline.core.contracts.guide import Guide
from leadline.core.contracts.importer import Importer
from leadline.core.contracts.rule import Rule
from leadline.core.io.shipped import shipped
from leadline.core.model.errors import UsageError
from leadline.core.model.metrics import foreign_sources, metric, metrics
from leadline.core.model.similar import similar
from leadline.core.model.units import several
from leadline.estate.knowledge.settings import is_by_hand

# The word on the command line for all units of a kind.
PLURALS = {f"{kind}s": kind for kind in KINDS}


def explain(name: str) -> dict[str, Any]:
    """The page of a unit, metric or piece of advice as plain data: kind, name, title, sections, facts.

    A tool that is read and driven has two units of its name; ``benchmark:fio`` names one of them.

    Raises:
        UsageError: nothing has that name.
    """
    asked, _, plain = name.replace("_", "-").rpartition(":")
    kinds = [kind for kind in KINDS if plain in unit_modules(kind) and asked in ("", kind)]
    if kinds:
        page = _unit_page(kinds[0], plain)
        if len(kinds) > 1:
            page.setdefault("facts", {})["see also"] = [f"{kind}:{plain}" for kind in kinds[1:]]
        return page
    by_code = {cast("Rule", module).META.code: rule for rule, module in load_units("rule").items()}
    if name.upper() in by_code:
        return _unit_page("rule", by_code[name.upper()])
    if name in metrics():
        return _metric_page(name)
    advice = next((row for row in _rows("advice.csv") if row["catalogue"] == plain), None)
    if advice is not None:
        return _advice_page(advice)
    raise UsageError(
        f"explain {name}",
        found="no such rule, importer, fault or metric",
        expected="a name that `leadline rules`, `leadline metrics` or `leadline explain importers` prints",
        advice=f"Near: {', '.join(_near(name)) or 'nothing'}",
    )


def guide(name: str) -> str | None:
    """The text of a guide that errors name, as ``docs/guides/sweep.md``; None when there is no such guide."""
    path = shipped(Path(name))
    is_guide = path.parts[-3:-1] == ("docs", "guides") and path.suffix == ".md" and path.is_file()
    return path.read_text(encoding="utf-8") if is_guide else None


def list_units(kind: str) -> list[tuple[str, str]]:
    """Name and title of every unit of a kind."""
    return [(name, title(module.__doc__)) for name, module in load_units(kind).items()]


def where_reported(name: str) -> dict[str, list[str]]:
    """Tool -> the fields that become a metric."""
    fields_by_tool: dict[str, list[str]] = {}
    for importer in load_units("importer").values():
        meta = cast("Importer", importer).META
        for field_name, field in meta.fields.items():
            if field.metric == name:
                fields_by_tool.setdefault(meta.tool, []).append(field_name)
    for metric_name, tool, field_name in foreign_sources():
        if metric_name == name:
            fields_by_tool.setdefault(tool, []).append(field_name)
    return fields_by_tool


def coverage() -> dict[str, tuple[str, str]]:
    """Catalogue id -> ("rule", rule names), ("advice", what) or ("neither", why), for every id spoken of."""
    coverage_by_id: dict[str, tuple[str, str]] = {}
    rules: dict[str, list[str]] = {}
    for name, module in load_units("rule").items():
        for entry in (name, *cast("Rule", module).META.catalogue):
            rules.setdefault(entry, []).append(name)
    for row in _rows("not_rules.csv"):
        coverage_by_id[row["catalogue"]] = ("neither", row["reason"])
    for row in _rows("advice.csv"):
        coverage_by_id[row["catalogue"]] = ("advice", row["advice"])
    coverage_by_id.update({entry: ("rule", ", ".join(names)) for entry, names in rules.items()})
    return dict(sorted(coverage_by_id.items()))


def advice_of(rule: str) -> list[str]:
    """Recommendations that belong to a rule's findings."""
    return [row["advice"] for row in _rows("advice.csv") if rule in row["rules"].split()]


def advice_text(name: str) -> str:
    """The advice of a row, by its name in the catalogue.

    Raises:
        KeyError: there is none.
    """
    return {row["catalogue"]: row["advice"] for row in _rows("advice.csv")}[name]


def proven_on(importer: str) -> str:
    """How many real files of how many authors an importer has read; recordings of our own making are not counted."""
    row = next((row for row in _rows("real_files.csv") if row["importer"] == importer), None)
    if row is None:
        return "no real file of others: not proven on a real file"
    return f"{several(int(row['files']), 'real file')} of {several(int(row['authors']), 'author')}"


@cache
def _rows(name: str) -> list[dict[str, str]]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _unit_page(kind: str, name: str) -> dict[str, Any]:
    module = load_unit(kind, name)
    parts = sections(module.__doc__)
    page: dict[str, Any] = {"kind": kind, "name": name, "title": title(module.__doc__)}
    page["sections"] = {heading: text for heading, text in parts.items() if heading}
    if kind == "rule":
        page["facts"] = _rule_facts(name, cast("Rule", module))
    elif kind == "importer":
        meta = cast("Importer", module).META
        page["facts"] = {
            "tool": meta.tool,
            "record": meta.record,
            "fields": len(meta.fields),
            "proven on": proven_on(name),
        }
    elif kind == "experiment":
        from leadline.core.contracts.experiment import Experiment, told_of  # noqa: PLC0415 - only this needs pydantic

        page["facts"] = told_of(name, cast("Experiment", module).META)
    return page


def _rule_facts(name: str, rule: Rule) -> dict[str, Any]:
    meta = rule.META
    limits = {n: f"{t.value:g} {t.unit} ({t.source})" for n, t in meta.thresholds.items()}
    return {
        "code": meta.code,
        "layer": meta.layer.value,
        "severity": meta.severity.label + (" (judgement)" if meta.judgement else ""),
        "needs": list(meta.needs),
        "uses": list(meta.uses),
        "by hand": [one for need in (*meta.needs, *meta.uses) for one in need.split("|") if is_by_hand(one)],
        "limits": limits,
        "explains": list(meta.explains),
        "catalogue": [name, *meta.catalogue],
        "advice": advice_of(name),
    }


def _metric_page(name: str) -> dict[str, Any]:
    known = metric(name)
    facts = {
        "unit": known.unit,
        "layer": known.layer.value,
        "better": known.better.value,
        "kinds": [kind.value for kind in known.kinds],
        "reported by": where_reported(name),
    }
    return {"kind": "metric", "name": name, "title": known.meaning, "sections": {}, "facts": facts}


def _advice_page(row: dict[str, str]) -> dict[str, Any]:
    """The page of an advice: the rules that give it, and the guides that contain it."""
    name = row["catalogue"]
    guides = [
        guide_name
        for guide_name, module in load_units("guide").items()
        if any(name in step.advice for step in cast("Guide", module).META.steps)
    ]
    facts = {"told with": row["rules"].split(), "stands in": [f"leadline guide {one}" for one in guides]}
    shown = {fact: ", ".join(names) for fact, names in facts.items() if names}
    return {"kind": "advice", "name": name, "title": row["advice"], "sections": {}, "facts": shown}


def _near(name: str) -> list[str]:
    advice = (row["catalogue"] for row in _rows("advice.csv"))
    return similar(name, [*(unit for kind in KINDS for unit in unit_modules(kind)), *metrics(), *advice])
