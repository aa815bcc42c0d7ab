"""Incidents whose time is given: how it is written, what is refused, what is made of it."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.diagnose.incidents import told_incident
from leadline.app.diagnose.spans import asked_spans
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.core.model.finding import Window, iso
from leadline.core.model.incident import Basis
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.words.answers import headline
from leadline.faces.words.findings import Quotes

NS = 1_000_000_000
START = 1_700_000_000 * NS  # 2023-11-14T22:13:20Z
DATABASE = Entity(EntityKind.DATABASE, "orders")


def capture(tps_during: float = 5.0, interval_s: int = 1, first_ns: int = START, count: int = 200) -> Capture:
    builder = CaptureBuilder("pgbench.txt", "pgbench", "pgbench")
    times = first_ns + interval_s * NS * np.arange(count, dtype=np.int64)
    bad = (np.arange(count) > 100) & (np.arange(count) <= 150)
    builder.add_series("db_tps", DATABASE, times, np.where(bad, tps_during, 40.0 + np.arange(count) % 3))
    builder.add_series("db_latency_ms", DATABASE, times, np.where(bad, 400.0, 25.0))
    return builder.build()


@pytest.mark.parametrize(
    "text",
    [
        "100s..150s",
        "100..2.5m",
        "22:15:00..22:15:50",
        "2023-11-14T22:15:00Z..2023-11-14T22:15:50Z",
        "2023-11-14 23:15:00+01:00..22:15:50",
    ],
)
def test_a_span_is_written_in_several_ways(text: str) -> None:
    window, normal = asked_spans(capture(), text, None)
    assert window == Window(START + 100 * NS, START + 150 * NS)
    assert normal is None


def test_times_without_a_zone_are_in_the_one_asked_for() -> None:
    window, _ = asked_spans(capture(), "23:15:00..2023-11-14T23:15:50", None, "Europe/Berlin")
    assert window == Window(START + 100 * NS, START + 150 * NS)


def test_a_time_of_day_after_midnight_is_of_the_next_day() -> None:
    midnight = START + 6400 * NS
    window, _ = asked_spans(capture(first_ns=midnight - 100 * NS), "23:59:50..00:00:20", None)
    assert window is not None
    assert (iso(window.start_ns), iso(window.end_ns)) == ("2023-11-14T23:59:50Z", "2023-11-15T00:00:20Z")


@pytest.mark.parametrize(
    ("incident", "normal", "words"),
    [
        ("yesterday..now", None, "--incident: the time 'yesterday'; expected FROM..TO"),
        ("100s", None, "--incident: '100s'; expected FROM..TO"),
        ("150s..100s", None, "Exchange the two times."),
        ("100s..100s", None, "Give a later end."),
        ("100s..300s", None, "expected a span of the recording, 2023-11-14T22:13:20Z to"),
        ("03:00..04:00", None, "--timezone says which zone"),
        ("100s..100.5s", None, "no samples in 2023-11-14T22:15:00Z"),
        ("100s..101s", None, "1 sample in 2023-11-14T22:15:00Z"),
        ("0s..199s", None, "--incident: no samples outside it"),
        ("100s..150s", "140s..180s", "--normal: 2023-11-14T22:15:40Z to 2023-11-14T22:16:20Z, which overlaps"),
        ("100s..150s", "10s..10.2s", "--normal: no samples"),
        (None, "10s..20s", "--normal: no --incident"),
    ],
)
def test_what_is_no_span_of_the_recording_is_refused(incident: str | None, normal: str | None, words: str) -> None:
    with pytest.raises(UsageError) as error:
        asked_spans(capture(), incident, normal)
    assert words in str(error.value)


def test_a_time_of_day_on_several_days_needs_its_date() -> None:
    with pytest.raises(UsageError, match="on 3 days"):
        asked_spans(capture(interval_s=900), "22:30..23:30", None)


def test_a_recording_without_times_has_no_span() -> None:
    with pytest.raises(UsageError, match="recordings without times"):
        asked_spans(Capture(), "1s..2s", None)


def test_what_was_felt_is_measured_inside_and_outside() -> None:
    window = Window(START + 100 * NS, START + 150 * NS)
    incident = told_incident(capture(), window)
    assert incident.basis is Basis.TOLD
    assert incident.window == window
    assert {(s.metric, s.normal, s.during) for s in incident.symptoms} == {
        ("db_tps", 41.0, 5.0),
        ("db_latency_ms", 25.0, 400.0),
    }
    assert all(symptom.share > 0.5 for symptom in incident.symptoms)
    before = Window(START + 20 * NS, START + 60 * NS)
    assert told_incident(capture(), window, before).normal == (before,)


def test_a_diagnosis_takes_the_time_it_is_given() -> None:
    window = Window(START + 20 * NS, START + 60 * NS)
    found = diagnose(capture(), incident=window)
    (incident,) = found.incidents
    assert (incident.window, incident.basis, incident.symptoms) == (window, Basis.TOLD, ())
    assert headline(found, Quotes()).startswith("22:13:40 to 22:14:20 UTC: no change of what users feel")
    (found_itself,) = diagnose(capture()).incidents
    assert found_itself.basis is Basis.FELT
