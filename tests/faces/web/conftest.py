"""A watch with an open incident, an estate of hosts and VMs, and its page on a free port."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest

from leadline.app.read.importing import import_paths
from leadline.app.watch.opening import opened
from leadline.app.watch.settings import WatchSettings
from leadline.app.watch.sources import SourceEvent, SourceHealth
from leadline.app.watch.watching import Watch
from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.web.serving import ServedPage, serve
from leadline.faces.words.live import incident_words
from leadline.stores.incidents import Marker, Remark

EXAMPLE = Path("examples/incidents/throttled-wal-disk")
HOSTILE = '<script>alert("1")</script>'
STEP_S = 5
HOST = Entity(EntityKind.HOST, "esx01.example.com")
VMS = (
    *(Entity(EntityKind.VM, f"app{number:02}", HOST) for number in range(1, 6)),
    Entity(EntityKind.VM, HOSTILE, HOST),
)


@dataclass
class FedSource:
    """A source that gives what a test puts into it."""

    name: str = "recorded"
    kind: str = "postgresql"
    waiting: list[Capture] = field(default_factory=list)
    happened: list[SourceEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.health = SourceHealth(self.name, self.kind, 1.0, is_up=True, since_ns=time.time_ns() - 300 * NS_PER_S)
        self.health.sample_count, self.health.duration_s = 300, 0.004

    def take(self) -> list[Capture]:
        given, self.waiting = self.waiting, []
        return given

    def events(self) -> list[SourceEvent]:
        given, self.happened = self.happened, []
        return given

    def start(self) -> None:
        """Nothing samples."""

    def close(self) -> None:
        """Nothing is open."""


def settings_of(folder: Path, **page: Any) -> WatchSettings:
    return WatchSettings.model_validate(
        {
            "sources": [{"name": "x", "follow": str(folder / "x.csv")}],
            "store": {"folder": str(folder / "store")},
            "page": {"listen": "127.0.0.1:0", **page},
            "tell": [{"name": "dba", "notifier": "run-command", "settings": {"command": ["true"]}}],
        }
    )


def estate(end_ns: int) -> Capture:
    """A host, five VMs and one with a name that is a script, with 20 minutes of samples until a time."""
    times = np.arange(end_ns - 1180 * NS_PER_S, end_ns + 1, 20 * NS_PER_S)
    wave = 2 + np.sin(np.arange(len(times)) / 6)
    names = ("cpu_ready_pct", "cpu_used_pct")
    groups = [
        SeriesGroup(name, VMS, times, np.array([scale * wave for scale in range(1, 7)]) / (3 - place), 20.0, 0)
        for place, name in enumerate(names)
    ]
    groups.append(SeriesGroup("host_cpu_util_pct", (HOST,), times, np.array([10 * wave]), 20.0, 0))
    inventory = Inventory()
    for one in (HOST, *VMS):
        inventory.add(one, "vcenter")
    return Capture(groups, [SourceInfo("vc", "vcenter", "vCenter")], inventory)


def play(watch: Watch, source: FedSource) -> None:
    """Play a recorded incident until it has been open for a while; its end is now."""
    capture = import_paths([EXAMPLE]).capture
    span = capture.span_ns()
    assert span is not None
    now_s = 0.0
    watch.clock = lambda: now_s
    shift_s = time.time() - span[0] / 1e9 - 150
    moved = capture.shifted(shift_s)
    span = moved.span_ns()
    assert span is not None
    ends_s = [110, *range(115, 151, STEP_S)]
    for start_s, end_s in zip([-1, *ends_s[:-1]], ends_s, strict=True):
        now_s += end_s - start_s
        source.waiting.append(moved.between(span[0] + start_s * NS_PER_S, span[0] + end_s * NS_PER_S))
        watch.step()
    source.waiting.append(estate(time.time_ns()))
    now_s += STEP_S
    watch.step()


@contextmanager
def watching(folder: Path, **page: Any) -> Iterator[tuple[Watch, FedSource]]:
    """A watch of a source that is fed."""
    source = FedSource()
    with opened(settings_of(folder, **page), incident_words) as watch:
        watch.sources = (source,)  # type: ignore[assignment]
        yield watch, source


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    """A watch with an open incident that somebody took, after a deployment."""
    with watching(tmp_path_factory.mktemp("watch")) as (watch, source):
        play(watch, source)
        (incident,) = watch.book.open_ones()
        now_ns = time.time_ns()
        watch.incidents.mark(
            Marker(incident.opened_ns - 90 * NS_PER_S, "deployment", "database:db01", "orders 4.2 & more")
        )
        watch.incidents.remark(incident.id, Remark(now_ns, "ann", "<b>I look at it</b>", takes=True))
        watch._write_captures()
        yield watch


@pytest.fixture(scope="module")
def page(watch: Watch) -> Iterator[ServedPage]:
    served = serve(watch)
    yield served
    served.close()


def get(address: str, **headers: str) -> str:
    """The text behind an address."""
    request = Request(address, headers={name.replace("_", "-"): value for name, value in headers.items()})
    with urlopen(request, timeout=20) as answer:
        return str(answer.read().decode())
