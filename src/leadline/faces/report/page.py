"""The page: what the templates show, gathered from a diagnosis; no HTML is written here.

The page may load nothing: its policy allows only the script and style inside it, by their hashes, so that neither a
name in a recording nor a mail program's rewriting can make it run or fetch anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

import jinja2
import numpy as np
from markupsafe import Markup, escape

import leadline
from leadline.app.diagnose.diagnosing import rule_modules
from leadline.app.diagnose.grouping import FindingGroup, grouped
from leadline.core.contracts.docstrings import flowed, paragraphs, sections
from leadline.core.model.capture import NS_PER_S
from leadline.core.model.finding import iso
from leadline.core.model.profile import Profile
from leadline.core.model.units import duration, show
from leadline.core.model.vocabulary import LayerState, Severity
from leadline.faces.report.distribution import distribution
from leadline.faces.report.figures import Chart, finding_charts
from leadline.faces.report.ladder import TRANSACTION, Ladder, latency_ladder
from leadline.faces.report.packing import Pack, pack, points_of
from leadline.faces.report.timeline import timeline, when
from leadline.faces.visible import visible_in_page
from leadline.faces.words.accounts import account_lines, account_title
from leadline.faces.words.answers import headline
from leadline.faces.words.findings import Quotes, group_summary, level_of, lowered_sentence
from leadline.faces.words.incidents import incident_sentence
from leadline.faces.words.layers import layer_sentence
from leadline.faces.words.screen import screens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leadline.app.compare.comparing import Comparison
    from leadline.app.read.importing import Imported
    from leadline.core.contracts.rule import Rule
    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.finding import Diagnosis, Window
    from leadline.core.model.incident import Incident
    from leadline.faces.report.lead import Lead, Section

SCRIPTS = ("store.js", "chart.js", "browser.js", "report.js")
CHART_SCRIPTS = ("store.js", "chart.js", "report.js")
STYLES = ("report.css",)
CHARTED_MAX = 40  # findings with a chart: the page of a whole cluster must open fast too
CHANGES_MAX = 25  # series that changed since a baseline
EVIDENCE_POINTS = 1_200
MEASURED_LEFT = 92  # pixels before the plot: the charts of a measurement stand below each other on one time line
STATE_CLASS = {
    LayerState.CONVICTED: "convicted",
    LayerState.SUSPECTED: "suspected",
    LayerState.CLEARED: "cleared",
    LayerState.NOT_EXAMINED: "unexamined",
}


def page(
    diagnosis: Diagnosis,
    imported: Imported,
    profile: Profile | None = None,
    *,
    comparison: Comparison | None = None,
    lead: Lead | None = None,
    anonymous: bool = False,
) -> str:
    """The whole page as a string; ``lead`` is what stands before the diagnosis where something was measured."""
    capture = imported.capture
    site = profile or Profile()
    limits = limits_used(site)
    groups = grouped(diagnosis.findings, capture)
    quotes = Quotes(groups)
    findings = [_finding(number, group, capture, limits) for number, group in enumerate(groups, start=1)]
    charts: list[Chart] = []
    sections = [_section(section, charts, capture) for section in (lead.sections if lead is not None else ())]
    measured = len(charts)
    for finding in findings[:CHARTED_MAX]:
        finding["charts"] = [_chart(chart, charts, capture) for chart in finding.pop("drawn")]
    causes = [f for f in findings if not f["it"].is_explained and f["it"].severity >= Severity.MEDIUM]
    origin = (capture.span_ns() or (0, 0))[0]
    evidence = pack(_evidence_lines(charts), origin_ns=origin, points=EVIDENCE_POINTS)
    series = pack(capture.groups, origin_ns=origin, points=points_of(capture.series_count))
    script, style = asset(SCRIPTS), asset(STYLES)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            policy=policy(script, style),
            script=script,
            style=style,
            headline=headline(diagnosis, quotes),
            screens=screens(diagnosis, quotes, capture.span_ns()),
            incidents=[incident_sentence(incident) for incident in diagnosis.incidents],
            layers=[
                {"it": v, "state": STATE_CLASS[v.state], "reason": layer_sentence(v.reason, quotes)}
                for v in diagnosis.layers
            ],
            lead=lead,
            sections=sections,
            facts=[*(lead.facts if lead is not None else ()), *_facts(capture)],
            account=_account(diagnosis),
            ladder=_ladder(latency_ladder(diagnosis, capture)),
            timeline=timeline(groups, capture, lead.phases if lead is not None else (), diagnosis.incidents),
            causes=causes[:CHARTED_MAX],
            further=causes[CHARTED_MAX:],
            minor=[f for f in findings if not f["it"].is_explained and f["it"].severity < Severity.MEDIUM],
            symptoms=[f for f in findings if f["it"].is_explained],
            comparison=None if comparison is None else _comparison(comparison),
            examine=_examine(diagnosis),
            results=_results(capture) if lead is None else [],
            data=_embedded(evidence, series, _embedded_page(charts, capture, measured, diagnosis.incidents)),
            series_count=series.series_count,
            empty_count=series.empty_count,
            method=_method(diagnosis, imported, site, limits, anonymous=anonymous),
        )
    )


def _account(diagnosis: Diagnosis) -> dict[str, Any] | None:
    account = diagnosis.account
    return None if account is None else {"title": account_title(account), "lines": account_lines(account)}


def charts_page(charts: Sequence[Chart], capture: Capture) -> str:
    """Return a page of charts alone, with the numbers of each, drawn as in the report."""
    drawn: list[Chart] = []
    shown = [_chart(chart, drawn, capture) for chart in charts]
    origin = (capture.span_ns() or (0, 0))[0]
    evidence = pack(_evidence_lines(drawn), origin_ns=origin, points=EVIDENCE_POINTS)
    script, style = asset(CHART_SCRIPTS), asset(STYLES)
    return (
        environment()
        .get_template("figures.html.j2")
        .render(
            policy=policy(script, style),
            script=script,
            style=style,
            version=leadline.__version__,
            charts=shown,
            page=_embedded_page(drawn, capture, len(drawn), ()),
            evidence=evidence,
        )
    )


def limits_used(profile: Profile) -> dict[str, dict[str, float]]:
    """The limits every rule compared with: its own, as overridden by the profile; rule -> name -> value."""
    return {
        name: {
            limit: profile.limits.get(name, {}).get(limit, threshold.value)
            for limit, threshold in cast("Rule", module).META.thresholds.items()
        }
        for name, module in rule_modules().items()
    }


def standalone(template: str, **shown: object) -> str:
    """A page of its own without a script, from a template that extends ``standalone.html.j2``."""
    style = asset(STYLES)
    page = environment().get_template(template)
    return page.render(policy=policy("", style), style=style, version=leadline.__version__, **shown)


@cache
def environment() -> jinja2.Environment:
    """Where templates come from: everything put into one is escaped, and an unknown name is an error.

    One per process: compiling the templates takes longer than filling them.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("leadline.faces.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.policies["json.dumps_function"] = _visible_json
    environment.filters.update(iso=iso, duration=duration, show=show, bare=_bare, coded=_coded)
    return environment


def _visible_json(value: object, **form: Any) -> str:  # noqa: ANN401 - as Jinja asks for it
    """What scripts of the page read, its names as visible as those of the page."""
    text = visible_in_page(json.dumps(value, ensure_ascii=False))
    return json.dumps(json.loads(text), **form)


def _visible(value: object) -> object:
    """What is put into a page; texts of recordings cannot turn its lines round."""
    return visible_in_page(value) if type(value) is str else value


def _coded(text: str) -> Markup:
    """A text whose parts between backticks are commands."""
    parts = visible_in_page(text).split("`")
    paired = len(parts) % 2 == 1
    if not paired:
        return escape("`".join(parts))
    marked = (Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts))
    return Markup("").join(marked)


def _bare(path: str) -> str:
    """The file's own name, without folders and archives."""
    return path.replace("!", "/").rsplit("/", 1)[-1]


def asset(names: tuple[str, ...]) -> str:
    """Scripts or styles of the page, one after the other."""
    folder = resources.files("leadline.faces.report").joinpath("assets")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def policy(script: str, style: str) -> str:
    """The content security policy of a page that holds this script and style and loads nothing."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    return (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _facts(capture: Capture) -> list[tuple[str, str]]:
    span = capture.span_ns()
    count = len(capture.sources)
    hosts = sorted({entity.name for entity in capture.inventory.facts if entity.kind.value in {"host", "guest"}})
    facts = [
        ("Recordings", f"{count:,}"),
        ("Series", f"{capture.series_count:,}"),
        ("Hosts and guests", ", ".join(hosts[:3]) + (f" and {len(hosts) - 3} more" if len(hosts) > 3 else "")),
    ]
    if span is not None:
        start, end = iso(span[0]), iso(span[1])
        end = end.split("T")[1] if start[:10] == end[:10] else end
        facts[:0] = [
            ("Recorded (UTC)", f"{start.replace('T', ' ').rstrip('Z')} to {end.replace('T', ' ').rstrip('Z')}"),
            ("Length", duration((span[1] - span[0]) / NS_PER_S)),
        ]
    return [(name, text) for name, text in facts if text]


def _finding(number: int, group: FindingGroup, capture: Capture, limits: dict[str, dict[str, float]]) -> dict[str, Any]:
    finding = group.lead
    doc = sections(rule_modules()[finding.rule].__doc__)
    meta = cast("Rule", rule_modules()[finding.rule]).META
    charted = number <= CHARTED_MAX
    return {
        "number": number,
        "id": f"finding-{number}",
        "it": finding,
        "severity": finding.severity.label,
        "summary": group_summary(group),
        "members": _members(group),
        "lowered": "" if finding.lowered is None else lowered_sentence(finding.lowered),
        "when": when(group.windows, capture.span_ns()),
        "why": flowed(doc.get("Why", "")),
        "wrong": flowed(doc.get("When it is wrong", "")),
        "sources": paragraphs(doc.get("Sources", ""), itemised=True),
        "judgement": meta.judgement,
        "drawn": finding_charts(finding, capture, limits[finding.rule]) if charted else [],
        "charts": [],
    }


def _members(group: FindingGroup) -> list[tuple[str, str, str, str]]:
    """Name, severity, level and longest time of each of many; empty where it is one finding."""
    return [
        (f.entity.label(), f.severity.label, level_of(f), "always" if f.window is None else when((f.window,), None))
        for f in (group.members if group.is_many else ())
    ]


def _chart(chart: Chart, charts: list[Chart], capture: Capture) -> dict[str, Any]:
    charts.append(chart)
    parts = {"title": chart.title, "metric": chart.metric, "summary": chart.summary(capture)}
    return {"index": len(charts) - 1, **parts}


def _section(section: Section, charts: list[Chart], capture: Capture) -> dict[str, Any]:
    return {
        "it": section,
        "spreads": [distribution(spread) for spread in section.spreads],
        "charts": [_chart(chart, charts, capture) for chart in section.charts],
    }


def _evidence_lines(charts: list[Chart]) -> list[SeriesGroup]:
    return [line for chart in charts for line in chart.lines]


def _embedded(evidence: Pack, series: Pack, drawn: dict[str, Any]) -> dict[str, Any]:
    """What the script reads: the packs, and what to draw where."""
    return {"page": drawn, "evidence": evidence, "series": series}


def _embedded_page(
    charts: list[Chart], capture: Capture, measured: int, incidents: tuple[Incident, ...]
) -> dict[str, Any]:
    """The charts for the page's script; times in ms since 1970, UTC. The first ``measured`` ones show no finding."""
    drawn, at = [], 0
    for number, chart in enumerate(charts):
        # A line that nothing was measured of is not in the pack.
        named = zip(chart.labels(capture), chart.lines, strict=True)
        labels = [label for label, line in named if bool(np.isfinite(line.values).any())]
        drawn.append(
            {
                "title": chart.title,
                "labels": labels,
                "lines": list(range(at, at + len(labels))),
                "limits": [[limit.value, limit.label] for limit in chart.limits],
                "logarithmic": chart.is_logarithmic,
                "left": MEASURED_LEFT if number < measured else 0,
                "windows": [_span_ms(window) for window in chart.windows],
            }
        )
        at += len(labels)
    first = charts[measured] if len(charts) > measured else None
    return {
        "charts": drawn,
        "incidents": [_span_ms(incident.window) for incident in incidents],
        "span_ms": [t // 1_000_000 for t in capture.span_ns() or (0, 0)],
        "sources": [source.name for source in capture.sources],
        "first": [] if first is None else [[g.metric, str(g.entities[0]), g.source] for g in first.lines],
    }


def _span_ms(window: Window) -> list[int]:
    return [window.start_ns // 1_000_000, window.end_ns // 1_000_000]


def _ladder(ladder: Ladder) -> dict[str, Any] | None:
    if not ladder.is_measured:
        return None
    # A transaction waits for many I/Os: on one scale with them it would leave nothing of the others to see.
    barred = [rung for rung in ladder.rungs if rung.name != TRANSACTION]
    shown = [v for rung in barred for v in (rung.inside_ms, rung.outside_ms) if isfinite(v)]
    longest = max(shown, default=1.0) or 1.0
    rungs = []
    for rung in (rung for rung in ladder.rungs if rung.entity is not None):
        parts = {name: getattr(rung, f"{name}_ms") for name in ("inside", "outside", "peak")}
        rungs.append(
            {
                "it": rung,
                **{name: _cell(v, "ms") for name, v in parts.items()},
                "bars": [
                    (name, f"{100 * parts[name] / longest:.2f}%")
                    for name in ("inside", "outside")
                    if rung in barred and isfinite(parts[name])
                ],
            }
        )
    absent: dict[str, list[str]] = {}
    for rung in ladder.rungs:
        if rung.entity is None:
            absent.setdefault(rung.recorded_by, []).append(rung.name)
    return {
        "it": ladder,
        "rungs": rungs,
        "has_device": any(rung.name == "GAVG" and rung.entity is not None for rung in ladder.rungs),
        "absent": [f"{', '.join(names)} (recorded by {tool})" for tool, names in absent.items()],
    }


def _cell(value: float, unit: str) -> str:
    """A value, or a dash where nothing was measured."""
    return show(value, unit) if isfinite(value) else "–"


def _comparison(comparison: Comparison) -> dict[str, Any]:
    names = {True: "worse", False: "better", None: "changed"}
    changes = [
        {
            "it": change,
            "direction": names[change.worse],
            "before": show(change.before, change.unit),
            "after": show(change.after, change.unit),
            "interval": f"{show(change.low, change.unit)} to {show(change.high, change.unit)}",
        }
        for change in comparison.changes[:CHANGES_MAX]
    ]
    return {"it": comparison, "changes": changes, "more": max(len(comparison.changes) - CHANGES_MAX, 0)}


def _examine(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    commands: dict[str, list[str]] = {}
    for layer in diagnosis.layers:
        for command in layer.examine:
            commands.setdefault(command, []).append(layer.layer.value)
    return [(command, ", ".join(layers)) for command, layers in commands.items()]


def _results(capture: Capture) -> list[dict[str, str]]:
    rows = []
    for result in capture.results:
        for operation in result.operations:
            p99 = operation.p99_ms
            cells = {"rate": (operation.per_s, "per_s"), "mean": (operation.mean_ms, "ms"), "p99": (p99, "ms")}
            shown = {name: _cell(v, unit) for name, (v, unit) in cells.items()}
            if operation.is_clipped(p99):
                shown["p99"] = f"≥ {shown['p99']}"
            if set(shown.values()) != {"–"}:
                rows.append({"tool": result.tool, "job": result.job, "operation": operation.name, **shown})
    return rows


def _method(
    diagnosis: Diagnosis,
    imported: Imported,
    profile: Profile,
    limits: dict[str, dict[str, float]],
    *,
    anonymous: bool,
) -> dict[str, Any]:
    modules = rule_modules()
    rows = []
    for rule in diagnosis.rules_run:
        for name, threshold in cast("Rule", modules[rule]).META.thresholds.items():
            limit = limits[rule][name]
            rows.append(
                {
                    "rule": rule,
                    "name": name,
                    "value": show(limit, threshold.unit),
                    "source": threshold.source,
                    "instead_of": show(threshold.value, threshold.unit) if limit != threshold.value else None,
                }
            )
    return {
        "version": leadline.__version__,
        "python": platform.python_version(),
        "written": datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "anonymous": anonymous,
        "sources": [_source(source) for source in imported.capture.sources],
        "left_out": [str(error) for error in imported.left_out],
        "unrecognised": imported.unrecognised,
        "limits": rows,
        "rules_run": diagnosis.rules_run,
        "skipped": diagnosis.skipped,
        "disabled": sorted(profile.disabled),
        "profile": None if profile.path is None else profile.path if not anonymous else "a profile of the site",
    }


def _source(source: Any) -> dict[str, Any]:  # noqa: ANN401 - SourceInfo
    timed = source.start_ns is not None and source.end_ns is not None
    return {
        "it": source,
        "tool": f"{source.tool} {source.tool_version or ''}".strip(),
        "start": iso(source.start_ns).replace("T", " ").rstrip("Z") if timed else "no time",
        "length": duration((source.end_ns - source.start_ns) / NS_PER_S) if timed else "–",
        "offset": f"{source.offset_s:+g} s" if source.offset_s else "",
    }
