"""Published figures as text and as plain data: what was published, what came out, how far apart they are."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from leadline.core.contracts.experiment import VERIFIED, FigureVerdict
from leadline.core.model.units import UNITS, show
from leadline.faces.cli.output import console
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from leadline.app.simulate.reproducing import Reproduction
    from leadline.core.contracts.experiment import ExperimentMeta, Published

DETAILED_MAX = 3  # figures that are told whole; of more only the numbers
STYLES = {
    FigureVerdict.REPRODUCED: "green",
    FigureVerdict.DIRECTION_ONLY: "yellow",
    FigureVerdict.NOT_REPRODUCED: "bold red",
}


def counts(reproductions: Sequence[Reproduction]) -> dict[FigureVerdict, int]:
    """How many figures have each verdict."""
    return {kind: sum(reproduction.verdict is kind for reproduction in reproductions) for kind in FigureVerdict}


def document(reproductions: Sequence[Reproduction]) -> dict[str, Any]:
    """Plain data for ``--json``."""
    return {
        "counts": {kind.value: count for kind, count in counts(reproductions).items()},
        "figures": [*map(_plain, reproductions)],
    }


def _plain(reproduction: Reproduction) -> dict[str, Any]:
    meta = reproduction.meta
    compared = [
        {**asdict(part), "error": part.error, "is_within": part.is_within(meta.tolerance)}
        for part in reproduction.findings.comparisons
    ]
    return {
        "id": reproduction.name,
        "claim": meta.claim,
        "source": meta.source,
        "verified": meta.verified,
        "kind": meta.kind,
        "tolerance": meta.tolerance,
        "by": list(meta.by),
        "calibrated": meta.calibrated,
        "adjusted": meta.adjusted,
        "verdict": reproduction.verdict.value,
        "why": reproduction.findings.why,
        "comparisons": compared,
        "checks": [asdict(check) for check in reproduction.findings.checks],
        "picture": None if reproduction.findings.picture is None else asdict(reproduction.findings.picture),
        "simulations": [asdict(run) for run in reproduction.runs],
    }


def show_reproductions(reproductions: Sequence[Reproduction]) -> None:
    """Print figures by verdict, each number beside the published one; of a few figures also claim, source, setup."""
    out = console()
    is_detailed = len(reproductions) <= DETAILED_MAX
    for kind in FigureVerdict:
        same_verdict = [each for each in reproductions if each.verdict is kind]
        if not same_verdict:
            continue
        if not is_detailed:
            out.print(Text(f"{kind.value} ({len(same_verdict)})", style=STYLES[kind]))
            out.print()
        for each in same_verdict:
            _show(out, each, is_detailed=is_detailed)
            out.print()
    wrapped(out, sentence(reproductions))


def sentence(reproductions: Sequence[Reproduction]) -> str:
    """Return how many figures have each verdict, as one sentence.

    Calibrated numbers never count: see `leadline.core.contracts.experiment.verdict`.
    """
    parts = [f"{count} {kind.value}" for kind, count in counts(reproductions).items() if count]
    return f"{len(reproductions)} published figure{'s' * (len(reproductions) != 1)}: {', '.join(parts)}"


def _show(out: Console, reproduction: Reproduction, *, is_detailed: bool) -> None:
    meta, findings = reproduction.meta, reproduction.findings
    out.print(
        Text.assemble((reproduction.name, "bold"), "  ", (reproduction.verdict.value, STYLES[reproduction.verdict]))
    )
    wrapped(out, f"By {basis(meta)}", "  ")
    if is_detailed:
        wrapped(out, meta.claim, "  ")
        wrapped(out, f"{meta.source} ({VERIFIED[meta.verified]})", "  Source: ", style="bold")
        for heading in ("Setup", "Limits"):
            if reproduction.sections.get(heading):
                wrapped(out, " ".join(reproduction.sections[heading].split()), f"  {heading}: ", style="bold")
    if findings.comparisons:
        table = plain_table("compared", "published", "Leadline", "error", right=("published", "Leadline", "error"))
        for part in findings.comparisons:
            style = "dim" if part.is_calibrated else "" if part.is_within(meta.tolerance) else "yellow"
            name = f"{part.name}{' (calibrated)' * part.is_calibrated}"
            table.add_row(name, published(part), value(part.found, part.unit), Text(error(part), style=style))
        out.print(Padding(table, (0, 0, 0, 2), expand=False))
    for check in findings.checks:
        lead, style = ("  holds: ", "green") if check.holds else ("  does not hold: ", "bold red")
        wrapped(out, f"{check.statement} ({check.evidence})", lead, style=style)
    if findings.why:
        wrapped(out, findings.why, "  Why: ", style="bold")


def basis(meta: ExperimentMeta) -> str:
    """How its values come about and when they count as the published ones."""
    near = "" if meta.kind == "ordering" else f", within {100.0 * meta.tolerance:g} %"
    calibrated = f", calibrated on {meta.calibrated}" if meta.calibrated else ""
    adjusted = f", adjusted after its result was seen: {meta.adjusted}" if meta.adjusted else ""
    return f"{' and '.join(meta.by)}{near}{calibrated}{adjusted}"


def published(part: Published) -> str:
    """The published value or range."""
    if isinstance(part.published, tuple):
        low, high = part.published
        return f"{value(low, '')} to {value(high, part.unit)}"
    return value(part.published, part.unit)


def value(number: float, unit: str) -> str:
    """A number with its unit; a dash where nothing was measured.

    >>> value(580.04, "ms"), value(2.5, ""), value(float("nan"), "ms"), value(0.1234, "of capacity")
    ('580 ms', '2.5', '-', '0.123 of capacity')
    """
    if not isfinite(number):
        return "-"
    if unit in UNITS:
        return show(number, unit)
    text = f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"
    return f"{text} {unit}".rstrip()


def error(part: Published) -> str:
    """The relative error, signed; a dash where nothing was measured."""
    if not isfinite(part.error):
        return "-"
    return f"{100.0 * part.error:+.2g} %" if abs(part.error) >= 5e-5 else "0 %"
