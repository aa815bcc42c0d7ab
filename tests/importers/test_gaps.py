"""Pauses of every length in the recordings of every importer: importing and diagnosing them ends in a known status.

A pause is made in two ways: rows are left out of the middle, so that it is shorter than, as long as, or much longer
than what was recorded before and after it; and the times behind the middle are moved on.
"""

from __future__ import annotations

import pkgutil
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from benches.fuzz_importers import all_seeds
from leadline.core.contracts.discovery import load_units
from leadline.core.io.source import is_text
from leadline.generators import faults
from tests.command_line import leadline

SEEDS = all_seeds()
FAULTS = sorted(found.name.replace("_", "-") for found in pkgutil.iter_modules(faults.__path__))
KNOWN = {0, 1, 2, 3, 4}
SHARES = (0.2, 1 / 3, 0.8)  # of the rows that are left out: the pause against each stretch is 1:2, 1:1 and 8:1
MOVES_S = (7, 600, 40 * 86_400)
BINARY = {"capture-file", "rvtools"}
FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%m/%d/%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%H:%M:%S")
_TIME = re.compile(
    r"\b(?:(?:\d{4}-\d\d-\d\d[ T]|\d\d/\d\d/\d{4} |\d{4}/\d\d/\d\d )?\d\d:\d\d:\d\d|1[67]\d{8}(?:\d{9}|\d{6}|\d{3})?)\b"
)


def without_rows(text: str, share: float) -> str:
    """A text without this share of its reports (between blank lines) or, where it has few of them, of its lines."""
    separator = "\n\n" if text.count("\n\n") > 4 else "\n"
    head, *rows = text.rstrip("\n").split(separator)
    kept = (len(rows) - round(share * len(rows))) // 2
    return separator.join([head, *rows[:kept], *rows[len(rows) - kept :]]) + "\n"


def moved_on(text: str, seconds: int) -> str:
    """A text whose times in its second half are later."""
    half = text.find("\n", len(text) // 2) if "\n" in text[len(text) // 2 :] else len(text) // 2
    return text[:half] + moved_all(text[half:], seconds)


def moved_all(text: str, seconds: int) -> str:
    """A text whose times are all later."""
    return _TIME.sub(lambda match: later(match[0], seconds), text)


def later(written: str, seconds: int) -> str:
    """A time, seconds later, as it was written."""
    if written.isdigit():
        return str(int(written) + seconds * 10 ** (len(written) - 10))
    for form in FORMS:
        try:
            return (datetime.strptime(written, form) + timedelta(seconds=seconds)).strftime(form)  # noqa: DTZ007
        except ValueError:
            continue
    return written


def test_pauses_are_made() -> None:
    text = "time\n" + "".join(f"2026-11-20 08:00:0{second}\n" for second in range(9))
    assert without_rows(text, 1 / 3).splitlines()[3:5] == ["2026-11-20 08:00:02", "2026-11-20 08:00:06"]
    assert moved_on(text, 600).splitlines()[-1] == "2026-11-20 08:10:08"
    assert later("1763625600123", 7) == "1763625607123"
    assert later("11/30/2026 23:59:59", 600) == "12/01/2026 00:09:59"
    assert later("23:59:59", 7) == "00:00:06"


def ends_known(path: Path) -> None:
    """Import and diagnose a file; both end in a status that is documented, with one line of error at most."""
    for verb in ("import", "diagnose"):
        done = leadline(verb, path)
        assert done.returncode in KNOWN, f"{verb} ended with {done.returncode}: {done.stderr}"


@pytest.mark.parametrize("name", sorted(set(load_units("importer")) - BINARY))
def test_a_pause_in_a_recording_ends_in_a_known_status(name: str, tmp_path: Path) -> None:
    file_name, content = max(SEEDS[name], key=lambda seed: len(seed[1]))
    text = content.decode("utf-8", errors="surrogateescape")
    damaged = dict.fromkeys([*(without_rows(text, s) for s in SHARES), *(moved_on(text, s) for s in MOVES_S)])
    for number, changed in enumerate(damaged):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / file_name).write_bytes(changed.encode("utf-8", errors="surrogateescape"))
        ends_known(folder / file_name)


def test_what_is_no_text_is_named() -> None:
    assert {name for name, seeds in SEEDS.items() if not any(is_text(content) for _, content in seeds)} == BINARY


@pytest.mark.parametrize("fault", FAULTS)
def test_a_pause_in_a_capture_with_a_fault_is_diagnosed(fault: str, tmp_path: Path) -> None:
    whole = tmp_path / "whole.csv"
    words = ["--vms", "2", "--vcpus", "2", "--luns", "2", "--minutes", "10", "--interval", "10", "--fault", fault]
    assert leadline("generate", whole, *words, "-q").returncode == 0
    text = whole.read_text(encoding="utf-8")
    for share in SHARES:
        path = tmp_path / f"{share:.1f}.csv"
        path.write_text(without_rows(text, share), encoding="utf-8")
        done = leadline("diagnose", path)
        assert done.returncode in {0, 1}, f"{share}: {done.stderr}"
        assert "Charts: --html" in done.stdout
