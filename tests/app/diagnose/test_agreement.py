"""The first cause and the account agree: what surely took most of the added time is what the cause makes wait for."""

from __future__ import annotations

from pathlib import Path

import pytest

from benches.incidents.recordings import archives, read_recording
from benches.incidents.views import views
from leadline.app.diagnose.cause_terms import sure_share, terms_of
from leadline.app.diagnose.diagnosing import diagnose
from leadline.core.model.answer import Answer
from leadline.core.model.vocabulary import Severity
from tests.conftest import ROOT

ARCHIVES = archives(ROOT / "incidents" / "recorded")
SOME = ARCHIVES[::24]  # `make test-real` reads them all


def contradicts(answer: Answer) -> bool:
    """Whether an account is sure of what took most of the time, and the first cause says where else time goes."""
    share, cause = sure_share(answer.account), answer.cause
    if share is None or cause is None:
        return False
    terms = terms_of(cause.finding)
    return bool(terms) and share.term not in terms


@pytest.mark.parametrize(
    "archive",
    [pytest.param(one, marks=[] if one in SOME else [pytest.mark.slow]) for one in ARCHIVES],
    ids=[f"{one.parent.name}/{one.name.split('.')[0]}" for one in ARCHIVES],
)
def test_the_first_cause_agrees_with_the_account(archive: Path, tmp_path: Path) -> None:
    recording = read_recording(archive, tmp_path)
    wrong: list[tuple[str, object]] = []
    for view in views(recording):
        if view.capture is not None:
            answers = diagnose(view.capture).answers
            wrong += [(view.name, one.to_dict()) for one in answers if contradicts(one)]
    assert wrong == []


def test_two_faults_at_once_are_headed_by_the_one_that_took_the_time(tmp_path: Path) -> None:
    """The log's disk is capped and other programs take the CPUs; sessions wait for the log."""
    answer = diagnose(read_recording(ROOT / "incidents/recorded/two-faults/1.tar.xz", tmp_path).whole).answer
    assert answer.account is not None
    share = sure_share(answer.account)
    assert share is not None
    assert answer.cause is not None
    assert answer.cause.entity == share.entity
    assert answer.cause.finding.severity is Severity.MEDIUM
    assert [cause.kind for cause in answer.causes] == ["disk-capped", "cpu-taken"]
    assert answer.disk.accuses
