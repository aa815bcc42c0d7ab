"""The diagnosis is one, however its recordings were read: what the verdict reads, or every series for the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benches.incidents.recordings import TRUTH, archives, unpack
from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.faces.documents import diagnosis_document
from tests.conftest import ROOT

ARCHIVES = archives(ROOT / "incidents" / "recorded")
SOME = ARCHIVES[8::24]  # others than test_agreement's; `make test-real` reads them all


def document(folder: Path, metrics: frozenset[str] | None) -> dict[str, Any]:
    imported = import_paths([folder], Request(metrics=metrics))
    plain = diagnosis_document(diagnose(imported.capture), imported)
    del plain["sources"]  # their counts of series differ
    return plain


def name_of(archive: Path) -> str:
    return f"{archive.parent.name}/{archive.name.split('.')[0]}"


@pytest.mark.parametrize(
    "archive",
    [pytest.param(one, marks=[] if one in SOME else [pytest.mark.slow]) for one in ARCHIVES],
    ids=map(name_of, ARCHIVES),
)
def test_the_answer_is_the_same_with_and_without_a_report(archive: Path, tmp_path: Path) -> None:
    unpack(archive, tmp_path)
    next(tmp_path.rglob(TRUTH)).unlink()
    assert document(tmp_path, metrics_read()) == document(tmp_path, None)
