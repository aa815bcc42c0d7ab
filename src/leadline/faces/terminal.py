"""Diagnoses for a terminal: the answer first, then the evidence, in 80 columns."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text

from leadline.app.diagnose.grouping import FindingGroup, grouped
from leadline.app.explain.explaining import advice_of
from leadline.core.model.finding import iso
from leadline.core.model.units import duration, share_text, show
from leadline.core.model.vocabulary import LayerState, Severity
from leadline.faces.tables import results_table
from leadline.faces.words.accounts import account_lines, account_title
from leadline.faces.words.findings import Quotes, evidence_lines, group_summary, level_of
from leadline.faces.words.layers import layer_sentence
from leadline.faces.words.screen import LABEL_WIDTH, STEP_WIDTH, Screen, fitted, last_line, screens

if TYPE_CHECKING:
    from rich.console import Console

    from leadline.app.compare.comparing import Comparison
    from leadline.core.model.account import Account
    from leadline.core.model.capture import Capture
    from leadline.core.model.finding import Diagnosis, LayerVerdict, Window

_STATE_STYLE = {
    LayerState.CONVICTED: "bold red",
    LayerState.SUSPECTED: "yellow",
    LayerState.CLEARED: "green",
    LayerState.NOT_EXAMINED: "dim",
}
SEVERITY_STYLE = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "dim",
}
ACCOUNT_BAR_WIDTH = 20  # characters of all of the time
CHANGES_SHOWN = 12
RESULTS_SHOWN = 8
_NS_PER_DAY = 86_400 * 1_000_000_000


def show_diagnosis(out: Console, diagnosis: Diagnosis, capture: Capture, *, everything: bool = False) -> None:
    """Print the answer of each incident on a screen; with everything also layers, account, results and findings."""
    groups = grouped(diagnosis.findings, capture)
    quotes = Quotes(groups)
    shown = screens(diagnosis, quotes, capture.span_ns())
    if len(shown) > 1:
        out.print(Text(f"{len(shown)} incidents, the worst first.", style="dim"))
    for screen in shown:
        _show_screen(out, screen if everything else fitted(screen, out.width))
    if capture.results and not capture.groups and not everything:
        _show_results(out, capture, everything=False)
    if everything:
        _show_everything(out, diagnosis, capture, groups)
    else:
        out.print()
        wrapped(out, last_line(diagnosis), style="dim")


def _show_screen(out: Console, screen: Screen) -> None:
    wrapped(out, screen.lead, style="bold")
    out.print()
    for label, text in screen.rows:
        wrapped(out, text, f"  {label:<{LABEL_WIDTH}}", style="bold")
    if screen.steps:
        out.print()
    for number, step in enumerate(screen.steps, start=1):
        wrapped(out, step, f"{'Do' if number == 1 else '':<4}{number}. ", style="bold")
    if screen.record:
        wrapped(out, screen.record_when, "Sure?  ", style="bold")
        wrapped(out, screen.record, " " * STEP_WIDTH)


def _show_everything(out: Console, diagnosis: Diagnosis, capture: Capture, groups: tuple[FindingGroup, ...]) -> None:
    """Print layers, account, results, every finding with its evidence, and what to record."""
    quotes = Quotes(groups)
    out.print()
    _show_span(out, capture)
    for layer in diagnosis.layers:
        _show_layer(out, layer, quotes)
    if diagnosis.account is not None:
        _show_account(out, diagnosis.account)
    if capture.results:
        _show_results(out, capture, everything=True)
    for number, group in enumerate(groups, start=1):
        out.print()
        _show_group(out, number, group, capture)
        for advice in advice_of(group.lead.rule):
            wrapped(out, advice, "   Also: ", style="bold")
    out.print()
    if diagnosis.skipped:  # hundreds, and each call of print costs more than its line
        lines = [f"skipped {skipped.rule}: needs {', '.join(skipped.needs)}" for skipped in diagnosis.skipped]
        out.print(Text("\n".join(lines), style="dim"))
    _show_unexamined(out, diagnosis)


def _show_account(out: Console, account: Account) -> None:
    """A bar for each term of the time of a transaction, and how it was computed."""
    out.print()
    wrapped(out, f"{account_title(account)}:", "  ")
    for line in account_lines(account):
        bar = "#" * max(round(line.share * ACCOUNT_BAR_WIDTH), 1)
        out.print(Text(f"  {line.name:<38}{line.percent:<16} {bar}"), no_wrap=True, overflow="ellipsis")
        wrapped(out, line.arithmetic, "      ", style="dim")


def _show_results(out: Console, capture: Capture, *, everything: bool) -> None:
    """What tools measured in a whole run, a line per operation; the first of many without everything."""
    table = results_table(capture, None if everything else RESULTS_SHOWN)
    out.print()
    wrapped(out, "Results of tools:", "  ")
    out.print(table)
    hidden = results_table(capture).row_count - table.row_count
    if hidden:
        out.print(Text(f"  and {hidden:,} more: --all", style="dim"))


def _show_span(out: Console, capture: Capture) -> None:
    span = capture.span_ns()
    count = len(capture.sources)
    when = "" if span is None else f", {iso(span[0])} to {iso(span[1])}"
    text = f"{count} recording{'s' if count != 1 else ''}, {capture.series_count:,} series{when}"
    out.print(Text(text, style="dim"))


def _show_layer(out: Console, layer: LayerVerdict, quotes: Quotes) -> None:
    line = Text.assemble(
        f"  {layer.layer.value:<18}",
        (f"{layer.state.value:<13}", _STATE_STYLE[layer.state]),
        " ",
        layer_sentence(layer.reason, quotes),
    )
    line.truncate(out.width, overflow="ellipsis")
    out.print(line, no_wrap=True)


def _show_group(out: Console, number: int, group: FindingGroup, capture: Capture) -> None:
    """A finding, or many of one rule with a line for each."""
    finding = group.lead
    severity = finding.severity
    lead = f"{number}. {severity.label}: "
    wrapped(out, f"{group_summary(group)} [{finding.code} {finding.rule}]", lead, style=SEVERITY_STYLE[severity])
    if group.windows:
        wrapped(out, _when(group.windows, capture), "   ")
    if group.is_many:
        _show_members(out, group)
    for line in evidence_lines(finding):
        wrapped(out, line, "   - ")
    for guess in finding.guessed:
        wrapped(out, f"guessed: {guess}", "   - ", style="italic")
    if finding.caused_by is not None:
        wrapped(out, f"symptom of {finding.caused_by}", "   ", style="italic")
    elif finding.is_wait:
        wrapped(out, "a symptom: nothing recorded says why", "   ", style="italic")
    wrapped(out, finding.remedy, "   Do: ", style="bold")


def _show_members(out: Console, group: FindingGroup) -> None:
    """A line for each member: name, number, severity, and when it held for the longest."""
    names = [member.entity.label() for member in group.members]
    levels = [level_of(member) for member in group.members]
    widths = [min(max(map(len, texts)), limit) for texts, limit in ((names, 30), (levels, 14))]
    for member, name, level in zip(group.members, names, levels, strict=True):
        when = "" if member.window is None else _span(member.window)
        line = Text(f"   {name:<{widths[0]}}  {level:>{widths[1]}}  {member.severity.label:<8}  {when}")
        line.truncate(out.width, overflow="ellipsis")
        out.print(line, no_wrap=True)


def wrapped(out: Console, text: str, lead: str = "", *, style: str = "") -> None:
    """A text after a lead, its further lines indented under its first; only the lead is styled."""
    lines = wrap(text, out.width - len(lead), break_long_words=True, break_on_hyphens=False) or [""]
    out.print(Text.assemble((lead, style), lines[0]))
    for line in lines[1:]:
        out.print(Text(" " * len(lead) + line))


def _when(spans: tuple[Window, ...], capture: Capture) -> str:
    windows = [_span(window) for window in spans[:3]]
    more = f" and {len(spans) - 3} more times" if len(spans) > 3 else ""
    span = capture.span_ns()
    whole = (span[1] - span[0]) / 1e9 if span is not None else 0.0
    held_s = sum(window.duration_s for window in spans)
    share = f", {share_text(min(held_s / whole, 1.0))} of the recording" if whole > 0 else ""
    return f"{'; '.join(windows)}{more} ({duration(held_s)}{share})"


def _span(window: Window) -> str:
    same_day = window.start_ns // _NS_PER_DAY == window.end_ns // _NS_PER_DAY
    end = iso(window.end_ns)
    return f"{iso(window.start_ns)} to {end.split('T')[1] if same_day else end}"


def _show_unexamined(out: Console, diagnosis: Diagnosis) -> None:
    commands: dict[str, list[str]] = {}
    for layer in diagnosis.layers:
        for command in layer.examine:
            commands.setdefault(command, []).append(layer.layer.value)
    if not commands:
        return
    out.print()
    out.print(Text("Not examined; to examine it, record:", style="bold"))
    for command, layers in commands.items():
        out.print(Text(f"  {command}", style="cyan"), no_wrap=True, overflow="ellipsis")
        wrapped(out, f"for {', '.join(layers)}", "      ")


def show_comparison(out: Console, comparison: Comparison, *, everything: bool = False) -> None:
    """Print what changed since the baseline: findings, settings, series."""
    out.print()
    season = ", same weekdays and hours" if comparison.seasonal else ""
    head = f"Since the baseline ({comparison.compared_count:,} series compared{season}):"
    out.print(Text(head, style="bold"))
    for finding in comparison.new:
        wrapped(out, f"{finding.summary} [{finding.rule}]", "   + new: ", style="red")
    for finding in comparison.gone:
        wrapped(out, f"{finding.summary} [{finding.rule}]", "   - gone: ", style="green")
    for setting in comparison.settings:
        wrapped(out, f"{setting.entity.label()}: {setting.before} -> {setting.after}", f"   {setting.setting}: ")
    if comparison.advice is not None:
        wrapped(out, comparison.advice, "   ", style="bold")
    shown = comparison.changes if everything else comparison.changes[:CHANGES_SHOWN]
    for change in shown:
        low, high = (show(bound, change.unit) for bound in (change.low, change.high))
        text = (
            f"{change.entity.label()} {change.metric} {change.statistic}: {show(change.before, change.unit)} -> "
            f"{show(change.after, change.unit)} (difference {low} to {high})"
        )
        lead = {True: "   worse: ", False: "   better: ", None: "   other: "}[change.worse]
        wrapped(out, text, lead, style={True: "red", False: "green", None: ""}[change.worse])
    rest = len(comparison.changes) - len(shown)
    if rest:
        out.print(Text(f"   and {rest:,} more series changed: --all", style="dim"))
    if not (comparison.new or comparison.gone or comparison.settings or comparison.changes):
        out.print("   nothing changed beyond chance")
