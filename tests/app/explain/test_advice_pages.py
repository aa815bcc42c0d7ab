"""Advice has a page of its own: what to do, the rules it is told with, the guides it stands in."""

from __future__ import annotations

import csv

import pytest

from leadline.app.explain.explaining import explain
from leadline.core.model.errors import UsageError
from tests.conftest import ROOT

ROWS = list(csv.DictReader((ROOT / "src/leadline/app/explain/advice.csv").read_text().splitlines()))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["catalogue"])
def test_each_piece_of_advice_is_explained_by_its_name(row: dict[str, str]) -> None:
    page = explain(row["catalogue"])
    if page["kind"] == "advice":
        assert page["title"] == row["advice"]
        assert page["facts"], "nobody would meet it: no rule and no guide has it"


def test_advice_says_where_people_meet_it() -> None:
    page = explain("iops-limit-scope")
    assert (page["kind"], page["sections"]) == ("advice", {})
    assert page["facts"] == {"told with": "vm-iops-limit-hit, vsan-iops-limit-latency-artifact"}
    assert explain("guest-screensaver")["facts"]["stands in"].startswith("leadline guide ")


def test_a_name_near_advice_is_told() -> None:
    with pytest.raises(UsageError, match="iops-limit-scope"):
        explain("iops-limit-scop")
