"""Who did it, over recordings of which we know: what was started, locked or dropped is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benches.incidents.recordings import TRUTH, Truth, archives, ns_of, unpack
from incidents.record import kinds, load_kind
from leadline.app.diagnose.cause_terms import kind_and_who
from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.diagnose.who import READS, culprits
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.io.yaml_files import read_model
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.incident import Basis, Incident
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.core.model.who import Who, WhoKind
from tests.conftest import ROOT

RECORDED = ROOT / "incidents" / "recorded"
# What was done, by whom, is declared by each kind.
DONE_BY = {
    name: load_kind(name).KIND.done_by
    for name in kinds()
    if any(one.kind != "session" for one in load_kind(name).KIND.done_by)
}
REMNANT = pytest.mark.xfail(reason="the sort of the recording before it still ran in its first seconds", strict=True)
# A program or worker of little work that a rule finds by what came with it, not by its share.
BY_RULE = ("other-files-flush", "autovacuum")
CASES = [
    pytest.param(kind, archive, id=f"{kind}-{archive.name[0]}", marks=[REMNANT] if case == "temp-spill-2" else [])
    for kind in DONE_BY
    if kind not in BY_RULE
    for archive in archives(RECORDED, [kind])
    for case in (f"{kind}-{archive.name[0]}",)
]
LOCKED = archives(RECORDED, ["lock-waits", "ddl-queue"])


def recorded(archive: Path, folder: Path) -> tuple[Capture, Incident]:
    """What is read of a recording, and its fault against what was before: what was started ends late."""
    unpack(archive, folder)
    path = next(folder.rglob(TRUTH))
    truth = read_model(path, Truth, "truth of a recording", "incidents/README.md")
    path.unlink()
    assert truth.fault is not None
    capture = import_paths([folder], Request(metrics=READS)).capture
    normal = tuple(Window(ns_of(p.start), ns_of(p.end)) for p in truth.phases if p.name == "healthy")
    return capture, Incident(Window(ns_of(truth.fault.start), ns_of(truth.fault.end)), normal, Basis.TOLD)


def first(whos: tuple[Who, ...], kind: WhoKind) -> Who | None:
    return next((who for who in whos if who.kind is kind), None)


def named(name: str, share: float, normal: float | None, *, is_multiplied: bool = False) -> Who:
    """A statement with its share inside and outside."""
    return Who(WhoKind.STATEMENT, name, None, share, normal, "active sessions", (), is_multiplied)


def finding_of(rule: str) -> Finding:
    server = Entity(EntityKind.DATABASE, "main")
    return Finding(rule, "X", Layer.DATABASE, server, Severity.HIGH, "", (), "")


@pytest.mark.parametrize(("kind", "archive"), CASES)
def test_the_one_who_did_it_is_named_first_of_its_kind(kind: str, archive: Path, tmp_path: Path) -> None:
    whos = culprits(*recorded(archive, tmp_path))
    named = {(who.kind.value, who.name): who.share for who in whos if who == first(whos, who.kind)}
    shares = [share for one in DONE_BY[kind] if (share := named.get((one.kind, one.name))) is not None]
    assert shares, named
    assert all(0.05 < share <= 1.0 for share in shares)


@pytest.mark.parametrize(
    ("kind", "archive"), [(kind, archive) for kind in BY_RULE for archive in archives(RECORDED, [kind])]
)
def test_the_one_whom_a_rule_finds_is_named_with_the_cause(kind: str, archive: Path, tmp_path: Path) -> None:
    unpack(archive, tmp_path)
    next(tmp_path.rglob(TRUTH)).unlink()
    diagnosis = diagnose(import_paths([tmp_path], Request(metrics=metrics_read())).capture)
    whos = [cause.who for answer in diagnosis.answers for cause in answer.causes if cause.who is not None]
    assert any(who.kind.value == one.kind and one.name in ("", who.name) for who in whos for one in DONE_BY[kind]), whos


@pytest.mark.parametrize("archive", LOCKED, ids=[f"{path.parent.name}-{path.name[0]}" for path in LOCKED])
def test_the_session_at_the_head_of_the_queue_is_named(archive: Path, tmp_path: Path) -> None:
    who = first(culprits(*recorded(archive, tmp_path)), WhoKind.SESSION)
    assert who is not None
    assert who.name.startswith("pid ")
    assert who.share is not None
    assert who.share > 0.5
    assert {"state", "last statement", "transaction open, s"} <= dict(who.details).keys()


def test_without_an_incident_shares_are_over_everything(tmp_path: Path) -> None:
    capture, incident = recorded(archives(RECORDED, ["costly-query"])[0], tmp_path)
    who, inside = (first(culprits(capture, one), WhoKind.STATEMENT) for one in (None, incident))
    assert who is not None
    assert inside is not None
    assert who.name == inside.name
    assert who.share_normal is None


@pytest.mark.parametrize(
    ("rule", "who", "kind"),
    [
        ("db-bulk-load", named("INSERT INTO bulk", 0.12, 0.0, is_multiplied=True), "bulk-load"),
        ("db-bulk-load", named("INSERT INTO bulk", 0.12, None), "bulk-load"),
        ("db-temp-files", named("SELECT ... FROM orders", 0.24, 0.16, is_multiplied=True), "temp-files"),
        ("guest-run-queue-high", named("SELECT ... FROM orders", 0.9, None), "cpu-busy"),
    ],
)
def test_a_statement_that_came_with_its_kind_of_cause_is_named(rule: str, who: Who, kind: str) -> None:
    assert kind_and_who(finding_of(rule), [who]) == (kind, who)


@pytest.mark.parametrize(
    ("rule", "who"),
    [
        ("db-bulk-load", named("SELECT ... FROM orders", 0.2, 0.0, is_multiplied=True)),  # it loads nothing
        ("db-bulk-load", named("INSERT INTO bulk", 0.12, 0.1)),  # it was there before
        ("db-bulk-load", named("INSERT INTO bulk", 0.05, 0.0, is_multiplied=True)),
        ("guest-run-queue-high", named("SELECT ... FROM orders", 0.4, None)),  # one among many
    ],
)
def test_a_statement_that_cannot_be_it_is_not_named(rule: str, who: Who) -> None:
    assert kind_and_who(finding_of(rule), [who])[1] is None


@pytest.mark.parametrize(
    ("rule", "kind", "name", "metric", "of"),
    [
        ("guest-disk-taken", EntityKind.PROCESS, "fio[12]", "process_write_kib_per_s", "disk writes"),
        (
            "guest-disk-worker",
            EntityKind.SESSION,
            "autovacuum worker on t",
            "db_worker_sessions_count",
            "background processes",
        ),
    ],
)
def test_whom_a_rule_weighed_itself_is_named(rule: str, kind: EntityKind, name: str, metric: str, of: str) -> None:
    entity = Entity(kind, name)
    lead = replace(finding_of(rule), evidence=(Evidence("", metric, entity),))
    cause, who = kind_and_who(lead, [])
    assert cause == "disk-busy-with-others"
    assert who is not None
    assert (who.name, who.share, who.of) == (name.partition("[")[0], None, of)
    known = replace(who, share=0.9)
    assert kind_and_who(lead, [known])[1] == known
