"""Units are found by file name: a file in the folder of its kind is a unit, and nothing else lists it."""

from __future__ import annotations

from functools import cache
from importlib import import_module, resources
from types import ModuleType
from typing import TYPE_CHECKING

from leadline.core.model.errors import UsageError
from leadline.core.model.similar import similar

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

KINDS = {
    "importer": "leadline.importers",
    "rule": "leadline.rules",
    "fault": "leadline.generators.faults",
    "collector": "leadline.collectors",
    "target": "leadline.targets",
    "benchmark": "leadline.benchmarks",
    "scenario": "leadline.scenarios",
    "experiment": "leadline.experiments",
    "planner": "leadline.planners",
    "notifier": "leadline.notifiers",
    "guide": "leadline.guides",
}


@cache
def unit_modules(kind: str) -> dict[str, str]:
    """Unit name (``cpu-ready-high``) -> dotted module, sorted by name, for a kind of `KINDS`."""
    package = KINDS[kind]
    return dict(sorted(_scan(resources.files(package), package)))


def _scan(folder: Traversable, package: str) -> list[tuple[str, str]]:
    modules: list[tuple[str, str]] = []
    for entry in folder.iterdir():
        stem = entry.name.removesuffix(".py")
        if entry.is_dir() and not entry.name.startswith(("_", ".")):
            modules.extend(_scan(entry, f"{package}.{entry.name}"))
        elif entry.name.endswith(".py") and not stem.startswith("_"):
            modules.append((stem.replace("_", "-"), f"{package}.{stem}"))
    return modules


def load_unit(kind: str, name: str) -> ModuleType:
    """The unit's module.

    Raises:
        UsageError: no unit of the kind has that name.
    """
    modules = unit_modules(kind)
    if name not in modules:
        raise UsageError(
            f"{kind} {name}",
            found="no such unit",
            expected=f"one of {len(modules)} {kind}s",
            advice=f"`leadline explain` lists them; near: {', '.join(similar(name, modules)) or 'none'}",
        )
    return import_module(modules[name])


def load_units(kind: str) -> dict[str, ModuleType]:
    """Every unit of a kind by name."""
    return {name: import_module(module) for name, module in unit_modules(kind).items()}
