from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.model.errors import UsageError
from leadline.core.model.profile import load_profile

KNOWN = {"cpu-ready-high": frozenset({"warn", "crit", "duration"})}


def test_a_profile_overrides_switches_off_and_shifts(tmp_path: Path) -> None:
    path = tmp_path / "leadline.toml"
    path.write_text('[rules.cpu-ready-high]\nwarn = 2.5\nenabled = false\n[clock_offsets]\n"a.csv" = -3\n')
    profile = load_profile(path, KNOWN)
    assert profile.limits == {"cpu-ready-high": {"warn": 2.5}}
    assert profile.disabled == {"cpu-ready-high"}
    assert profile.clock_offsets == {"a.csv": -3.0}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[rules", "unreadable"),
        ("[rule]", "table rule"),
        ("[rules.cpu-redy]\nwarn = 1", "no such rule"),
        ("[rules.cpu-ready-high]\nwarning = 1", "limit warning"),
        ('[rules.cpu-ready-high]\nwarn = "5"', "warn = '5'"),
        ("[rules.cpu-ready-high]\nwarn = true", "warn = True"),
        ("[rules.cpu-ready-high]\nwarn = nan", "warn = nan"),
        ("[rules.cpu-ready-high]\nwarn = -inf", "warn = -inf"),
        ("[rules.cpu-ready-high]\nwarn = 1e300", "warn = 1e"),
        (f"[rules.cpu-ready-high]\nwarn = 1{'0' * 400}", "warn = 1000"),
        (f"[rules.cpu-ready-high]\nwarn = {'9' * 5000}", "unreadable"),
        ("[rules.cpu-ready-high]\nwarn = 2024-02-30", "unreadable"),
        (f"a = {'[' * 100_000}", "unreadable"),
        ("rules = 5", "rules = 5"),
        ("clock_offsets = [1]", "clock_offsets = "),
        ('[clock_offsets]\n"a.csv" = 1e12', "a.csv = 1e"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "leadline.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=found):
        load_profile(path, KNOWN)
