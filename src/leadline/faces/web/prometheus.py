"""The watch's own figures in the text format of Prometheus.

Source: Prometheus documentation, "Exposition formats", text-based format 0.0.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from leadline.core.model.vocabulary import Severity

if TYPE_CHECKING:
    from leadline.app.watch.watching import Watch

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_Sample = tuple[Mapping[str, str], float]
_Family = tuple[str, str, str, Iterable[_Sample]]  # name, type, help, samples


def exposition(watch: Watch) -> str:
    """All figures as text."""
    lines: list[str] = []
    for name, kind, about, samples in (*_sources(watch), *_judging(watch), *_store(watch), *_notices(watch)):
        lines += [f"# HELP leadline_watch_{name} {about}", f"# TYPE leadline_watch_{name} {kind}"]
        lines += [f"leadline_watch_{name}{_labels(labels)} {value:.15g}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _sources(watch: Watch) -> Iterator[_Family]:
    fares = [({"source": one.name, "kind": one.kind}, one.health) for one in watch.sources]
    up = [(labels, float(health.is_up is True)) for labels, health in fares]
    yield "source_up", "gauge", "Whether the last sample of the source succeeded.", up
    samples = [(labels, float(health.sample_count)) for labels, health in fares]
    yield "source_samples_total", "counter", "Samples taken, each of many series.", samples
    failures = [(labels, float(health.failure_count)) for labels, health in fares]
    yield "source_failures_total", "counter", "Samples that failed.", failures
    gaps = [(labels, float(health.gap_count)) for labels, health in fares]
    yield "source_gaps_total", "counter", "Pauses of several intervals.", gaps
    lengths = [(labels, health.gap_s) for labels, health in fares]
    yield "source_gap_seconds_total", "counter", "How long all pauses were together.", lengths
    durations = [(labels, health.duration_s) for labels, health in fares]
    yield "source_sample_duration_seconds", "gauge", "Duration of the last sample.", durations
    lateness = [(labels, health.late_s) for labels, health in fares]
    yield "source_late_seconds", "gauge", "By how much the last sample began after its time.", lateness


def _judging(watch: Watch) -> Iterator[_Family]:
    opened = watch.incidents.open_ones()
    counts = [
        ({"severity": severity.label}, float(sum(one.severity is severity for one in opened))) for severity in Severity
    ]
    yield "incidents_open", "gauge", "Open incidents.", counts
    judged = watch.judged
    yield "judging_seconds", "gauge", "Duration of the last judgement.", [({}, judged.duration_s)]
    yield "judged_timestamp_seconds", "gauge", "Time of the newest judged samples.", [({}, judged.time_ns / 1e9)]


def _store(watch: Watch) -> Iterator[_Family]:
    yield "samples_total", "counter", "Values taken in.", [({}, float(watch.sample_count))]
    yield "lost_readings_total", "counter", "Readings that a full disk did not take.", [({}, float(watch.lost_count))]
    yield "series", "gauge", "Series in the live window.", [({}, float(watch.window.capture.series_count))]
    status = watch.stored
    if status is not None:
        yield "store_bytes", "gauge", "Size of the store.", [({}, float(status.size_bytes))]
        yield "store_samples", "gauge", "Raw samples in the store.", [({}, float(status.sample_count))]
        yield (
            "store_refusals_total",
            "counter",
            "Samples and appends that the store refused.",
            [({}, float(status.refusals))],
        )


def _notices(watch: Watch) -> Iterator[_Family]:
    states = {} if watch.teller is None else watch.teller.states()
    for key, kind, about in (
        ("waiting_count", "gauge", "Notices that are still to be sent."),
        ("sent_count", "counter", "Notices that the receiver took."),
        ("given_up_count", "counter", "Notices that the receiver did not take within a day."),
    ):
        name = f"notices_{key.removesuffix('_count')}{'_total' if kind == 'counter' else ''}"
        yield name, kind, about, [({"receiver": one}, float(state[key])) for one, state in states.items()]


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _escaped(text: str) -> str:
    r"""A label's value.

    >>> _escaped('a"b')
    'a\\"b'
    """
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
