"""The judge of the diagnosis is judged by hand-made truths and findings, and run on archives of the examples."""

from __future__ import annotations

import json
import re
import tarfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from benches import bench_incidents
from benches.incidents.judging import Judgement, blank, causes_of, disk_of, judged, overlap
from benches.incidents.measuring import measured
from benches.incidents.recordings import ImportedFile, Recording, Truth, ns_of, read_recording
from benches.incidents.table import BY_KIND, TOTALS, WIDTH, tables_by_kind, totals, usual, waiting
from benches.incidents.thresholds import AREAS, judge_areas, threshold_errors
from benches.incidents.views import ALONE, FULL, NO_HEALTHY, SHORT, combined, last_seconds, spans_of, views
from incidents.contract import CAUSES
from leadline.app.diagnose.cause_terms import CAUSE_TERMS
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.answer import Answer, Certainty, Disk, Reason
from leadline.core.model.capture import NS_PER_S, Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.finding import Diagnosis, Finding, LayerBecause, LayerReason, LayerVerdict, Window
from leadline.core.model.metrics import metrics
from leadline.core.model.vocabulary import EntityKind, Layer, LayerState, Severity
from tests.benches.recorded import pack, truth_of
from tests.conftest import ROOT

NO_REASON = LayerReason(LayerBecause.NO_RULE)
GUEST = Entity(EntityKind.GUEST, "db01")
DATA, WAL = (Entity(EntityKind.BLOCK_DEVICE, name, GUEST) for name in ("loop0", "loop1"))
START, END = "2026-11-20T23:49:40Z", "2026-11-20T23:51:10Z"
START_NS = ns_of(datetime(2026, 11, 20, 23, 49, 40, tzinfo=UTC))
FAULT = Window(START_NS, START_NS + 90 * NS_PER_S)


def truth(**changes: Any) -> Truth:
    fault = {
        "cause": "disk-capped",
        "layers": ["vm", "datastore"],
        "entities": [{"kind": "block-device", "name": "loop1"}],
        "start": START,
        "end": END,
    }
    content = {
        **{"kind": "iops-limit-wal", "variant": 1, "fault": fault, "disk": "yes", "visible_in": ["iostat"]},
        "innocent": {"layers": ["network"], "entities": [{"kind": "block-device", "name": "loop0"}]},
        "recordings": {"iostat.txt": {"recorder": "iostat"}, "pgbench.txt": {"recorder": "pgbench"}},
    }
    return Truth.model_validate(content | changes)


HEALTHY = truth(kind="healthy", fault=None, disk="no", visible_in=[], innocent={})
CPU_FAULT = {"cause": "cpu-taken", "layers": ["guest"], "entities": [], "start": START, "end": END}


def finding(rule: str = "vm-iops-limit-hit", **changes: Any) -> Finding:
    made = Finding(rule, "X", Layer.VM, WAL, Severity.MEDIUM, "it is capped", (), "", (FAULT,))
    return replace(made, **changes)


def judge(
    true: Truth, *findings: Finding, answer: Disk = Disk.UNKNOWN, states: dict[Layer, LayerState] | None = None
) -> Judgement:
    layers = tuple(
        LayerVerdict(layer, (states or {}).get(layer, LayerState.NOT_EXAMINED), NO_REASON) for layer in Layer
    )
    answers = (Answer(None, answer, Reason.NOT_RECORDED, Certainty.IS),)
    diagnosis = Diagnosis(answers, layers, findings, ())
    return judged(true, diagnosis, FULL, is_visible=True, is_timed=True)


def test_the_right_top_finding_is_right_in_every_count() -> None:
    one = judge(truth(), finding(), answer=Disk.YES, states={Layer.VM: LayerState.SUSPECTED})
    assert (one.is_layer_right, one.is_entity_right, one.is_cause_right) == (True, True, True)
    assert one.is_top_right
    assert one.is_time_right
    assert not one.clearances
    assert not one.accusations
    assert one.disk == "yes"


@pytest.mark.parametrize(
    ("changes", "right"),
    [
        ({"layer": Layer.GUEST}, (False, True, True)),
        ({"entity": GUEST}, (True, False, True)),
        ({"entity": Entity(EntityKind.BLOCK_DEVICE, "/dev/loop1", GUEST)}, (True, True, True)),
        ({"rule": "guest-swap-activity"}, (True, True, False)),
        ({"severity": Severity.LOW}, (False, False, False)),
        ({"caused_by": "disk-kavg-high"}, (False, False, False)),
    ],
)
def test_each_count_of_the_top_finding_stands_alone(changes: dict[str, Any], right: tuple[bool, ...]) -> None:
    one = judge(truth(), finding(**changes))
    assert (one.is_layer_right, one.is_entity_right, one.is_cause_right) == right


@pytest.mark.parametrize(
    ("entity", "is_right"),
    [
        (GUEST, True),
        (Entity(EntityKind.GUEST, "other"), True),
        (Entity(EntityKind.CPU, "0", GUEST), True),
        (WAL, False),
    ],
)
def test_without_an_entity_the_machine_is_to_blame(entity: Entity, is_right: bool) -> None:
    top = finding("guest-run-queue-high", layer=Layer.GUEST, entity=entity)
    assert judge(truth(fault=CPU_FAULT, disk="no"), top).is_entity_right is is_right


@pytest.mark.parametrize(("disk", "errors"), [("yes", ("disk",)), ("no", ()), ("either", ())])
def test_clearing_a_disk_that_is_to_blame_is_a_wrong_clearance(disk: str, errors: tuple[str, ...]) -> None:
    assert judge(truth(disk=disk), answer=Disk.NO).clearances == errors


def test_a_cleared_layer_is_a_wrong_clearance_when_none_to_blame_is_accused() -> None:
    cleared = {Layer.VM: LayerState.CLEARED}
    assert judge(truth(), states=cleared).clearances == ("layer vm",)
    assert judge(truth(), states={**cleared, Layer.DATASTORE: LayerState.SUSPECTED}).clearances == ()
    assert judge(truth(), states={Layer.NETWORK: LayerState.CLEARED}).clearances == ()
    assert judge(HEALTHY, states=cleared).clearances == ()


@pytest.mark.parametrize(
    ("changes", "is_wrong"),
    [
        ({"layer": Layer.NETWORK}, True),
        ({"entity": DATA}, True),
        ({"entity": DATA, "severity": Severity.LOW}, False),
        ({"entity": DATA, "caused_by": "disk-kavg-high"}, False),
        ({"layer": Layer.GUEST, "entity": GUEST}, False),  # not right, and not of the innocent
    ],
)
def test_a_finding_of_weight_on_the_innocent_is_a_wrong_accusation(changes: dict[str, Any], is_wrong: bool) -> None:
    assert bool(judge(truth(), finding(**changes)).accusations) is is_wrong


def test_accusing_an_innocent_disk_is_a_wrong_accusation() -> None:
    assert judge(truth(fault=CPU_FAULT, disk="no"), answer=Disk.NOT_FIRST).accusations == ("disk",)
    assert judge(truth(fault=CPU_FAULT, disk="either"), answer=Disk.YES).accusations == ()
    assert judge(HEALTHY, answer=Disk.YES).accusations == ("disk",)


def test_every_finding_of_weight_on_the_healthy_is_a_wrong_accusation() -> None:
    one = judge(HEALTHY, finding(), finding(severity=Severity.LOW))
    assert one.accusations == ("vm-iops-limit-hit on db01 loop1",)
    assert not one.is_top_right
    assert judge(HEALTHY).accusations == ()


def test_saying_nothing_is_right_only_where_the_view_cannot_show_the_cause() -> None:
    quiet = blank(truth(), "alone: pgbench", is_visible=False)
    accusing, clearing = replace(quiet, rule="guest-iowait-high"), replace(quiet, clearances=("disk",))
    assert [one.says_it_cannot_know for one in (quiet, accusing, clearing)] == [True, False, False]
    knows, top = BY_KIND[2], BY_KIND[3]
    assert knows.cell([quiet, accusing, clearing]) == "1/3"
    missed = replace(quiet, is_visible=True)
    assert (knows.cell([missed]), top.cell([missed])) == ("-", "0/1")
    assert (knows.cell([blank(HEALTHY, FULL, is_visible=False)]), BY_KIND[0].cell([quiet])) == ("-", ".")


@pytest.mark.parametrize(
    ("answer", "disk"),
    [
        (Disk.NO, "no"),
        (Disk.UNKNOWN, "unknown"),
        (Disk.YES_AS_SEEN_BY_GUEST, "yes"),
        (Disk.YES_A_LIMIT, "yes"),
        (Disk.NOT_FIRST, "yes"),
    ],
)
def test_answers_in_one_word(answer: Disk, disk: str) -> None:
    assert disk_of(answer) == disk


@pytest.mark.parametrize(
    ("spans", "share"),
    [
        ([(0, 10)], 1.0),
        ([(0, 5)], 0.5),
        ([(0, 20)], 0.5),
        ([(5, 15)], 1 / 3),
        ([(10, 20)], 0.0),
        ([], 0.0),
        ([(0, 4), (6, 10)], 0.8),
        ([(0, 8), (2, 10)], 1.0),
        ([(-10, 2), (0, 1)], 0.1),
    ],
)
def test_the_overlap_is_of_the_union(spans: list[tuple[int, int]], share: float) -> None:
    windows = [Window(start, end) for start, end in spans]
    assert overlap(windows, Window(0, 10)) == pytest.approx(share)


def test_the_causes_are_those_of_the_truth_and_their_rules_exist() -> None:
    named = {cause for meta in rule_metas().values() for cause in meta.causes}
    assert named >= CAUSES  # every fault that is recorded has a rule that can name it
    assert causes_of(finding("disk-davg-wal")) == {"disk-slow"}
    assert causes_of(finding("vm-snapshot-old")) == frozenset()
    assert AREAS.keys() <= set(CAUSES)


def test_every_cause_that_a_rule_names_says_where_its_time_goes() -> None:
    named = {cause for meta in rule_metas().values() for cause in meta.causes}
    assert named == CAUSE_TERMS.keys()


def capture_of(name: str, metric: str, values: list[float], entity: Entity = GUEST) -> Capture:
    builder = CaptureBuilder(name, "iostat", "iostat")
    times_ns = START_NS + NS_PER_S * np.arange(1, len(values) + 1)
    builder.add_series(metric, entity, times_ns, np.array(values))
    return builder.build()


def test_views_are_cut_by_time_and_by_recorder() -> None:
    short = {"start": "2026-11-20T23:49:50Z", "end": "2026-11-20T23:50:20Z"}
    true = truth(fault=truth().model_dump()["fault"] | short)
    values = [float(second) for second in range(1, 61)]
    files = (
        ImportedFile("iostat.txt", "iostat", capture_of("iostat.txt", "guest_disk_await_ms", values, WAL)),
        ImportedFile("pgbench.txt", "pgbench", None, "no importer knows it"),
        ImportedFile("inventory.yaml", None, CaptureBuilder("inventory.yaml", "inventory", "x").build()),
    )
    seen = {view.name: view for view in views(Recording(true, combined(files), files))}
    assert list(seen) == [FULL, NO_HEALTHY, SHORT, f"{ALONE}iostat", f"{ALONE}pgbench"]
    kept = {}
    for name, view in seen.items():
        groups = [] if view.capture is None else view.capture.groups
        kept[name] = [(int(g.values[0, 0]), int(g.values[0, -1])) for g in groups]
    assert kept == {
        FULL: [(1, 60)],
        NO_HEALTHY: [(11, 39)],
        SHORT: [(20, 39)],
        f"{ALONE}iostat": [(1, 60)],
        f"{ALONE}pgbench": [],
    }
    assert {name: view.is_visible for name, view in seen.items()} == dict.fromkeys(seen, True) | {
        f"{ALONE}pgbench": False
    }
    assert [view.name for view in views(Recording(true, combined(files), files), [SHORT])] == [SHORT]


@pytest.mark.parametrize(("length_s", "start_s"), [(20, 0), (22, 0), (23, 3), (90, 70)])
def test_the_short_view_is_the_last_twenty_seconds(length_s: int, start_s: int) -> None:
    assert last_seconds(0, length_s * NS_PER_S) == (start_s * NS_PER_S, length_s * NS_PER_S)


def test_a_healthy_recording_has_no_view_of_the_fault() -> None:
    whole = capture_of("iostat.txt", "guest_disk_await_ms", [1.0] * 100, WAL)
    spans = spans_of(HEALTHY, whole)
    end_ns = START_NS + 100 * NS_PER_S
    assert spans == {FULL: None, SHORT: (end_ns - 20 * NS_PER_S, end_ns)}


def test_thresholds_accuse_on_one_sample_in_ten() -> None:
    calm, busy = [1.0] * 20, [1.0] * 18 + [99.0] * 2
    assert judge_areas(capture_of("a", "guest_cpu_busy_pct", calm)) == {"cpu": False}
    assert judge_areas(capture_of("a", "guest_cpu_busy_pct", busy)) == {"cpu": True}
    assert judge_areas(capture_of("a", "guest_cpu_busy_pct", [np.nan] * 20)) == {}
    assert judge_areas(capture_of("a", "guest_cpu_iowait_pct", calm)) == {}  # it clears no disk
    assert judge_areas(capture_of("a", "guest_run_queue_count", [99.0] * 20)) == {}  # on how many processors?


def test_thresholds_are_judged_like_the_diagnosis() -> None:
    fast = capture_of("a", "guest_disk_await_ms", [1.0] * 20, WAL)
    slow = capture_of("a", "guest_disk_await_ms", [50.0] * 20, WAL)
    swaps = capture_of("a", "guest_swap_in_kib_per_s", [5.0] * 20)
    assert threshold_errors(truth(), fast) == (("disk",), ())
    assert threshold_errors(truth(), slow) == ((), ())
    assert threshold_errors(truth(fault=CPU_FAULT, disk="no"), slow) == ((), ("disk",))
    assert threshold_errors(truth(), swaps) == ((), ("memory",))
    assert threshold_errors(HEALTHY, slow) == ((), ("disk",))


def test_the_metrics_of_the_thresholds_exist() -> None:
    from benches.incidents.thresholds import LIMITS

    names = {metric for limits in LIMITS.values() for metric in limits}
    assert names <= metrics().keys()


def test_an_archive_becomes_a_recording(tmp_path: Path) -> None:
    (tmp_path / "unpacked").mkdir()
    recording = read_recording(pack(tmp_path, "throttled-wal-disk"), tmp_path / "unpacked")
    recorders = {file.name: file.recorder for file in recording.files}
    assert recorders["iostat.json.gz"] == "iostat"
    assert recorders["inventory.yaml"] is None
    assert "truth.yaml" not in recorders
    unread = {file.name: file.reason for file in recording.files if file.capture is None}
    assert unread.keys() <= {"sar.bin"}  # sar's own format needs sadf


@pytest.mark.parametrize(
    ("file", "recorder"),
    [("iostat.txt", "iostat"), ("iostat.txt.gz", "iostat"), ("pgbench.txt", "pgbench"), ("truth.txt", None)],
)
def test_a_packed_file_is_known_by_its_plain_name(file: str, recorder: str | None) -> None:
    assert truth().recorder_of(file) == recorder


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"disk": "perhaps"}, "disk is neither"),
        ({"fault": {**CPU_FAULT, "cause": "bad-luck"}}, "bad-luck: none of"),
        ({"fault": {**CPU_FAULT, "end": START}}, "ends before it starts"),
        ({"recordings": None}, "recordings"),
        ({"fault": CPU_FAULT, "innocent": {"layers": ["guest"]}}, "guest is to blame and innocent"),
    ],
)
def test_a_damaged_truth_is_one_line(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    text = yaml.safe_dump(truth_of("healthy") | changes)
    (tmp_path / "truth.yaml").write_text(text, encoding="utf-8")
    archive = tmp_path / "healthy" / "1.tar.xz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(tmp_path / "truth.yaml", "truth.yaml")
    result = measured(archive)
    assert problem in result.problem
    assert "\n" not in result.problem
    assert not result.judgements


def test_a_damaged_archive_is_one_line(tmp_path: Path) -> None:
    archive = tmp_path / "healthy" / "1.tar.xz"
    archive.parent.mkdir()
    for content in (b"", b"no archive", pack(tmp_path, "healthy", 2).read_bytes()[:20_000]):
        archive.write_bytes(content)
        assert measured(archive).problem.startswith("healthy/1.tar.xz: a damaged archive")
    with tarfile.open(archive, "w:xz"):
        pass
    assert measured(archive).problem == "healthy/1.tar.xz: no truth.yaml"
    with pytest.raises(InputError, match=r"no truth\.yaml"):
        read_recording(archive, tmp_path / "healthy")


def test_tables_keep_their_width() -> None:
    one = blank(truth(kind="k" * 24), FULL, is_visible=True)
    some = [replace(one, view=f"{ALONE}{name}") for name in ("postgresql-log", "iostat", "wait-events", "vmstat")]
    many = [replace(one, view=f"{ALONE}recorder-{number}") for number in range(20)]
    lines = [*tables_by_kind([one, *some, *many]), *totals([one, *some, *many], "Open")]
    assert max(map(len, lines)) <= WIDTH
    assert sum(len(group) for _, group in TOTALS) == 12
    assert list(totals([], "Set aside")) == []


def test_waiting_and_the_usual_lines_are_one_for_each_kind() -> None:
    shares = {"fault": {"LWLock:WALWrite": 0.6, "CPU": 0.1, "IO:a": 0.2, "IO:b": 0.05}, "outside": {"CPU": 0.3}}
    some = [truth(wait_shares=shares, usual={"vmstat": "wa 45"}), truth(variant=2, wait_shares={"fault": {"CPU": 0.3}})]
    assert list(waiting(some))[2].split("  ")[-1].strip() == "LWLock:WALWrite 30% (0%), CPU 20% (15%), IO:a 10% (0%)"
    assert list(usual(some))[2].endswith("vmstat: wa 45")
    assert list(waiting([truth()])) == list(usual([truth()])) == []


def test_the_page_of_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = tmp_path / "recorded"
    recorded.mkdir()
    pack(recorded, "throttled-wal-disk")
    pack(recorded, "cpu-starved-guest", is_set_aside=True)
    (recorded / "healthy").mkdir()
    (recorded / "healthy" / "1.tar.xz").write_bytes(b"damaged")
    document = tmp_path / "judgements.json"
    words = ["--recorded", str(recorded), "--part", "recorded", "--jobs", "2", "--json", str(document)]
    assert bench_incidents.main([*words, "--details"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= WIDTH
    assert "Recorded by us: 2 recordings" in page
    assert "healthy/1.tar.xz: a damaged archive" in page
    assert "Set aside: 1 recording\n" in page
    assert "cpu-starved-guest" not in page
    written = json.loads(document.read_text(encoding="utf-8"))
    assert {one["kind"] for one in written["recorded"]} == {"throttled-wal-disk", "cpu-starved-guest"}
    assert len(written["damaged"]) == 1
    assert bench_incidents.main([*words[:-2], "--kind", "cpu-starved-guest", "--set-aside", "--details"]) == 0
    assert "cpu-starved-guest 1 (set aside)" in capsys.readouterr().out


def test_wrong_arguments_are_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack(tmp_path, "healthy")
    words = ["--recorded", str(tmp_path), "--part", "recorded", "--jobs", "1"]
    wrong = (["--kind", "flood"], ["--view", "sideways"], ["--count", "0"], ["--json", str(tmp_path / "no" / "file")])
    for more in wrong:
        with pytest.raises(SystemExit) as caught:
            bench_incidents.main([*words, *more])
        assert caught.value.code == 2
        assert more[0] in capsys.readouterr().err
    assert bench_incidents.main(["--recorded", str(tmp_path / "none"), "--part", "recorded"]) == 0


def test_the_truth_of_the_documents_is_a_truth() -> None:
    text = (ROOT / "docs" / "incidents.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    true = Truth.model_validate(yaml.safe_load(example))
    assert true.recorders == ["iostat"]
    assert true.fault is not None
