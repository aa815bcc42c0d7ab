"""Incidents in words: when it was bad, what was felt, what it is compared with; for every face the same sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.model.finding import iso
from leadline.core.model.metrics import metric
from leadline.core.model.units import show

if TYPE_CHECKING:
    from leadline.core.model.finding import Window
    from leadline.core.model.incident import Change, Incident

SYMPTOMS_MAX = 3  # the clearest; the others are in the document of --json
_MS_PER_S = 1000.0
_PER_SECOND = {"db_tps": "transactions", "db_qps": "queries", "job_iops": "I/Os"}
_SHORT = {
    "db_latency_ms": "each",
    "job_latency_ms": "per I/O",
    "db_transaction_active_ms": "in the server",
    "db_schedule_lag_ms": "late",
    "db_active_sessions_count": "active sessions",
}
_ORDER = {name: place for place, name in enumerate((*_PER_SECOND, *_SHORT))}
# What the catalogue says in more words than a sentence of several can bear.
_NAMES = {
    "db_latency_ms": "mean latency",
    "job_latency_ms": "mean I/O latency",
    "db_transaction_active_ms": "mean time in the server",
    "db_schedule_lag_ms": "transactions start late by",
    "db_active_sessions_count": "active sessions",
}


def incident_sentence(incident: Incident) -> str:
    """When, what was felt, what it is compared with: "10:00:36 to 10:01:05 UTC (29 s); transactions per second ..."."""
    window = incident.window
    start, end = (iso(ns).rstrip("Z").replace("T", " ") for ns in (window.start_ns, window.end_ns))
    if start[:10] == end[:10]:
        start, end = start[11:], end[11:]
    felt = felt_words(incident)
    parts = [f"{start} to {end} UTC ({length(window.duration_s)})", felt or "no change of what users feel was recorded"]
    if incident.normal:
        parts.append(f"compared with {_normal(window, incident.normal)}")
    return "; ".join(parts)


def felt_words(incident: Incident) -> str:
    """What users felt, the clearest symptom of each metric: "transactions per second 247/s to 98/s"."""
    return ", ".join(_felt(symptom) for symptom in _distinct(incident.symptoms)[:SYMPTOMS_MAX])


def cost_words(incident: Incident) -> str:
    """What an incident cost users, briefly: "247 -> 98 transactions/s, 1.28 ms -> 2.07 s each"."""
    shown = _distinct(incident.symptoms)[:SYMPTOMS_MAX]
    return ", ".join(map(_cost, sorted(shown, key=lambda one: _ORDER.get(one.metric, len(_ORDER)))))


def _cost(symptom: Change) -> str:
    text = f"{_level(symptom.normal, symptom)} -> {_level(symptom.during, symptom)}"
    if symptom.metric in _PER_SECOND:
        return f"{text.replace('/s', '')} {_PER_SECOND[symptom.metric]}/s"
    return f"{text} {_SHORT.get(symptom.metric) or _felt_name(symptom)}"


def length(seconds: float) -> str:
    """A span of time to the second, and to the minute from an hour on.

    >>> length(29.4), length(200), length(3600), length(9000)
    ('29 s', '3 min 20 s', '1 h', '2 h 30 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    minutes = whole % 3600 // 60
    return f"{whole // 3600} h" + (f" {minutes} min" if minutes else "")


def _distinct(symptoms: tuple[Change, ...]) -> list[Change]:
    """The clearest symptom of each metric: two tools that saw the same are one to the reader."""
    first: dict[str, Change] = {}
    for symptom in symptoms:
        first.setdefault(symptom.metric, symptom)
    return list(first.values())


def _felt(symptom: Change) -> str:
    return f"{_felt_name(symptom)} {_level(symptom.normal, symptom)} to {_level(symptom.during, symptom)}"


def _felt_name(symptom: Change) -> str:
    meaning = metric(symptom.metric).meaning.split(",")[0]
    return _NAMES.get(symptom.metric) or f"{meaning[0].lower()}{meaning[1:]}"


def _level(level: float, symptom: Change) -> str:
    """A level as people say it: seconds from a second on."""
    if symptom.unit == "ms" and abs(level) >= _MS_PER_S:
        return show(level / _MS_PER_S, "s")
    return show(level, symptom.unit)


def _normal(window: Window, normal: tuple[Window, ...]) -> str:
    before = any(part.start_ns < window.start_ns for part in normal)
    after = any(part.end_ns > window.end_ns for part in normal)
    where = "before and after" if before and after else "before" if before else "after"
    return f"{length(sum(part.duration_s for part in normal))} {where}"
