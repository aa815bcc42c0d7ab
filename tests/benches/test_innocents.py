"""The judge counts whom of the innocent a diagnosis accuses: disks, programs and databases that stand by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from benches.incidents.judging import Judgement, judged
from benches.incidents.recordings import TrueEntity, Truth
from benches.incidents.table import innocents
from benches.incidents.views import FULL, SHORT
from leadline.core.model.answer import Answer, Cause, Certainty, Disk, Reason
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Diagnosis, Evidence, Finding, LayerBecause, LayerReason, LayerVerdict
from leadline.core.model.vocabulary import EntityKind, Layer, LayerState, Severity
from leadline.core.model.who import Who, WhoKind

START, END = "2026-11-20T23:49:40Z", "2026-11-20T23:51:10Z"
GUEST = Entity(EntityKind.GUEST, "db01")
OTHER, DATA = (Entity(EntityKind.BLOCK_DEVICE, name, GUEST) for name in ("loop3", "loop0"))
DD, TAR, LOAD = (Entity(EntityKind.PROCESS, name, GUEST) for name in ("dd[812]", "tar[90]", "pgbench[20]"))
STANDS_BY = {"kind": "busy-disk", "program": "dd", "entity": "loop3", "rate": "10 MB/s", "from": START, "to": END}
INNOCENT = [
    {"kind": "block-device", "name": "loop3"},
    {"kind": "process", "name": "dd"},
    {"kind": "process", "name": "pgbench[812]"},
    {"kind": "database", "name": "reports"},
]


def truth(**changes: Any) -> Truth:
    fault = {"cause": "disk-busy-with-others", "layers": ["guest"], "start": START, "end": END}
    content = {
        **{"kind": "backup", "variant": 4, "fault": fault, "disk": "either", "bystanders": [STANDS_BY]},
        **{"innocent": {"layers": [], "entities": INNOCENT}, "recordings": {"iostat.txt": {"recorder": "iostat"}}},
    }
    return Truth.model_validate(content | changes)


def finding(entity: Entity, rule: str = "guest-disk-taken", *evidence: Entity) -> Finding:
    shown = tuple(Evidence("it reads", entity=one) for one in evidence)
    return Finding(rule, "X", Layer.GUEST, entity, Severity.HIGH, "it reads", shown, "", ())


def judge(true: Truth, *findings: Finding, who: Entity | None = None) -> Judgement:
    layers = tuple(LayerVerdict(one, LayerState.NOT_EXAMINED, LayerReason(LayerBecause.NO_RULE)) for one in Layer)
    causes: tuple[Cause, ...] = ()
    if who is not None:
        culprit = Who(WhoKind.PROGRAM, who.name.partition("[")[0], who, 0.6, 0.1, "disk reads")
        causes = (Cause("disk-busy-with-others", DATA, findings, 1.0, None, Certainty.IS, culprit),)
    answers = (Answer(None, Disk.UNKNOWN, Reason.NOT_RECORDED, Certainty.IS, causes),)
    return judged(true, Diagnosis(answers, layers, findings, ()), FULL, is_visible=True, is_timed=False)


@pytest.mark.parametrize(
    ("name", "entity", "is_around"),
    [
        ("dd", DD, True),
        ("dd", Entity(EntityKind.PROCESS, "dd", GUEST), True),
        ("dd", Entity(EntityKind.PROCESS, "ddrescue[812]", GUEST), False),
        ("dd", Entity(EntityKind.BLOCK_DEVICE, "dd", GUEST), False),
        ("pgbench[20]", LOAD, True),
        ("pgbench[2]", LOAD, False),
    ],
)
def test_a_process_is_matched_by_its_program_or_its_number(name: str, entity: Entity, is_around: bool) -> None:
    assert TrueEntity(kind=EntityKind.PROCESS, name=name).is_around(entity) is is_around


@pytest.mark.parametrize(
    ("findings", "who", "accused"),
    [
        ((finding(DATA, "guest-disk-taken", TAR),), TAR, ()),
        ((finding(OTHER),), None, ("disk loop3",)),
        ((finding(DATA, "guest-disk-taken", DD),), None, ("program dd",)),
        ((finding(DATA, "guest-disk-taken", TAR),), DD, ("program dd",)),
        ((finding(DATA, "guest-disk-taken", DD),), DD, ("program dd",)),
        ((finding(DATA, "guest-disk-taken", LOAD),), LOAD, ()),
        ((finding(DATA, "guest-program-capped", DD),), None, ()),
        ((finding(Entity(EntityKind.DATABASE, "reports", GUEST), "db-lock-waits"),), None, ("database reports",)),
        ((finding(Entity(EntityKind.DATABASE, "bench", GUEST), "db-lock-waits"),), None, ()),
    ],
)
def test_an_innocent_is_accused_by_the_entity_by_evidence_or_as_culprit(
    findings: tuple[Finding, ...], who: Entity | None, accused: tuple[str, ...]
) -> None:
    one = judge(truth(), *findings, who=who)
    assert one.innocents == accused
    assert bool(one.accusations) is bool(accused)
    assert one.has_bystanders


def test_evidence_that_compares_accuses_nobody() -> None:
    other = replace(finding(GUEST, "guest-cache-cold"), evidence=(Evidence("it reads less", entity=OTHER),))
    assert judge(truth(), other).innocents == ()


def test_bystanders_are_read_from_the_truth_and_need_their_times() -> None:
    (one,) = truth().bystanders
    assert (one.kind, one.program, one.entity, one.rate) == ("busy-disk", "dd", "loop3", "10 MB/s")
    assert (one.end - one.start).total_seconds() == 90.0
    assert truth(bystanders=[]).bystanders == []
    with pytest.raises(ValidationError, match="from"):
        truth(bystanders=[{name: value for name, value in STANDS_BY.items() if name != "from"}])


def test_the_table_counts_views_apart_with_bystanders_and_without() -> None:
    accusing = judge(truth(), finding(OTHER), finding(DATA, "guest-disk-taken", DD))
    right = judge(truth(), finding(DATA))
    plain = judge(truth(bystanders=[]), finding(OTHER))
    lines = list(innocents([accusing, right, replace(right, view=SHORT), plain]))
    cells = {line.rpartition("views")[0].strip(): line.rpartition("views")[2].split() for line in lines[3:]}
    assert lines[2].split()[-3:] == ["disks", "programs", "databases"]
    assert cells["with bystanders, full"] == ["2", "1", "1", "."]
    assert cells["with bystanders, other"] == ["1", ".", ".", "."]
    assert cells["without bystanders, full"] == ["1", "1", ".", "."]
    assert list(innocents([])) == []
