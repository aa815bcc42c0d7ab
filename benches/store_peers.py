"""VictoriaMetrics and Prometheus beside the embedded store: the same samples, the same questions, in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import numpy as np

from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo
from leadline.stores.victoriametrics import MetricsServer, VictoriaMetricsStore
from tests.victoriametrics import PROMETHEUS, VICTORIA_METRICS, flush, free_port, running, victoria_metrics

if TYPE_CHECKING:
    import subprocess

    from benches.bench_store import Counters
    from leadline.core.model.entities import Entity

NS_PER_S = 10**9
QUIET_S, SETTLE_S_MAX = 6.0, 240.0
QUERY_SAMPLES_MAX = 500_000_000


Timed = tuple[float, float, float]
Timer = Callable[[Callable[[], object]], Timed]


@dataclass(frozen=True, slots=True)
class PeerLoad:
    """What a store is given.

    Attributes:
        counters: that make the samples.
        start_ns: of the first one.
        samples: of each series.
        batch: of each series in one append.
    """

    counters: Counters
    start_ns: int
    samples: int
    batch: int


@dataclass(slots=True)
class PeerCost:
    """What a store beside ours took.

    Attributes:
        ingest_s: until it had taken everything, without making the samples.
        settle_s: until its files changed no more.
        cpu_s: of its process, for both.
        size_bytes: of its files then.
        answers: milliseconds of questions, as of `timed_ms`.
    """

    name: str
    ingest_s: float = 0.0
    settle_s: float = 0.0
    cpu_s: float = 0.0
    size_bytes: int = 0
    answers: dict[str, Timed] = field(default_factory=dict)


def peers() -> list[str]:
    """The stores that are built here."""
    names = {"VictoriaMetrics": VICTORIA_METRICS, "Prometheus": PROMETHEUS}
    return [name for name, program in names.items() if program is not None]


def measured(name: str, folder: Path, load: PeerLoad, timed_ms: Timer) -> PeerCost:
    """Fill a store, let it settle, ask it."""
    cost = PeerCost(name)
    start = _victoria_metrics if name == "VictoriaMetrics" else _prometheus
    with start(folder) as (address, server), VictoriaMetricsStore(MetricsServer(address), folder / "facts") as store:
        cost.ingest_s = _fill(store, load)
        began = time.perf_counter()
        cost.size_bytes = _settled_bytes(name, address, folder / "data")
        cost.settle_s = time.perf_counter() - began
        cost.cpu_s = _cpu_s(server)
        end_ns = load.start_ns + load.samples * load.counters.every_s * NS_PER_S
        cost.answers = _answers(name, store, load.counters, (load.start_ns, end_ns), timed_ms)
    return cost


def _fill(store: VictoriaMetricsStore, load: PeerLoad) -> float:
    """Append the samples: seconds, without making them."""
    source = SourceInfo("vc", "vcenter", "vCenter real-time counters")
    ingest_s = 0.0
    for chunk in range(0, load.samples, 180):
        size = min(180, load.samples - chunk)
        groups = load.counters.span(load.start_ns + chunk * load.counters.every_s * NS_PER_S, size)
        began = time.perf_counter()
        for first in range(0, size, load.batch):
            part = slice(first, first + load.batch)
            cut = [SeriesGroup(g.metric, g.entities, g.times_ns[part], g.values[:, part], g.interval_s) for g in groups]
            store.append(Capture(cut, [source]))
        ingest_s += time.perf_counter() - began
    return ingest_s


def lines(cost: PeerCost, count: int, ours_bytes: float) -> list[str]:
    """What is printed of a store beside ours."""
    each = cost.size_bytes / count
    ingest = f"{count / cost.ingest_s / 1e6:8.2f} million samples/s, {cost.ingest_s:.1f} s"
    times = f"ours with roll-ups {ours_bytes / each:.2f} times as many"
    return [
        f"{cost.name}",
        f"ingest   {ingest} and {cost.settle_s:.1f} s to settle, {cost.cpu_s:.1f} s CPU of the server",
        f"size     {cost.size_bytes / 1e6:8.1f} MB, {each:.3f} bytes a sample; {times}",
        *(
            f"{best:8.1f} ms best {median:8.1f} ms median {cpu:8.1f} ms CPU  {question}"
            for question, (best, median, cpu) in cost.answers.items()
        ),
    ]


@contextmanager
def _victoria_metrics(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with victoria_metrics(folder, "-search.maxQueueDuration=60s") as pair:
        yield pair


@contextmanager
def _prometheus(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    assert PROMETHEUS is not None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prometheus.yml").write_text("global: {}\n")
    port = free_port()
    words = [PROMETHEUS, "--config.file=prometheus.yml", f"--storage.tsdb.path={folder / 'data'}"]
    words += [f"--web.listen-address=127.0.0.1:{port}", "--web.enable-remote-write-receiver", "--log.level=error"]
    words += ["--web.enable-admin-api", "--storage.tsdb.retention.time=100y", "--enable-feature=utf8-names"]
    words += [f"--query.max-samples={QUERY_SAMPLES_MAX}"]
    with running(words, port, folder, "/-/ready") as server:
        yield f"http://127.0.0.1:{port}", server


def _settled_bytes(name: str, address: str, data: Path) -> int:
    """The size of the files once they change no more; of Prometheus that of a snapshot, without the log."""
    if name == "Prometheus":
        with urlopen(Request(f"{address}/api/v1/admin/tsdb/snapshot", method="POST"), timeout=600):
            return _size(data / "snapshots")
    flush(address, merge=True)
    end = time.monotonic() + SETTLE_S_MAX
    before, since = -1, time.monotonic()
    while time.monotonic() < end:
        now = _size(data)
        if now != before:
            before, since = now, time.monotonic()
        elif time.monotonic() - since > QUIET_S:
            break
        time.sleep(1.0)
    return before


def _size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() and "/cache/" not in str(path) else 0
        except FileNotFoundError:  # merged meanwhile
            continue
    return size


def _cpu_s(server: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _answers(
    name: str,
    store: VictoriaMetricsStore,
    counters: Counters,
    span_ns: tuple[int, int],
    timed_ms: Timer,
) -> dict[str, Timed]:
    vms = [counters.entities[i % len(counters.entities)] for i in (7, 77, 177, 377, 577, 777, 977, 17)]
    turn = iter(range(10**9))
    busy = [metric for metric, kind in counters.metrics if kind == "rate"]
    day = (max(span_ns[1] - 86_400 * NS_PER_S, span_ns[0]), span_ns[1])
    length_ms, end_ms = (day[1] - day[0]) // 10**6, day[1] // 10**6

    def by_export(entity: Entity) -> object:
        return store.read(*day, entities=[entity])

    def by_query(entity: Entity) -> object:
        rows = store.server.query(f'{{entity="{entity}"}}[{length_ms}ms]', end_ms - 1)
        return [np.array(row["values"], dtype=np.float64) for row in rows]

    read = by_query if name == "Prometheus" else by_export
    return {
        "one VM's day raw, all metrics": timed_ms(lambda: read(vms[next(turn) % len(vms)])),
        "top 20 by p95, one day": timed_ms(lambda: store.top(busy[next(turn) % len(busy)], *day)),
    }
