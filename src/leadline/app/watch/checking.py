"""What a watch would collect: each source is opened and sampled a few times, nothing is kept."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from leadline.app.read.importing import importers_for, recognise
from leadline.app.watch.opening import OPTIONS, sample_interval_s, sampler_of
from leadline.app.watch.recorded import RecordedFiles
from leadline.app.watch.settings import SourceSettings, WatchSettings, has_files
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import LeadlineError
from leadline.core.system.leftovers import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BYTES_PER_SAMPLE = 1.5  # what the store takes for a sample of real counters; benches/bench_store.py
MONTH_S = 30 * 86_400.0
SAMPLES = 3


@dataclass(frozen=True, slots=True)
class CheckedSource:
    """A source that was tried.

    Attributes:
        error: why it does not work; empty when it does.
        series_count: how many series it gives.
        every_s: the interval of its samples.
        notes: what it leaves out.
    """

    name: str
    kind: str
    every_s: float
    series_count: int = 0
    error: str = ""
    notes: tuple[str, ...] = ()

    @property
    def samples_per_s(self) -> float:
        """Samples a second of all its series."""
        return self.series_count / self.every_s

    @property
    def gb_a_month(self) -> float:
        """What its samples take in the store in thirty days, GB."""
        return self.samples_per_s * MONTH_S * BYTES_PER_SAMPLE / 1e9


def checked(settings: WatchSettings) -> Iterator[CheckedSource]:
    """Try each source, one after the other; one that does not work says why."""
    for source in settings.sources:
        try:
            yield _checked(source)
        except (LeadlineError, OSError) as error:
            yield CheckedSource(source.name, source.kind, sample_interval_s(source), error=str(error))


def _checked(source: SourceSettings) -> CheckedSource:
    every_s = sample_interval_s(source)
    if source.follow is not None:
        return _checked_file(source, source.follow.expanduser())
    collector = cast("str", source.collector)
    if has_files(collector):
        return _checked_recorder(source, collector, every_s)
    sampler = sampler_of(source)
    try:
        capture = sampler.sample()
        count = 0 if capture is None else capture.series_count
        return CheckedSource(source.name, collector, every_s, count, notes=tuple(sampler.notes))
    finally:
        sampler.close()


def _checked_recorder(source: SourceSettings, collector: str, every_s: float) -> CheckedSource:
    with scratch_folder("watch-check") as folder:
        files = RecordedFiles(folder)
        options = OPTIONS.get(collector, {}) | source.options
        sampler = files.recorder(source.name, collector, source.address(), options)()
        try:
            for _ in range(SAMPLES):
                sampler.sample()
                time.sleep(min(every_s, 1.0))
            capture = files.read()
            count = 0 if capture is None else capture.series_count
            return CheckedSource(source.name, collector, every_s, count, notes=tuple(sampler.notes))
        finally:
            sampler.close()


def _checked_file(source: SourceSettings, path: Path) -> CheckedSource:
    every_s = sample_interval_s(source)
    if not path.exists():
        return CheckedSource(source.name, "file", every_s, notes=("it is not there yet; it is read when it comes",))
    opened = Source(str(path), path)
    known = recognise(opened, importers_for(opened))
    if known is None:
        error = f"{path}: {opened.beginning()}; it is no recording that Leadline reads"
        return CheckedSource(source.name, "file", every_s, error=error)
    with scratch_folder("watch-check") as folder:
        files = RecordedFiles(folder)
        files.follow(source.name, path)
        capture = files.read() or Capture()
        every_s = min((group.interval_s for group in capture.groups if group.interval_s > 0), default=every_s)
        infos = capture.sources
        notes = [warning.message for info in infos for warning in info.warnings]
        if any(not info.clock_known for info in infos):
            notes.append("its times are not certain; record with dates and a zone to follow it")
        return CheckedSource(source.name, known[0], every_s, capture.series_count, notes=tuple(notes))
