"""Every sample recording imports without a traceback, and what is found in it does not change unnoticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import corpus
from tests.conftest import SAMPLES

FILES = corpus.files() if SAMPLES.is_dir() else []


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name[-60:])
def test_a_sample_imports_or_is_refused_in_one_line(path: Path) -> None:
    known = {text.split("\t")[0]: text for text in corpus.REPORT.read_text().splitlines()}
    found = corpus.line(path)
    if not corpus.depends_on_sadf(path):
        assert found == known[found.split("\t")[0]], "run `make corpus` and look at the difference"


def test_the_report_has_a_line_for_every_sample(samples: Path) -> None:
    del samples  # asked for so that the test is skipped where they are absent
    names = {text.split("\t")[0] for text in corpus.REPORT.read_text().splitlines()[1:]}
    assert names == {p.relative_to(SAMPLES).as_posix() for p in FILES if not corpus.depends_on_sadf(p)}
