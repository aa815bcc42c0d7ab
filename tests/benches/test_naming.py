"""The judge of named causes."""

from __future__ import annotations

import pytest

from benches.incidents.naming import LABELS, Naming, kinds_of, naming_table
from leadline.core.contracts.rule import rule_metas


def test_every_label_means_a_cause_that_some_rule_names() -> None:
    causes = {cause for meta in rule_metas().values() for cause in meta.causes} | {"lock-waits"}
    assert [label for label, kinds in LABELS.items() if not kinds <= causes] == []


@pytest.mark.parametrize(
    ("label", "count"), [("CPU Saturation", 1), ("Workload Spike + Table Restore", 2), ("CPU,IO,Network Saturation", 3)]
)
def test_a_compound_has_a_kind_for_each_part(label: str, count: int) -> None:
    assert len(kinds_of(label)) == count


def test_a_compound_is_right_when_each_part_is_among_the_first_three() -> None:
    assert Naming("a + b", (0, 2), (None, 0), 0.9).is_right((0, 2), 1)
    assert not Naming("a + b", (0, 3), (None, 0), 0.9).is_right((0, 3), 1)
    assert not Naming("a", (1,), (0,), 0.9).is_right((1,), 1)
    assert Naming("a", (1,), (0,), 0.9).is_right((1,), 2)


def test_the_table_counts_by_cause_and_kind() -> None:
    lines = list(naming_table([Naming("a", (0,), (1,), 0.9), Naming("a + b", (0, 1), (0, None), 0.2)]))
    assert lines[-2].split() == ["all", "single", "1", "1", "1", "0", "1", "1"]
    assert lines[-1].split() == ["all", "compound", "1", "1", "1", "0", "0", "0"]
