"""Use case: two density runs side by side, such as two systems that ran the same instances."""

from __future__ import annotations

from leadline.app.density.comparison import DensityComparison, Side, compare
from leadline.app.density.results import Density

_NOT_LOAD = {"name", "about", "source", "timing", "steady"}


def compare_density(before: Density, after: Density) -> DensityComparison:
    """What changed from one density run to another; what they did not have in common is named."""
    old, new = (Side(density.id, density.answer, tuple(density.by_count)) for density in (before, after))
    return compare(old, new, _unlike(before, after))


def _unlike(before: Density, after: Density) -> list[str]:
    differences = []
    if before.clauses != after.clauses:
        differences.append(f"service level: {', '.join(before.clauses)} then {', '.join(after.clauses)}")
    keys = sorted({*before.workload, *after.workload} - _NOT_LOAD)
    differences += [f"workload: {key} differs" for key in keys if before.workload.get(key) != after.workload.get(key)]
    limits = [density.limits.words() if density.are_limited else "none" for density in (before, after)]
    if limits[0] != limits[1]:
        differences.append(f"limits of an instance: {limits[0]} then {limits[1]}")
    for key in sorted({*before.host, *after.host}):
        if before.host.get(key) != after.host.get(key):
            differences.append(f"{key}: {before.host.get(key)} then {after.host.get(key)}")
    differences += [
        f"{density.id}: the search was ended before its time" for density in (before, after) if not density.is_done
    ]
    return differences
