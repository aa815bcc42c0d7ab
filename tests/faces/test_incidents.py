"""The incident as people read it: a sentence under the headline, a document, a shade on the page and its charts."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest
from rich.console import Console

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import Imported
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.model.incident import Basis, Change, Incident
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.documents import diagnosis_document
from leadline.faces.report.anonymize import anonymized
from leadline.faces.report.page import page
from leadline.faces.terminal import show_diagnosis
from leadline.faces.words.incidents import incident_sentence

NS = 1_000_000_000
START = 1_700_000_000 * NS  # 2023-11-14T22:13:20Z
DATABASE = Entity(EntityKind.DATABASE, "orders")
GUEST = Entity(EntityKind.GUEST, "db01")
COUNT = 240


def stalled() -> Capture:
    """Throughput falls from 40/s to 5/s from second 100 to 150, and I/O wait is high throughout."""
    builder = CaptureBuilder("pgbench.txt", "pgbench", "pgbench")
    times = START + NS * np.arange(1, COUNT + 1, dtype=np.int64)
    bad = (np.arange(COUNT) >= 100) & (np.arange(COUNT) < 150)
    builder.add_series("db_tps", DATABASE, times, np.where(bad, 5.0, 40.0 + np.arange(COUNT) % 3))
    builder.add_series("db_latency_ms", DATABASE, times, np.where(bad, 14_000.0, 1600.0 + np.arange(COUNT) % 7))
    builder.add_series("guest_cpu_iowait_pct", GUEST, times, np.where(bad, 80.0, 1.0))
    return builder.build()


def change(metric: str, unit: str, normal: float, during: float, share: float = 0.9) -> Change:
    return Change(DATABASE, metric, unit, normal, during, 1.0, share)


def test_the_sentence_says_when_what_was_felt_and_what_it_is_compared_with() -> None:
    window = Window(START + 100 * NS, START + 129 * NS)
    normal = (Window(START, START + 100 * NS), Window(START + 129 * NS, START + 229 * NS))
    symptoms = (
        change("db_tps", "per_s", 42.0, 0.0),
        change("db_tps", "per_s", 41.0, 0.0, 0.8),
        change("db_latency_ms", "ms", 1600.0, 14_000.0, 0.7),
    )
    assert incident_sentence(Incident(window, normal, Basis.FELT, symptoms)) == (
        "22:15:00 to 22:15:29 UTC (29 s); transactions per second 42/s to 0/s, mean latency 1.6 s to 14 s; "
        "compared with 3 min 20 s before and after"
    )


@pytest.mark.parametrize(
    ("normal", "words"),
    [
        (((-60, 0),), "; compared with 1 min before"),
        (((9000, 9030),), "; compared with 30 s after"),
        ((), "no change of what users feel was recorded"),
    ],
)
def test_the_sentence_of_a_given_time(normal: tuple[tuple[int, int], ...], words: str) -> None:
    windows = tuple(Window(START + first * NS, START + end * NS) for first, end in normal)
    sentence = incident_sentence(Incident(Window(START, START + 9000 * NS), windows, Basis.TOLD))
    assert sentence.startswith("2023-11-14 22:13:20 to 2023-11-15 00:43:20 UTC (2 h 30 min); no change")
    assert sentence.endswith(words)


def test_the_terminal_tells_it_right_after_the_headline() -> None:
    capture = stalled()
    stream = io.StringIO()
    show_diagnosis(Console(file=stream, width=80), diagnose(capture), capture)
    lines = stream.getvalue().splitlines()
    when = "  When      2023-11-14 22:15:00 to 22:15:50 UTC (50 s of"
    at = next(place for place, line in enumerate(lines) if line.startswith(when))
    assert at <= 6
    assert lines[at + 1].startswith("  Users     ")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_the_document_has_the_incident() -> None:
    capture = stalled()
    (incident,) = diagnosis_document(diagnose(capture), Imported(capture))["incidents"]
    assert (incident["start"], incident["duration_s"], incident["basis"]) == ("2023-11-14T22:15:00Z", 50.0, "felt")
    assert {symptom["metric"] for symptom in incident["symptoms"]} == {"db_tps", "db_latency_ms"}


def test_the_page_tells_and_shades_it() -> None:
    capture = stalled()
    diagnosis = diagnose(capture)
    html = page(diagnosis, Imported(capture))
    assert "<dt>When</dt><dd>2023-11-14 22:15:00 to 22:15:50 UTC (50 s of" in html
    shaded = re.findall(r'<rect class="incident" x="([\d.]+)%" y="-2" width="([\d.]+)%"', html)
    assert shaded
    assert float(shaded[0][0]) == pytest.approx(100 * 99 / 239, abs=0.01)
    assert float(shaded[0][1]) == pytest.approx(100 * 50 / 239, abs=0.01)
    embedded = re.search(r'id="page-data">(.*?)</script>', html, re.DOTALL)
    assert embedded is not None
    assert json.loads(embedded[1])["incidents"] == [[(START + s * NS) // 1_000_000 for s in (100, 150)]]


def test_a_page_without_an_incident_shades_nothing() -> None:
    capture = Capture([group for group in stalled().groups if not group.metric.startswith("db_")], stalled().sources)
    assert '<rect class="incident"' not in page(diagnose(capture), Imported(capture))


def test_an_anonymous_incident_names_nobody() -> None:
    capture = stalled()
    diagnosis, _, _ = anonymized(diagnose(capture), Imported(capture))
    (incident,) = diagnosis.incidents
    assert "orders" not in str(incident.to_dict())
    assert {symptom.metric for symptom in incident.symptoms} == {"db_tps", "db_latency_ms"}
