"""Names that attack a terminal: whatever they hold, it is shown and not obeyed."""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import Imported
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.cli import main
from leadline.faces.cli.guard import Guarded, guarded_console
from leadline.faces.report import write_report
from leadline.faces.visible import escaped_json, one_line, visible
from tests.conftest import ROOT
from tests.faces.report_samples import renamed
from tests.faces.test_report import everything_in

MARKS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\u200c\u200d\u2060\ufeff\u00ad"
CONTROLS = "".join(map(chr, (*range(9), *range(11, 32), *range(127, 160))))
ATTACK = f"vm\x1b[2J\x1b]0;owned\x07\x1b[31mred\x9b1m\r\x08\x7f{MARKS}\nVerdict: all is well\u2028end"
OBEYED = re.compile(f"[{re.escape(MARKS + CONTROLS)}\u2028\u2029\udc80-\udcff]")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@given(st.text(st.characters(codec=None)))
def test_nothing_that_is_obeyed_is_left(text: str) -> None:
    shown = visible(text)
    assert len(shown) == len(text)  # a mark of one cell each
    assert OBEYED.search(shown) is None
    assert not {unicodedata.category(letter) for letter in shown} & {"Cs", "Zl", "Zp"}
    assert {letter for letter in shown if unicodedata.category(letter) == "Cc"} <= {"\t", "\n"}
    assert "\n" not in one_line(text)


def test_what_people_write_stays() -> None:
    for text in ("db01", "Büro-Ø 日本 мир", "a\tb\n", "50 % of 1,000 µs · ≤ 2 ms → ok", "𝓪 é"):
        assert visible(text) == text


def test_json_is_the_same_data_and_nothing_is_obeyed() -> None:
    text = escaped_json({"name": ATTACK, ATTACK: [ATTACK + "\udc80"]})
    assert OBEYED.search(text.replace("\n", "")) is None
    assert json.loads(text) == {"name": ATTACK, ATTACK: [ATTACK + "\udc80"]}


def test_a_console_keeps_its_own_styles_only() -> None:
    stream = io.StringIO()
    out = guarded_console(
        stream, force_terminal=True, color_system="standard", width=200, markup=False, highlight=False
    )
    table = Table("name")
    table.add_row(ATTACK)
    out.print(Text(ATTACK, style="bold red"), "[/x][bold]" + ATTACK, table)
    text = stream.getvalue()
    assert "\x1b[1;31m" in text
    assert OBEYED.search(_STYLE.sub("", text).replace("\n", "")) is None
    assert "\x1b[31mred" not in text
    assert "[/x][bold]vm" in text


def test_a_stream_of_few_letters_is_written_to() -> None:
    raw = io.BytesIO()
    stream = Guarded(io.TextIOWrapper(raw, encoding="ascii"))
    stream.write("µ\udc80\x1b\n")
    stream.flush()
    assert raw.getvalue() == b"????"[:3] + b"\n"


def test_an_entity_is_one_line() -> None:
    assert Entity(EntityKind.VM, "a\r\nb\u2028c").name == "a␤b␤c"
    assert Entity(EntityKind.VM, "a\u202eb").name == "a\u202eb"  # data stays data


@pytest.fixture
def attacks(tmp_path: Path) -> Path:
    """A folder in which files, members and what they name attack; as far as a file name can."""
    source = (ROOT / "tests/importers/seeds/esxtop-tiny.csv").read_bytes()
    (tmp_path / "in").mkdir()
    name = ATTACK.replace("/", "_")
    (tmp_path / "in" / f"{name}.csv").write_bytes(source)
    (tmp_path / "in" / f"{name}.bin").write_bytes(b"\x00\x01nothing")
    facts = {"vms": {ATTACK: {"vcpu_count": 4}}}
    (tmp_path / "in" / "inventory.yaml").write_text(f"hosts:\n  {json.dumps(ATTACK)}:\n    core_count: 8\n")
    (tmp_path / "in" / "facts.json").write_text(json.dumps(facts))
    with tarfile.open(tmp_path / "in" / "a.tar", "w") as archive:
        archive.add(tmp_path / "in" / f"{name}.csv", f"{name}-member.csv")
        archive.add(tmp_path / "in" / f"{name}.bin", f"{name}-member.bin")
    return tmp_path / "in"


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", "IN"),
        ("diagnose", "IN", "--all"),
        ("diagnose", "IN", "--json"),
        ("diagnose", "IN", "--anonymize"),
        ("audit", "IN"),
        ("audit", "IN", "--json"),
        ("audit", "IN", "--allocations"),
        ("guide", "slow-disk", "IN"),
        ("guide", ATTACK),
        ("show", "IN"),
        ("import", "IN", "-o", "x.parquet"),
        ("diagnose", ATTACK),
        ("diagnose", ATTACK, "--json"),
        (ATTACK,),
        ("explain", ATTACK),
        ("runs", "show", ATTACK),
        ("bench", "run", ATTACK, "--on", ATTACK),
        ("bench", "run", "hci-4k-read", "--on", ATTACK, "--yes"),
        ("plan", ATTACK),
    ],
    ids=lambda words: "-".join(words)[:30].encode("unicode_escape").decode(),
)
def test_no_verb_lets_a_name_through(
    words: tuple[str, ...],
    attacks: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "argv", ["leadline", *(str(attacks) if word == "IN" else word for word in words)])
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(SystemExit):
        main.run()
    printed = capfd.readouterr()
    for text in (printed.out, printed.err):
        assert OBEYED.findall(text.replace("\n", "")) == []
        if "IN" in words:  # what the user typed may have lines of its own
            assert not any(line.startswith("Verdict: all is well") for line in text.splitlines())
    if "--json" in words:
        json.loads(printed.out)


def test_a_page_is_not_turned_round(generated: tuple[object, Imported], tmp_path: Path) -> None:
    capture = renamed(generated[1].capture, "vm002", "db\u202e\u2066lufriup\u200f")
    write_report(tmp_path / "r.html", diagnose(capture), Imported(capture, unrecognised=[f"x{MARKS}.txt"]))
    text = everything_in(tmp_path / "r.html")
    assert "lufriup" in text
    assert set(text) & set(MARKS) == set()
    assert r"\u202e" not in text
