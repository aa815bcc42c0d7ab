"""The first screen of a diagnosis: the answer, what it cost users, what was seen, what to do; for every face the same.

A screen is values of text: a lead, labelled rows, steps and a last line. The terminal, the page, a notebook and a mail
lay them out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING

from leadline.app.diagnose.examine import parted
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.account import Term
from leadline.core.model.answer import Disk, Reason
from leadline.core.model.finding import iso
from leadline.core.model.units import duration, several, show
from leadline.core.model.vocabulary import Blames, Layer, LayerState, Severity
from leadline.core.model.who import WhoKind
from leadline.faces.words.accounts import share_sentence
from leadline.faces.words.answers import answer_headline, disk_sentence, doubt, waited
from leadline.faces.words.incidents import cost_words, length
from leadline.faces.words.layers import and_words

if TYPE_CHECKING:
    from leadline.core.model.answer import Answer, Cause
    from leadline.core.model.finding import Diagnosis, Finding, Window
    from leadline.core.model.who import Who
    from leadline.faces.words.findings import Quotes

_HYPERVISOR = frozenset({Layer.HYPERVISOR_CPU, Layer.HYPERVISOR_MEMORY, Layer.HOST})
LINES_MAX = 19  # of 24: three blank ones, and two that say what was left out
LABEL_WIDTH, STEP_WIDTH = 10, 7  # characters before the texts of rows and steps
SEEN_MAX = 2  # lines of evidence of the first cause
ALSO_MAX = 4
ALWAYS_SHARE = 0.9  # of a recording
STEPS_MAX = 2
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
# What the evidence of a cause is about, by the first word of its kind.
_LABELS = {
    **dict.fromkeys(("disk", "flush", "wal", "temp", "checkpoints", "bulk", "write", "read"), "Disk"),
    "cpu": "CPU",
    "lock": "Locks",
    **dict.fromkeys(("network", "client", "partner"), "Network"),
    **dict.fromkeys(("memory", "swapping", "cold"), "Memory"),
    **dict.fromkeys(("more", "connections", "statement", "export", "commit"), "Database"),
}
# How the lead names who did it.
_BY = {
    WhoKind.STATEMENT: ", mostly {name}",
    WhoKind.SESSION: "; {name} holds the lock",
    WhoKind.WORKER: ", by the {name}",
    WhoKind.PROGRAM: ", by {name}",
    WhoKind.VM: ", by VM {name}",
}
_EXPLAIN = (
    "EXPLAIN (ANALYZE, BUFFERS) {name}: a sequential scan where it used to find few rows is a missing or unused index.",
    "Until it is mended limit it: statement_timeout for its role, or fewer of its sessions.",
)
_GIVE_LESS = (
    "Stop {name}, or run it when nobody waits.",
    "Where it must run now, give it less: nice and ionice, or cpu.max and io.max of its control group.",
)
# What to do about who did it, by the kind of cause and of culprit.
_STEPS = {
    ("statement", WhoKind.STATEMENT): _EXPLAIN,
    ("cpu-busy", WhoKind.STATEMENT): _EXPLAIN,
    ("temp-files", WhoKind.STATEMENT): (
        "EXPLAIN (ANALYZE, BUFFERS) {name}: look for sorts and hashes with Disk or Batches above 1.",
        "Raise work_mem for its role alone, or add the index that makes the sort needless.",
    ),
    ("lock-waits", WhoKind.SESSION): (
        "Look at what {name} does and for how long: pg_stat_activity, or SHOW PROCESSLIST. Let it commit.",
        "If nobody misses it, end it: pg_terminate_backend with its pid. What waits goes on at once.",
    ),
    ("cpu-taken", WhoKind.PROGRAM): _GIVE_LESS,
    ("disk-busy-with-others", WhoKind.PROGRAM): _GIVE_LESS,
}
# What stays unknown whatever the answer, by what decided it.
_UNKNOWN = {
    Reason.LIMIT_OR_DEVICE: "whether somebody set a limit or the device is slow: only the guest was recorded",
    Reason.GUEST_WAITS: "which layer below the guest adds the time: none was recorded",
    Reason.BELOW_IS_QUICK: "what the guest waits for: its disk is slow, what lies below is not",
    Reason.DATABASE_WAITS: "whether a disk takes that time or a busy CPU: no disk was recorded",
    Reason.IO_WAIT: "which disk is waited for, and how long: no disk was recorded",
}


@dataclass(frozen=True, slots=True)
class Screen:
    """One answer on a screen.

    Attributes:
        lead: the answer in a sentence or two.
        rows: label and text: When, Users, what was seen, Cleared, Unknown.
        steps: what to do, the safest first.
        record: the command that would make it surer; empty where nothing would.
        record_when: what is said before it.
    """

    lead: str
    rows: tuple[tuple[str, str], ...]
    steps: tuple[str, ...]
    record: str
    record_when: str = ""


def screens(diagnosis: Diagnosis, quotes: Quotes, span: tuple[int, int] | None) -> tuple[Screen, ...]:
    """A screen for each answer, the worst incident first; only the first one has all that is known."""
    return tuple(
        _screen(answer, diagnosis, quotes, span, is_first=place == 0) for place, answer in enumerate(diagnosis.answers)
    )


def fitted(screen: Screen, width: int) -> Screen:
    """A screen that fits a terminal: of more lines than that, further evidence goes first, then further causes."""
    rows = list(screen.rows)
    while _line_count(screen, rows, width) > LINES_MAX:
        further = [place for place, (label, _) in enumerate(rows) if not label]
        if not further:
            break
        del rows[_least(rows, further)]
    return replace(screen, rows=tuple(rows))


def _least(rows: list[tuple[str, str]], further: list[int]) -> int:
    """Of rows that go on with what one above began, the last of the evidence, else the last of all."""
    also = next((place for place, (label, _) in enumerate(rows) if label == "Also"), len(rows))
    return max((place for place in further if place < also), default=further[-1])


def _line_count(screen: Screen, rows: list[tuple[str, str]], width: int) -> int:
    def count(text: str, indent: int) -> int:
        return max(len(wrap(text, width - indent, break_on_hyphens=False)), 1)

    lines = count(screen.lead, 0) + sum(count(text, LABEL_WIDTH + 2) for _, text in rows)
    lines += sum(count(step, STEP_WIDTH) for step in screen.steps)
    if not screen.record:
        return lines
    return lines + count(screen.record_when, STEP_WIDTH) + count(screen.record, STEP_WIDTH)


def last_line(diagnosis: Diagnosis) -> str:
    """What the screen leaves out and where it is, and where to read why."""
    findings = diagnosis.findings
    symptoms = sum(finding.is_explained for finding in findings)
    minor = sum(not f.is_explained and f.severity < Severity.MEDIUM for f in findings)
    layers = sum(verdict.state is LayerState.NOT_EXAMINED for verdict in diagnosis.layers)
    parts = [
        several(symptoms, "symptom") if symptoms else "",
        several(minor, "minor finding") if minor else "",
        f"{several(layers, 'layer')} not examined" if layers else "",
    ]
    left_out = ", ".join(part for part in parts if part)
    more = f"{left_out}: --all. " if left_out else ""
    cause = diagnosis.answer.cause
    why = "" if cause is None else f" Why: leadline explain {cause.finding.rule}"
    return f"{more}Charts: --html report.html.{why}"


def screen_text(diagnosis: Diagnosis, quotes: Quotes, span: tuple[int, int] | None) -> str:
    """The screens as plain text, for a notebook or a mail."""
    parts = []
    for screen in screens(diagnosis, quotes, span):
        rows = [f"  {label}: {text}" for label, text in screen.rows]
        steps = [f"  {number}. {step}" for number, step in enumerate(screen.steps, start=1)]
        parts.append("\n".join((screen.lead, *rows, *(("Do:", *steps) if steps else ()))))
    return "\n\n".join(parts)


def _screen(
    answer: Answer, diagnosis: Diagnosis, quotes: Quotes, span: tuple[int, int] | None, *, is_first: bool
) -> Screen:
    of_answer = span if answer.span is None else (answer.span.start_ns, answer.span.end_ns)
    cause = answer.cause
    lead = waited(answer, diagnosis) if cause is None else cause.finding
    rows = [*_when(answer, of_answer, lead), *_users(answer)]
    if cause is not None:
        rows += _who(cause)
        rows += _seen(_LABELS.get(cause.kind.split("-")[0], "Seen"), cause.finding) if is_first else []
        rows += _also(answer, quotes)
    elif is_first and lead is not None:
        rows += _seen("Seen", lead)
    if is_first:
        rows += _cleared(answer, diagnosis)
    rows += _unknown(answer, quotes)
    steps = () if cause is None else _steps(cause)
    where, record = parted(_record(answer, diagnosis)) if is_first else ("", "")
    when = f"Record {where} while it is slow:" if where else "Record while it is slow:"
    return Screen(_lead(answer, diagnosis, quotes), tuple(rows), steps, record, when)


def _lead(answer: Answer, diagnosis: Diagnosis, quotes: Quotes) -> str:
    """The answer, what made it slow, and how much of the added time that is."""
    headline = answer_headline(answer, diagnosis, quotes)
    cause = answer.cause
    if cause is not None and cause.who is not None and cause.who.name not in headline:
        headline = f"{headline.removesuffix('.')}{_BY[cause.who.kind].format(name=_name(cause.who))}"
    if _is_advice(answer, diagnosis):
        nothing = "Nothing in these recordings explains slowness"
        start = "No, it is not the disk" if answer.disk is Disk.NO else f"{nothing}. {disk_sentence(answer, quotes)}"
        text = f"{start.removesuffix('.')}. Worth changing: {_small(headline)}."
    elif answer.disk in (Disk.YES, Disk.YES_A_LIMIT):
        text = f"Yes, it is the disk: {_small(headline)}."
    elif answer.disk is Disk.YES_AS_SEEN_BY_GUEST:
        text = f"Yes, as the guest sees it: {_small(headline)}."
    elif answer.disk is Disk.NOT_FIRST and answer.finding is not None:
        text = f"Not the disk first: {_small(headline)}. A disk too: {_small(quotes.summary(answer.finding))}."
    elif answer.disk is Disk.NO and cause is not None:
        text = f"No, it is not the disk: {_small(headline)}."
    elif answer.disk is Disk.NO:
        text = f"No, it is not the disk. {headline}"
    elif cause is not None:
        text = f"{headline.removesuffix('.')}. Whether the disk has a part in it is not known."
    elif answer.because in _UNKNOWN and answer.finding is not None and quotes.summary(answer.finding) in headline:
        text = f"{headline.removesuffix('.')}. Whether it is the disk is not known."
    else:
        text = f"{headline.removesuffix('.')}. {disk_sentence(answer, quotes)}"
    return f"{text} {_share(answer)}".strip()


def _is_advice(answer: Answer, diagnosis: Diagnosis) -> bool:
    """Whether the first cause is a setting that nothing recorded suffers from."""
    cause = answer.cause
    if cause is None or answer.incident is not None or len(cause.findings) > 1 or not diagnosis.has_samples:
        return False
    return rule_metas()[cause.finding.rule].blames is Blames.SETTING


def _share(answer: Answer) -> str:
    """Where the added time went; not where it was waited for a disk that is not to blame."""
    account = answer.account
    if account is None or answer.disk is Disk.UNKNOWN:
        return ""
    waits_for_disk = bool(account.shares) and account.shares[0].term in (Term.DISK, Term.LOG)
    return "" if answer.disk is Disk.NO and waits_for_disk else share_sentence(account)


def _small(text: str) -> str:
    """A sentence's words behind a colon: without its full stop, its first letter small unless it is a name."""
    bare = text.removesuffix(".")
    first = bare.split(" ", maxsplit=1)[0]
    is_word = first[:1].isupper() and first[1:].islower() and len(first) > 1
    return f"{bare[0].lower()}{bare[1:]}" if is_word else bare


def _when(answer: Answer, span: tuple[int, int] | None, finding: Finding | None) -> list[tuple[str, str]]:
    """When it was bad for users; without an incident, when the finding held."""
    if span is None:
        return []
    whole = (span[1] - span[0]) / 1e9
    window = _longest(finding, whole) if answer.incident is None else answer.incident.window
    if window is None:
        return [("Recorded", f"{_times(span)} ({duration(whole)})")]
    times = 1 if finding is None or answer.incident is not None else len({*finding.windows})
    longest = f", the longest of {times} times" if times > 1 else ""
    return [("When", f"{_times((window.start_ns, window.end_ns))} ({_part(window, whole)}){longest}")]


def _longest(finding: Finding | None, whole_s: float) -> Window | None:
    """The longest window of a finding; None where it held nearly always."""
    window = None if finding is None else finding.window
    return window if window is not None and window.duration_s < ALWAYS_SHARE * whole_s else None


def _part(window: Window, whole_s: float) -> str:
    return f"{length(window.duration_s)} of {duration(whole_s)}"


def _times(span: tuple[int, int]) -> str:
    start, end = (iso(ns).rstrip("Z").replace("T", " ") for ns in span)
    return f"{start} to {end[11:] if start[:10] == end[:10] else end} UTC"


def _users(answer: Answer) -> list[tuple[str, str]]:
    if answer.incident is None:
        return []
    return [("Users", cost_words(answer.incident) or "no change of what users feel was recorded")]


def _who(cause: Cause) -> list[tuple[str, str]]:
    return [] if cause.who is None else [("Who", who_words(cause.who))]


def who_words(who: Who) -> str:
    """Who did it, and how much of what: '"SELECT ... FROM orders": 99.7 % of the active sessions'."""
    details = dict(who.details)
    share = who.of if who.share is None else f"{100 * who.share:.3g} % of the {who.of}"
    counted = next((name for name in details if f"{name}, normally" in details), None)
    size = "" if counted is None else f", {details[counted]} {counted} ({details[f'{counted}, normally']} normally)"
    text = f"{share} wait for {who.name}" if who.kind is WhoKind.SESSION else f"{_name(who)}: {share}"
    further = "".join(f", {name} {value}" for name, value in who.details if name in _NAMED)
    return f"{text}{size}{further}"


def _name(who: Who) -> str:
    return f'"{who.name}"' if who.kind is WhoKind.STATEMENT else who.name


_NAMED = frozenset({"user", "application", "client address", "table", "state", "last statement", "query id"})


def _seen(label: str, finding: Finding) -> list[tuple[str, str]]:
    """The evidence of a finding that carries a number."""
    lines = [e.statement for e in finding.evidence if e.value is not None][:SEEN_MAX]
    lines = lines or [e.statement for e in finding.evidence[:1]]
    return [(label if place == 0 else "", line) for place, line in enumerate(lines)]


def _also(answer: Answer, quotes: Quotes) -> list[tuple[str, str]]:
    """Further causes; not the one that the lead names."""
    further = [cause for cause in answer.causes[1:] if cause.finding != answer.finding]
    lines = [quotes.line(cause.finding) for cause in further[:ALSO_MAX]]
    if len(further) > ALSO_MAX:
        lines.append(f"and {len(further) - ALSO_MAX} more")
    return [("Also" if place == 0 else "", line) for place, line in enumerate(lines)]


def _cleared(answer: Answer, diagnosis: Diagnosis) -> list[tuple[str, str]]:
    cleared = [verdict.layer.value for verdict in diagnosis.layers if verdict.state is LayerState.CLEARED]
    if answer.disk is Disk.NO and answer.level is not None:
        level = answer.level
        cleared.insert(0, f"disks (the slowest, {level.entity.label()}: {show(level.value, level.unit)} per request)")
    return [("Cleared", and_words(tuple(cleared)))] if cleared else []


def _unknown(answer: Answer, quotes: Quotes) -> list[tuple[str, str]]:
    text = _UNKNOWN.get(answer.because, "")
    if answer.disk is Disk.NO:
        text = doubt(answer)
    elif not text and answer.disk is Disk.UNKNOWN and answer.cause is not None:
        text = disk_sentence(answer, quotes).removeprefix("Not known: ").removesuffix(".")
    return [("Unknown", text)] if text else []


def _steps(cause: Cause) -> tuple[str, ...]:
    """The first steps: those that name who did it, else the first of the rule's remedy."""
    if cause.who is not None and (cause.kind, cause.who.kind) in _STEPS:
        return tuple(step.format(name=cause.who.name) for step in _STEPS[cause.kind, cause.who.kind])
    sentences = _SENTENCE.split(" ".join(cause.finding.remedy.split()))
    return tuple(sentences[:STEPS_MAX])


def _record(answer: Answer, diagnosis: Diagnosis) -> str:
    """What to record next: of the layer that would decide, else of the first that was not examined."""
    if answer.disk is Disk.NO and answer.explains:
        return ""
    if answer.because in (Reason.DEVICE_SLOW, Reason.LIMIT_REACHED):
        return ""
    wanted = ["guest", "storage-path", "database"]
    if any(verdict.layer in _HYPERVISOR and not verdict.examine for verdict in diagnosis.layers):
        wanted[:2] = reversed(wanted[:2])  # a host was recorded, so it can be again
    by_layer = {verdict.layer.value: verdict.examine for verdict in diagnosis.layers if verdict.examine}
    return next((by_layer[layer][0] for layer in wanted if layer in by_layer), "")
