"""Answers in words: what made it slow, and is it the disk."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from leadline.core.contracts.rule import rule_metas
from leadline.core.model.answer import Answer, Certainty, Disk, Reason
from leadline.core.model.metrics import metric
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Severity
from leadline.faces.words.accounts import account_sentence
from leadline.faces.words.findings import Quotes, feeling_sentence
from leadline.faces.words.layers import too_short

if TYPE_CHECKING:
    from leadline.core.model.answer import DiskLevel, LoadMeasured
    from leadline.core.model.finding import Diagnosis, Finding, LayerVerdict
    from leadline.core.model.incident import Incident

NAMED_MAX = 3
SAID_SHARE = 0.1  # of the added time; less at a disk adds nothing to a "yes"


def headline(diagnosis: Diagnosis, quotes: Quotes) -> str:
    """What made it slow, in a sentence: of the worst incident, or of the recording."""
    return answer_headline(diagnosis.answer, diagnosis, quotes)


def answer_headline(answer: Answer, diagnosis: Diagnosis, quotes: Quotes) -> str:
    """What made it slow in one incident, or that nothing recorded explains it."""
    if not answer.explains:
        return _unexplained(answer, diagnosis, quotes)
    top = answer.cause.finding if answer.cause is not None else _worst(diagnosis)
    if top is None:
        if not diagnosis.has_samples:
            return "Nothing was measured: none of these files holds a sample."
        return _unused(diagnosis.unused) or "Nothing in these recordings explains slowness."
    return f"{quotes.summary(top)}; nothing recorded says why." if top.is_wait else quotes.summary(top)


def _worst(diagnosis: Diagnosis) -> Finding | None:
    """The finding that heads what no cause explains; None where there is none that counts."""
    worst = next((finding for finding in diagnosis.findings if finding.severity >= Severity.MEDIUM), None)
    return None if worst is None or worst.is_explained else worst


def waited(answer: Answer, diagnosis: Diagnosis) -> Finding | None:
    """The wait to show where no recording says why."""
    wait = _worst(diagnosis) if answer.explains else answer.waiting
    return wait if answer.cause is None else None


def disk_sentence(answer: Answer, quotes: Quotes) -> str:
    """Is it the disk? One sentence, which says how much of the added time that is where that is known."""
    text = _disk_text(answer, quotes)
    share = answer.disk_share
    if answer.account is not None and share is not None and answer.disk.accuses and share >= SAID_SHARE:
        return f"{text} {account_sentence(answer.account)}."
    return text


_WAITS = {
    "guest_disk_await_ms": "the await",
    "guest_disk_await_ms_read": "the await of reads",
    "guest_disk_await_ms_write": "the await of writes",
    "guest_disk_flush_latency_ms": "the time of a flush",
    "guest_disk_queue_count": "the queue",
}
# What is said for a reason; {finding} is what it quotes.
_SAYS = {
    Reason.DEVICE_SLOW: "Yes: {finding}.",
    Reason.LIMIT_REACHED: "Yes, before the device: {finding}. The device itself is not to blame.",
    Reason.LIMIT_OR_DEVICE: (
        "Yes as the guest sees it ({finding}); a limit or the device itself, nothing below was recorded."
    ),
    Reason.GUEST_WAITS: "Yes as the guest sees it ({finding}); which layer below adds the time was not recorded.",
    Reason.ANOTHER_FIRST: "Also, but not first: {finding}.",
    Reason.DATABASE_WAITS: ("Not known: {finding}; whether a disk takes that time or a busy CPU was not recorded."),
    Reason.IO_WAIT: "Not known: {finding}; which disk is waited for, and how long, was not recorded.",
    Reason.BELOW_IS_QUICK: "Not known: the guest waits for its disk, but no layer below it was slow.",
    Reason.UNFELT: "Not known: {finding}, but nobody felt it in this recording.",
    Reason.FAINT: "Not known: {finding}{detail}.",
    Reason.WAITED_LONGER: "Not known: no limit was passed, but {detail} in the incident.",
    Reason.ACCOUNT: "Not known: no disk passed a limit, but {detail}.",
    Reason.NEAR_LIMIT: "Not known: no limit was passed for long, but {detail}.",
    Reason.BRIEFLY_SLOW: "Not known: no limit was passed for long, but {detail}.",
    Reason.BUSY: "Not known: no limit was passed for long, but {detail}.",
    Reason.DAMAGED: (
        "Not known: damaged lines were left out, and where they are missing a disk was not measured for 15 s or more."
    ),
    Reason.QUICK: "No: the disk was looked at and is not slow.",
    Reason.ELSEWHERE: "No: {detail} of the added time is spent waiting for a disk.",
    Reason.LOAD_TOOL: (
        "The disk was not slow while a load tool measured it: {detail}. What the database waited for was not recorded."
    ),
    Reason.LOADED: (
        "Not known: {detail}. Large requests, or many at once, wait for each other on any disk: measure small ones one "
        "at a time."
    ),
    Reason.NOT_DURING: "Not known: disks were recorded, but not during the incident.",
    Reason.TOO_SHORT: "Not known: {detail}.",
    Reason.NOT_RECORDED: "Not known: no recording shows the disk's latency.",
}


def _disk_text(answer: Answer, quotes: Quotes) -> str:
    quoted = "" if answer.finding is None else quotes.summary(answer.finding)
    if answer.because is Reason.QUICK and answer.certainty is not Certainty.IS:
        return "Probably not: the disk was looked at and is not slow, but nothing recorded explains what was felt."
    return _SAYS[answer.because].format(finding=quoted, detail=_detail(answer))


def doubt(answer: Answer) -> str:
    """What makes a "no" less sure; empty where nothing does."""
    return "what made it slow: nothing recorded explains it" if answer.certainty is not Certainty.IS else ""


def _detail(answer: Answer) -> str:
    """What a reason's sentence says beside what it quotes."""
    if answer.change is not None:
        name = _WAITS.get(answer.change.metric) or metric(answer.change.metric).meaning.split(" (")[0]
        return f"{name} of {answer.change.entity.label()} went from {answer.change}"
    if answer.level is not None and answer.disk is Disk.UNKNOWN:
        return _level(answer.because, answer.level)
    if answer.power is not None:
        return too_short(answer.power, "a disk")
    if answer.measured is not None:
        return _measured(answer.measured)
    if answer.because is Reason.FAINT and answer.finding is not None and answer.finding.evidence:
        return f", {answer.finding.evidence[-1].statement}"
    if answer.because is Reason.ACCOUNT and answer.account is not None:
        return account_sentence(answer.account)
    return f"{100 * (answer.disk_share or 0.0):.0f} %"


def _level(reason: Reason, level: DiskLevel) -> str:
    name = level.entity.label()
    if reason is Reason.BUSY:
        waiting = f" with {level.waiting_count:.2g} requests under way" if level.waiting_count >= 0 else ""
        return f"{name} is {show(level.value, 'pct')} busy{waiting}"
    value, limit = show(level.value, level.unit), show(level.limit, level.unit)
    if reason is Reason.NEAR_LIMIT:
        return f"{name} takes {value} per request, near the limit of {limit}"
    return f"{name} takes {value} per request in {100 * level.share:.0f} % of the time (limit {limit})"


def _measured(measured: LoadMeasured) -> str:
    others = f", the slowest of {measured.result_count} results" if measured.result_count > 1 else ""
    run = f"{measured.tool} {measured.job}, {measured.operation}"
    return f"{run}: {measured.latency}{others}"


def _unused(counters: tuple[str, ...]) -> str:
    if not counters:
        return ""
    more = len(counters) - NAMED_MAX
    named = ", ".join(counters[:NAMED_MAX])
    return f"Read, but no rule uses these counters: {named}{f' and {more:,} more' if more > 0 else ''}."


def _unexplained(answer: Answer, diagnosis: Diagnosis, quotes: Quotes) -> str:
    """A symptom demands a cause: what was felt, what waited, that nothing explains it, and what was looked at."""
    if answer.incident is not None:
        felt = felt_in(answer.incident)
    else:
        sentence = "" if diagnosis.feeling is None else feeling_sentence(diagnosis.feeling)
        felt = f"{sentence[:1].upper()}{sentence[1:]}"
    looked = [verdict.layer.value for verdict in diagnosis.layers if _has_looked(verdict) and not verdict.findings]
    without = f" Looked at without a finding: {', '.join(looked)}." if looked else ""
    if answer.waiting is not None:
        return f"{felt}. Meanwhile: {quotes.summary(answer.waiting)}; nothing recorded says why.{without}"
    return f"{felt}; nothing recorded explains it.{without}"


def _has_looked(verdict: LayerVerdict) -> bool:
    metas = rule_metas()
    return any(metas[name].clears for name in verdict.rules_run)


def felt_in(incident: Incident) -> str:
    """What users felt in an incident, and when: "10:00:36 to 10:01:05 UTC: transactions per second 42/s to 0/s"."""
    times = (incident.window.start_ns, incident.window.end_ns)
    start, end = (datetime.fromtimestamp(ns / 1e9, UTC).strftime("%H:%M:%S") for ns in times)
    if not incident.symptoms:
        return f"{start} to {end} UTC: no change of what users feel was recorded"
    symptom = incident.symptoms[0]
    return f"{start} to {end} UTC: {metric(symptom.metric).meaning.split(',')[0]} went from {symptom}"
