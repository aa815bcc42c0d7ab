"""What the live page shows of a watch, without a server: head, estate, ladder, top talkers, an incident's story."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from leadline.app.watch import views
from leadline.app.watch.sources import SourceHealth
from leadline.app.watch.views import (
    EstateRow,
    LiveLine,
    WatchHead,
    estate_of,
    head_of,
    ladder_of,
    metrics_of,
    story_of,
    top_of,
)
from leadline.app.watch.watching import Watch
from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.vocabulary import EntityKind, Severity
from leadline.faces.web.answers import answer_rows
from leadline.faces.web.estate_rows import above, below, counts_of, estate_row, with_ancestors
from leadline.faces.web.pages import LivePages
from leadline.faces.web.sparks import Spark, spark_of
from leadline.faces.web.wording import diagnose_command, head_notes, head_state, headline, source_state
from leadline.stores.incidents import LiveIncident, Marker
from tests.faces.web.conftest import HOST, VMS, watching

GUEST = Entity(EntityKind.GUEST, "db01")
BASE = Entity(EntityKind.DATABASE, "postgresql", GUEST)
NOW_NS = 1_800_000_000 * NS_PER_S


def incident(name: str = "20270115-080000-1", **fields: object) -> LiveIncident:
    known: dict[str, object] = {
        "id": name,
        "opened_ns": NOW_NS - 60 * NS_PER_S,
        "seen_ns": NOW_NS,
        "closed_ns": None,
        "severity": Severity.HIGH,
        "cause": "disk-latency-high",
        "entity": f"{HOST}/device:naa.1",
        "title": "The disk is slow.",
        "text": "The disk is slow.",
    }
    return LiveIncident(**{**known, **fields})  # type: ignore[arg-type]


def line(values: list[float], step_s: int = 1) -> LiveLine:
    times = NOW_NS + np.arange(len(values)) * step_s * NS_PER_S
    return LiveLine("db_tps", BASE, "per_s", times, np.array(values))


# --- is all well ---


def test_a_watch_that_has_not_judged_does_not_say_that_all_is_well(tmp_path: Path) -> None:
    with watching(tmp_path) as (watch, _):
        head = head_of(watch)
        assert head.judged_ns == 0
        assert headline(head) == "The watch has just started. It needs a few seconds of samples."
        assert head_state(head) == "unexamined"
        late = head_of(watch, time.time_ns() + 600 * NS_PER_S)
        assert late.is_stale
        assert head_notes(late) == ["No samples have come yet. See what the sources say below."]


def test_the_head_names_the_worst_first_and_who_is_down(watch: Watch) -> None:
    head = head_of(watch)
    assert [one.severity for one in head.incidents] == [Severity.HIGH]
    assert headline(head) == "1 incident is open."
    assert head_state(head) == "high"
    down = SourceHealth("vc", "vcenter", 20.0, is_up=False, since_ns=NOW_NS, error="no route to host")
    quiet = WatchHead((), (down,), NOW_NS, is_stale=False, lost_count=2)
    assert headline(quiet) == "No incident is open, but 1 source is down."
    assert head_state(quiet) == "suspected"
    assert head_notes(quiet) == [
        "Source vc has been down since 08:00:00 UTC and is not judged meanwhile: no route to host",
        "2 readings could not be stored and are lost. Free some space on the disk of the store.",
    ]
    stale = WatchHead((), (), NOW_NS, is_stale=True, lost_count=0)
    assert headline(stale) == "No incident is open, but the watch is behind."
    assert headline(WatchHead((), (), NOW_NS, is_stale=False, lost_count=0)) == "No incident is open."


def test_how_a_source_fares_is_said() -> None:
    health = SourceHealth("vc", "vcenter", 20.0)
    assert source_state(health, NOW_NS) == ("unexamined", "not tried yet")
    health.is_up, health.since_ns = True, NOW_NS - 600 * NS_PER_S
    assert source_state(health, NOW_NS) == ("cleared", "up for 10 min")
    health.late_s = 12.0
    assert source_state(health, NOW_NS) == ("suspected", "up for 10 min, 12.0 s late")
    health.is_up, health.error = False, "refused"
    assert source_state(health, NOW_NS) == ("convicted", "down for 10 min: refused")


# --- the estate ---


def test_the_estate_is_a_tree_with_what_is_in_trouble_first(watch: Watch) -> None:
    rows = estate_of(watch)
    kinds = [(one.entity.kind, one.depth) for one in rows]
    assert kinds[0] == (EntityKind.GUEST, 0)
    assert kinds[1] == (EntityKind.DATABASE, 1)
    states = {one.entity: one for one in rows}
    assert states[GUEST].severity is Severity.HIGH
    assert states[GUEST].incident == watch.incidents.open_ones()[0].id
    assert states[BASE].severity is Severity.HIGH
    assert states[HOST] == EstateRow(HOST, 0, None)
    assert {one.entity for one in rows if one.depth == 1} >= set(VMS)
    assert counts_of(rows) == "1 host, 6 VMs, 1 guest, 2 databases"


def test_an_incident_of_a_device_colours_its_host_and_not_each_vm(tmp_path: Path) -> None:
    vm = VMS[0]
    places = (f"storage: {HOST}", f"storage: {HOST}/device:naa.1")
    inventory = Inventory()
    for one in (HOST, vm, GUEST):
        inventory.add(one, "x")
    inventory.links[GUEST] = vm
    with watching(tmp_path) as (watch, source):
        source.waiting.append(Capture([], [], inventory))
        watch.step()
        watch.incidents.save(incident(places=places))
        rows = estate_of(watch)
    assert not any(row.is_measured for row in rows), "only the inventory knows them"
    assert {estate_row(row)["state_text"] for row in rows if row.severity is None} == {"not measured"}
    assert [(one.entity, one.depth, one.severity) for one in rows] == [
        (HOST, 0, Severity.HIGH),
        (vm, 1, None),
        (GUEST, 2, None),
    ]


def test_what_is_in_trouble_is_shown_with_what_it_is_part_of() -> None:
    calm = [EstateRow(Entity(EntityKind.VM, f"vm{k}", HOST), 1, None) for k in range(50)]
    bad = EstateRow(Entity(EntityKind.VM, "bad", HOST), 1, Severity.LOW)
    rows = (EstateRow(HOST, 0, None), *calm, bad)
    shown = with_ancestors(rows, 5)
    assert len(shown) == 5
    assert shown[0].entity == HOST
    assert shown[-1] is bad
    assert above(rows, 51) == [HOST]
    assert len(below(rows, 0)) == 51


# --- ladder and top talkers ---


def test_the_ladder_has_the_layers_of_an_entity_and_of_no_other(watch: Watch) -> None:
    layers = {one.name: one.lines for one in ladder_of(watch, BASE)}
    assert list(layers) == ["Database", "Guest", "VM", "Hypervisor", "Storage"]
    assert {one.metric for one in layers["Database"]} >= {"db_tps", "db_latency_ms"}
    assert {one.entity.name for one in layers["Guest"] if one.metric == "guest_disk_await_ms_write"} >= {"loop1"}
    assert layers["Storage"] == layers["Hypervisor"] == layers["VM"] == ()
    pairs = [(one.metric, one.entity) for some in layers.values() for one in some]
    assert len(pairs) == len(set(pairs))
    of_vm = {one.name: one.lines for one in ladder_of(watch, VMS[2])}
    assert {one.entity for one in of_vm["VM"]} == {VMS[2]}
    assert {one.entity for one in of_vm["Hypervisor"]} == {HOST}
    of_host = {one.name: one.lines for one in ladder_of(watch, HOST)}
    assert [one.entity for one in of_host["VM"] if one.metric == "cpu_ready_pct"] == [VMS[5], VMS[4], VMS[3]]


def test_a_line_is_a_copy_and_leaves_out_what_was_not_measured(watch: Watch) -> None:
    (database,) = [one for one in ladder_of(watch, BASE)[0].lines if one.metric == "db_tps"]
    group = next(one for one in watch.window.capture.of("db_tps") if BASE in one.entities)
    assert not np.shares_memory(database.values, group.values)
    nan = float("nan")
    gappy = line([1.0, nan, 3.0, nan])
    assert (gappy.now, gappy.median, gappy.highest) == (3.0, 2.0, 3.0)
    assert np.isnan(line([nan]).now)


@pytest.mark.parametrize("statistic", ["max", "p95", "mean", "min"])
def test_the_window_and_the_store_name_the_same_talkers(watch: Watch, statistic: str) -> None:
    live = top_of(watch, "cpu_ready_pct", 20.0, statistic)
    stored = top_of(watch, "cpu_ready_pct", 60.0, statistic)
    assert [entity for entity, _ in live] == list(reversed(VMS))
    assert [entity for entity, _ in stored] == [entity for entity, _ in live]
    assert [value for _, value in live] == pytest.approx([value for _, value in stored], rel=0.03)


def test_a_store_in_victoriametrics_is_asked_and_named(tmp_path: Path) -> None:
    class _Elsewhere:
        server = SimpleNamespace(address="http://vm.example.com:8428")

        def __init__(self, folder: Path) -> None:
            self.folder = folder

        def top(self, name: str, start_ns: int, end_ns: int, **asked: object) -> list[tuple[Entity, float]]:
            assert (name, end_ns - start_ns) == ("cpu_ready_pct", 3600 * NS_PER_S)
            assert asked == {"statistic": "max", "count": 20}
            return [(VMS[0], 7.0), (VMS[1], float("nan"))]

    with watching(tmp_path) as (watch, _):
        embedded, watch.store = watch.store, _Elsewhere(watch.store.folder)  # type: ignore[assignment]
        assert top_of(watch, "cpu_ready_pct", 60.0, "max") == [(VMS[0], 7.0)]
        assert "http://vm.example.com:8428" in LivePages(watch).sources(is_part=True)
        watch.store = embedded


def test_what_cannot_be_ranked_is_refused(watch: Watch) -> None:
    with pytest.raises(UsageError):
        top_of(watch, "no_such_metric", 5.0, "max")
    with pytest.raises(UsageError):
        top_of(watch, "cpu_ready_pct", 5.0, "p12x")
    assert top_of(watch, "memory_balloon_mib", 5.0, "max") == []
    assert top_of(watch, "memory_balloon_mib", 600.0, "max") == []
    assert "cpu_ready_pct" in metrics_of(watch)


def test_views_do_not_wait_for_ever(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "LOCK_WAIT_S", 0.05)
    with watch.lock, pytest.raises(ToolError, match="judging"):
        estate_of(watch)


def test_the_lock_is_taken_for_copies_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 VMs with 40 metrics: a ladder and a ranking keep the watch for milliseconds, whatever they cost."""
    vms = tuple(Entity(EntityKind.VM, f"vm{k:04}", HOST) for k in range(1000))
    times = NOW_NS + np.arange(60) * 20 * NS_PER_S
    values = np.ones((1000, 60), dtype=np.float32)
    names = ["cpu_ready_pct", "cpu_used_pct", "cpu_costop_pct", "memory_balloon_mib", "memory_swapped_mib"]
    groups = [SeriesGroup(name, vms, times, values, 20.0, 0) for name in names]
    taken: list[float] = []
    whole = views.locked

    class _Timed:
        def __init__(self, watch: Watch) -> None:
            self._inner = whole(watch)

        def __enter__(self) -> None:
            self._inner.__enter__()
            self._began = time.perf_counter()

        def __exit__(self, *error: object) -> None:
            taken.append(time.perf_counter() - self._began)
            self._inner.__exit__(None, None, None)

    with watching(tmp_path) as (watch, _):
        watch.window.take(Capture(groups, [SourceInfo("vc", "vcenter", "vCenter")]))
        monkeypatch.setattr(views, "locked", _Timed)
        ladder_of(watch, vms[500])
        top_of(watch, "cpu_ready_pct", 20.0, "p95")
        estate_of(watch)
    assert max(taken) < 0.25


# --- an incident ---


def test_a_story_has_what_happened_around_it(tmp_path: Path) -> None:
    with watching(tmp_path) as (watch, _):
        one = incident(closed_ns=NOW_NS)
        watch.incidents.save(one)
        watch.incidents.save(incident("20270115-075900-2", closed_ns=NOW_NS, title="Another one."))
        watch.incidents.save(incident("20270101-000000-1", opened_ns=1, seen_ns=2, closed_ns=2))
        near, far = one.opened_ns - 600 * NS_PER_S, one.opened_ns - 7200 * NS_PER_S
        watch.incidents.mark(Marker(near, "vMotion", str(VMS[0]), "esx01 -> esx02"))
        watch.incidents.mark(Marker(far, "setting", str(VMS[0]), "limit: 0 -> 100"))
        story = story_of(watch, one.id)
        assert [marker.kind for marker in story.markers] == ["vMotion"]
        assert [other.title for other in story.others] == ["Another one."]
        assert story.capture is None
        command = diagnose_command(story, str(watch.store.folder))
        assert command.startswith(f"leadline diagnose store:{watch.store.folder} --from 2027-01-15T07:44:00 --to ")
        for number in ("last", one.id[:12], "no"):
            with pytest.raises(UsageError):
                story_of(watch, number)


def test_a_recording_elsewhere_than_in_the_store_is_not_given(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x", encoding="utf-8")
    with watching(tmp_path) as (watch, _):
        watch.incidents.save(incident(capture=str(secret)))
        assert story_of(watch, incident().id).capture is None


def test_an_answer_is_taken_apart_as_it_was_laid_out(watch: Watch) -> None:
    (one,) = watch.incidents.open_ones()
    lead, rows = answer_rows(one.text)
    assert lead.startswith("Yes, it is the disk")
    labels = [row.label for row in rows if row.label]
    assert labels[:2] == ["When", "Users"]
    assert labels[-2:] == ["Do", "Sure?"]
    assert [row.text for row in rows if row.is_command] == ["esxtop -b -a -d 5 -n 120 > esxtop.csv"]
    words = " ".join([lead, *(f"{row.label} {row.text}" for row in rows)]).split()
    assert words == one.text.split()


# --- small figures ---


def test_a_spark_is_in_its_picture_and_broken_by_gaps() -> None:
    nan = float("nan")
    path = spark_of(line([0.0, 5.0, nan, nan, 10.0, 10.0])).path
    assert path.count("M") == 2
    numbers = [pair.split(",") for pair in path.replace("M", " ").replace("L", " ").split()]
    assert all(0 <= float(x) <= Spark.width and 0 <= float(y) <= Spark.height for x, y in numbers)
    assert float(numbers[0][1]) == Spark.height - 2
    assert float(numbers[-1][1]) == 2
    assert spark_of(line([nan, 1.0])).path == ""
    assert spark_of(line([3.0] * 5)).path.count("L") == 4
    many = spark_of(line(list(np.random.default_rng(1).random(5000)))).path
    assert many.count("L") < 300
