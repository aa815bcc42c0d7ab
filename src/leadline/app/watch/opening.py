"""A watch made of its settings: the store is opened, the sources are prepared, nothing is sampled yet."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from leadline.app.watch.recorded import RecordedFiles
from leadline.app.watch.settings import SourceSettings, WatchSettings, has_files
from leadline.app.watch.sources import Sampler, WatchedSource
from leadline.app.watch.telling import Teller
from leadline.app.watch.watching import Say, Watch
from leadline.core.contracts.collector import WatchingCollector
from leadline.core.contracts.discovery import load_unit
from leadline.core.model.profile import Profile
from leadline.core.system.addresses import address_of
from leadline.core.system.leftovers import scratch_folder
from leadline.stores.incidents import IncidentStore
from leadline.stores.notices import NoticeQueue
from leadline.stores.samples import Retention, SampleStore
from leadline.stores.victoriametrics import VictoriaMetricsStore

if TYPE_CHECKING:
    from leadline.app.watch.settings import StoreSettings

IN_MEMORY = Path("/dev/shm")
DAY_S = 86400.0
EVERY_S = {"linux": 1.0, "postgresql": 1.0, "mysql": 1.0, "qemu": 1.0, "vcenter": 20.0}
# What a watch asks of a collector besides its settings.
OPTIONS: dict[str, dict[str, Any]] = {
    "postgresql": {"active_sessions_every_ms": 1000, "whole_rows": True},
    "mysql": {"active_sessions_every_ms": 1000, "whole_rows": True},
}


@contextmanager
def opened(settings: WatchSettings, say: Say, profile: Profile | None = None) -> Iterator[Watch]:
    """A watch that is ready to run.

    Raises:
        UsageError: another watch writes to the store, or a source has options its collector does not know.
        ToolError: the store cannot be written, or VictoriaMetrics does not answer.
    """
    folder = settings.store.path()
    store = opened_store(settings.store)
    try:
        with scratch_folder("watch", IN_MEMORY if IN_MEMORY.is_dir() else None) as scratch:
            files = RecordedFiles(scratch)
            sources = tuple(_source(one, files) for one in settings.sources if one.collector is not None)
            for one in settings.sources:
                if one.follow is not None:
                    files.follow(one.name, one.follow.expanduser())
            yield Watch(
                settings,
                sources,
                files,
                store,
                IncidentStore(folder),
                say,
                _teller(settings, folder),
                profile or Profile(),
            )
    finally:
        store.close()


def opened_store(settings: StoreSettings) -> SampleStore | VictoriaMetricsStore:
    """The store that samples are kept in, open for writing.

    Raises:
        UsageError: another watch writes to it.
        ToolError: it cannot be written, or VictoriaMetrics does not answer.
    """
    if settings.victoriametrics is not None:
        return VictoriaMetricsStore(settings.victoriametrics.server(), settings.path())
    return SampleStore(settings.path(), keep=retention_of(settings))


def retention_of(settings: StoreSettings) -> Retention:
    """How long samples are kept."""
    return Retention(
        raw_s=settings.raw_days * DAY_S,
        minute_s=settings.minute_days * DAY_S,
        ten_minutes_s=settings.ten_minutes_days * DAY_S,
        two_hours_s=settings.two_hours_days * DAY_S,
        bytes_max=round(settings.gib_max * (1 << 30)),
    )


def sampler_of(settings: SourceSettings) -> Sampler:
    """A live source of its own, opened.

    Raises:
        LeadlineError: it cannot be reached, or refuses.
    """
    unit = cast("WatchingCollector", load_unit("collector", cast("str", settings.collector)))
    return unit.watch(settings.address(), **settings.options)  # type: ignore[arg-type]


def sample_interval_s(settings: SourceSettings) -> float:
    """The interval of samples of a source, seconds."""
    return settings.every_s or EVERY_S.get(settings.kind, 5.0)


def _source(settings: SourceSettings, files: RecordedFiles) -> WatchedSource:
    collector = cast("str", settings.collector)
    every_s = sample_interval_s(settings)
    if not has_files(collector):
        return WatchedSource(settings.name, collector, lambda: sampler_of(settings), every_s)
    options = OPTIONS.get(collector, {}) | settings.options

    def open_recorder() -> Sampler:
        return files.recorder(settings.name, collector, settings.address(), options)()

    files.recorder(settings.name, collector, address_of(settings.target), options)  # its secret is read when it opens
    return WatchedSource(settings.name, collector, open_recorder, every_s)


def _teller(settings: WatchSettings, folder: Path) -> Teller | None:
    if not settings.tell:
        return None
    queue = NoticeQueue(folder, {one.name: one.hourly_limit() for one in settings.tell})
    return Teller(queue, [one.receiver() for one in settings.tell], time.time_ns)
