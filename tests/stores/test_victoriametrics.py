"""VictoriaMetrics as a store, against a real server: what is given comes back, as of the embedded store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from leadline.app.read import stored
from leadline.app.read.stored import StoredPart, stored_capture
from leadline.app.watch.opening import opened_store
from leadline.app.watch.settings import read_settings
from leadline.core.io.parquet import save
from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, EntityColumn, Inventory
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.secret import Secret
from leadline.stores._victoriametrics.writing import label_bytes, shortest
from leadline.stores.samples import Retention, SampleStore
from leadline.stores.victoriametrics import MetricsServer, VictoriaMetricsStore
from tests.stores.test_samples import AWKWARD, EVER, START_NS, VMS, S, capture_of
from tests.victoriametrics import VICTORIA_METRICS, flush, victoria_metrics

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        VICTORIA_METRICS is None, reason="victoria-metrics is not built (scripts/setup.sh does, where Go is)"
    ),
]
Store = SampleStore | VictoriaMetricsStore
Samples = dict[tuple[str, str, int], float]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with victoria_metrics(tmp_path_factory.mktemp("vm")) as (url, _):
        yield url


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[str]:
    with victoria_metrics(tmp_path / "vm", "-dedup.minScrapeInterval=1ms") as (url, _):
        yield url


def opened(address: str, folder: Path, *, read_only: bool = False) -> VictoriaMetricsStore:
    return VictoriaMetricsStore(MetricsServer(address), folder / "facts", read_only=read_only)


def samples_of(capture: Capture) -> Samples:
    """Every measured sample: (metric, entity, time) -> value; fails on one that is there twice."""
    samples: Samples = {}
    for group in capture.groups:
        for row, entity in enumerate(group.entities):
            for time_ns, value in zip(group.times_ns.tolist(), group.values[row].tolist(), strict=True):
                if not math.isnan(value):
                    key = (group.metric, str(entity), time_ns)
                    assert key not in samples
                    samples[key] = value
    return samples


def busy(seed: int, samples: int = 90) -> Capture:
    """Two sources, several metrics, holes, awkward names."""
    rng = np.random.default_rng(seed)
    times_ns = START_NS + np.arange(samples) * 20 * S + 123_000_000
    odd = EntityColumn([Entity(EntityKind.GUEST, 'db "1" .* | ü'), Entity(EntityKind.DATABASE, "shop/x y")])
    groups = [
        SeriesGroup("cpu_ready_pct", VMS, times_ns, np.round(rng.random((5, samples)) * 100, 2), 20.0, 0),
        SeriesGroup("raw.rd: bytes/s %", VMS, times_ns, rng.normal(size=(5, samples)), 20.0, 0),
        SeriesGroup("cpu_used_pct", odd, times_ns[::3], rng.integers(0, 99, (2, samples // 3)) * 1.0, 60.0, 1),
    ]
    groups[0].values[rng.random((5, samples)) < 0.1] = np.nan
    inventory = Inventory()
    inventory.add(VMS[0], "vc", vcpu_count=4, note='a "b"')
    inventory.links[odd[0]] = VMS[0]
    return Capture(
        groups,
        [
            SourceInfo("vc", "vcenter", "vCenter", host="vc1", tool_version="8.0"),
            SourceInfo("pg", "postgresql", "PostgreSQL", clock_known=False),
        ],
        inventory,
    )


def test_the_same_comes_back_as_of_the_embedded_store(empty: str, tmp_path: Path) -> None:
    capture = busy(1)
    end_ns = START_NS + 90 * 20 * S
    with SampleStore(tmp_path / "own") as own, opened(empty, tmp_path) as other:
        for store in (own, other):
            assert store.span_ns() is None
            assert store.metrics() == []
            assert store.read(*EVER).groups == []
            for _ in range(2):  # it may come twice
                store.append(capture)
            if isinstance(store, VictoriaMetricsStore):
                flush(empty)

        def compare(ask: Callable[[Store], Capture]) -> None:
            mine, theirs = ask(own), ask(other)
            assert samples_of(theirs) == samples_of(mine)
            assert {(g.metric, g.interval_s) for g in theirs.groups} == {(g.metric, g.interval_s) for g in mine.groups}
            assert theirs.inventory.facts == mine.inventory.facts
            assert theirs.inventory.links == mine.inventory.links
            assert sorted(map(_plain, theirs.sources[:-1])) == sorted(map(_plain, mine.sources[:-1]))

        middle = (START_NS + 123_000_000 + 20 * S, START_NS + 123_000_000 + 400 * S)
        compare(lambda store: store.read(*EVER))
        compare(lambda store: store.read(*middle))
        compare(lambda store: store.read(*middle, metrics=["cpu_used_pct", "cpu_ready_pct"]))
        compare(lambda store: store.read(*EVER, metrics=["raw.rd: bytes/s %"], entities=[VMS[1], VMS[3]]))
        compare(lambda store: store.read(*EVER, entities=[capture.groups[2].entities[0]]))
        compare(lambda store: store.read(*EVER, entities=[]))
        assert other.span_ns() == own.span_ns()
        assert other.metrics() == own.metrics()
        every = {entity for group in capture.groups for entity in group.entities}
        assert set(other.entities(*middle)) == set(own.entities(*middle)) == every
        day_ns = 86_400 * S
        assert list(other.entities(START_NS - 9 * day_ns, START_NS - 8 * day_ns)) == []
        assert len(other.read(*EVER).groups) > 0
        for statistic in ("min", "max", "mean"):
            ours = own.top("cpu_ready_pct", START_NS, end_ns, statistic=statistic, count=3)
            theirs = other.top("cpu_ready_pct", START_NS, end_ns, statistic=statistic, count=3)
            assert [entity for entity, _ in theirs] == [entity for entity, _ in ours]
            assert [value for _, value in theirs] == pytest.approx([value for _, value in ours], rel=1e-6)
        exact = np.nanquantile(capture.groups[0].values, 0.95, axis=1)
        top = other.top("cpu_ready_pct", START_NS, end_ns)
        assert [value for _, value in top] == pytest.approx(np.sort(exact)[::-1].tolist(), rel=1e-5)


def _plain(source: SourceInfo) -> tuple[str, ...]:
    fields = (source.name, source.importer, source.tool, source.host, source.tool_version, source.clock_known)
    return tuple(map(str, (*fields, source.start_ns, source.end_ns)))


@pytest.mark.parametrize("step_s", [60, 600])
def test_cells_are_those_of_the_embedded_store(empty: str, tmp_path: Path, step_s: float) -> None:
    span = (START_NS + 100 * S, START_NS + 1700 * S)
    with SampleStore(tmp_path / "own") as own, opened(empty, tmp_path) as other:
        for store in (own, other):
            store.append(busy(2))
        flush(empty)
        for chosen in (None, [VMS[2]]):
            ours, theirs = (store.rolled_up("cpu_ready_pct", *span, step_s, chosen) for store in (own, other))
            assert theirs.times_ns.tolist() == ours.times_ns.tolist()
            rows = [list(ours.entities).index(entity) for entity in theirs.entities]
            assert len(rows) == len(ours.entities)
            for name in ("minimum", "maximum", "mean", "count"):
                np.testing.assert_allclose(getattr(theirs, name), getattr(ours, name)[rows], rtol=1e-6, err_msg=name)
            np.testing.assert_allclose(theirs.quantile(0.0), ours.minimum[rows], rtol=1e-6)
            np.testing.assert_allclose(theirs.quantile(1.0), ours.maximum[rows], rtol=1e-6)


def test_a_status_tells_of_gaps(empty: str, tmp_path: Path) -> None:
    with SampleStore(tmp_path / "own") as own, opened(empty, tmp_path) as other:
        for store in (own, other):
            for first in (0, 3600):
                store.append(capture_of(np.ones((5, 30)), first + 20 * np.arange(30)))
        flush(empty)
        ours, theirs = own.status(), other.status()
        assert theirs.gaps_ns == ours.gaps_ns
        assert (theirs.oldest_ns, theirs.newest_ns, theirs.sample_count) == (
            ours.oldest_ns,
            ours.newest_ns,
            ours.sample_count,
        )
        assert theirs.size_bytes > 0
        warnings = other.read(*EVER).sources[-1].warnings
        assert [warning.code for warning in warnings] == ["gap"]
        other.maintain(whole=True)


def test_awkward_values_come_back(empty: str, tmp_path: Path) -> None:
    """Each in a series of its own: a block of one series has 18 digits from its greatest to its smallest value."""
    vms = EntityColumn([Entity(EntityKind.VM, f"v{i}") for i in range(len(AWKWARD))])
    values = np.array(AWKWARD, dtype=np.float32)[:, None]
    with opened(empty, tmp_path) as store:
        store.append(capture_of(values, [0], vms=vms))
        flush(empty)
        samples = samples_of(store.read(*EVER))
    assert {key[1]: value for key, value in samples.items()} == {
        str(vm): float(value) for vm, value in zip(vms, values[:, 0], strict=True)
    }


def test_few_decimals_are_written() -> None:
    values = np.array([[12.34, 0.1, 1e-5, -3.5, 7.0, np.nan, np.inf, 1 / 3]], dtype=np.float32)
    doubles = shortest(values)
    assert doubles[0, :5].tolist() == [12.34, 0.1, 1e-5, -3.5, 7.0]
    np.testing.assert_array_equal(doubles.astype(np.float32), values)


def test_labels_are_in_order_and_never_empty() -> None:
    assert label_bytes([("b", "2"), ("a", "1"), ("c", "")]) == b"\x0a\x06\x0a\x01a\x12\x011\x0a\x06\x0a\x01b\x12\x012"


def test_a_server_that_is_away_is_told_and_samples_are_given_again(tmp_path: Path) -> None:
    with victoria_metrics(tmp_path / "vm") as (url, server):
        store = opened(url, tmp_path)
        server.terminate()
        server.wait()
        with pytest.raises(ToolError, match="expected VictoriaMetrics that answers"):
            store.append(busy(3))
        store.close()
    with pytest.raises(ToolError, match="refused"):
        opened(url, tmp_path)
    with victoria_metrics(tmp_path / "vm") as (url, _), opened(url, tmp_path) as store:
        store.append(busy(3))
        flush(url)
        assert len(samples_of(store.read(*EVER))) == len(samples_of(busy(3)))


def test_a_password_is_sent_and_never_repeated(tmp_path: Path) -> None:
    options = ("-httpAuth.username=me", "-httpAuth.password=hunter22x")
    with victoria_metrics(tmp_path / "vm", *options) as (url, _):
        for password in ("wrongword", ""):
            with pytest.raises(ToolError, match="status 401") as caught:
                VictoriaMetricsStore(MetricsServer(url, user="me", password=Secret(password)), tmp_path)
            assert "wrongword" not in str(caught.value)
        server = MetricsServer(url, user="me", password=Secret("hunter22x"))
        assert "hunter22x" not in repr(server)
        with VictoriaMetricsStore(server, tmp_path) as store:
            store.append(busy(4))


def test_a_reader_elsewhere_has_no_facts(address: str, tmp_path: Path) -> None:
    with opened(address, tmp_path) as store:
        store.append(busy(5))
        flush(address)
    with opened(address, tmp_path / "elsewhere", read_only=True) as reader:
        assert reader.read(*EVER, metrics=["cpu_ready_pct"]).inventory.facts == {}
        with pytest.raises(UsageError, match="opened for reading"):
            reader.append(busy(5))
    assert not (tmp_path / "elsewhere").exists()
    with opened(address, tmp_path, read_only=True) as reader:
        capture = reader.read(*EVER, metrics=["cpu_ready_pct"])
        assert capture.inventory.get(VMS[0], "vcpu_count") == 4
        save(capture, tmp_path / "capture.parquet")


@pytest.mark.parametrize("address", ["localhost:8428", "ftp://x", "http://me:hunter22x@x", "http://"])
def test_an_address_must_be_one(address: str) -> None:
    with pytest.raises(UsageError, match="address of VictoriaMetrics") as caught:
        MetricsServer(address)
    assert "hunter22x" not in str(caught.value)


def test_months_of_samples_are_kept_by_the_server_as_long_as_it_says(address: str, tmp_path: Path) -> None:
    with SampleStore(tmp_path / "own", keep=Retention(raw_s=1e9)) as own, opened(address, tmp_path) as other:
        times = 86_400 * 40 * np.arange(-3, 1)
        for store in (own, other):
            for _ in range(2):  # a server without -dedup.minScrapeInterval has both
                store.append(capture_of(np.arange(20).reshape(5, 4), times, metric="raw.months"))
        flush(address)
        assert samples_of(other.read(*EVER, metrics=["raw.months"])) == samples_of(
            own.read(*EVER, metrics=["raw.months"])
        )


def test_a_watch_keeps_and_a_verb_reads(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        f"sources: [{{name: a, collector: linux}}]\nstore: {{folder: {tmp_path}/watch, victoriametrics: '{address}'}}"
    )
    (tmp_path / "watch.yaml").write_text(text)
    with opened_store(read_settings(tmp_path / "watch.yaml").store) as store:
        assert isinstance(store, VictoriaMetricsStore)
        store.append(capture_of(np.arange(10).reshape(5, 2), [10**6, 10**6 + 20], metric="raw.verb"))
    flush(address)
    monkeypatch.setattr(stored, "user_folder", lambda: tmp_path)
    capture = stored_capture(Path(f"store:{address}"), StoredPart(since="1h"), ["raw.verb"])
    assert [group.values.tolist() for group in capture.groups] == [np.arange(10.0).reshape(5, 2).tolist()]
    with pytest.raises(UsageError, match="a password in an address"):
        stored_capture(Path("store:http://me:hunter22x@127.0.0.1:1"), StoredPart())
