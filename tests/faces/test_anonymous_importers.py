"""Names in every field of every importer: none is left in anything that is made of an anonymised recording.

Which fields hold names is found by trying, not listed: every word of a recording that reaches the capture is replaced
by a sentinel, one at a time; where the recording is still read and the sentinel is in the capture, it is a name field.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any, cast

import pytest

from benches.fuzz_importers import all_seeds
from leadline.app.diagnose.diagnosing import diagnose, rule_modules
from leadline.app.read.importing import Imported, import_paths, importers_for, recognise
from leadline.core.contracts.discovery import unit_modules
from leadline.core.contracts.importer import Importer, Request
from leadline.core.io.parquet import save
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import LeadlineError
from leadline.faces.cli.guard import guarded_console
from leadline.faces.documents import diagnosis_document
from leadline.faces.report import write_report
from leadline.faces.report.anonymize import anonymized
from leadline.faces.sarif import sarif_document
from leadline.faces.terminal import show_diagnosis
from tests.faces.test_report import everything_in
from tests.importers.test_fuzz import IMPORTERS

MARK = "zqxvk"
NAMELESS = frozenset({"meminfo"})  # counters of the machine in a file of a given name
FIELDS_MAX = 24  # of a recording; the words that come first
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*[A-Za-z0-9]|[A-Za-z]")
FILE_MARK = f"Z{MARK[1:]}file"


def sentinel(index: int) -> str:
    return f"Z{MARK[1:]}{chr(97 + index // 26)}{chr(97 + index % 26)}"


def replaced(name: str, data: bytes, words: dict[str, str]) -> bytes:
    """A recording with whole words replaced, in every member of a workbook."""
    if name.endswith(".xlsx"):
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
            for member in old.namelist():
                own = old.read(member)
                is_text = "sharedStrings" in member or "worksheets" in member
                new.writestr(member, replaced("x", own, words) if is_text else own)
        return out.getvalue()
    if not words:
        return data
    text = data.decode("latin-1")
    pattern = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    return re.sub(rf"(?<![A-Za-z0-9_-])(?:{pattern})(?![A-Za-z0-9_-])", lambda m: words[m[0]], text).encode("latin-1")


def words_in(thing: Any) -> str:
    """Every string of a capture."""
    found: list[str] = []
    capture: Capture = thing
    for group in capture.groups:
        found += [group.metric, *map(str, group.entities)]
    for entity, facts in capture.inventory.facts.items():
        found += [str(entity), *(f"{name} {fact.value} {fact.source}" for name, fact in facts.items())]
    found += [str(result) for result in capture.results]
    found += [f"{source.host} {source.tool_version} {source.warnings}" for source in capture.sources]
    return "\n".join(found)


def read(folder: Path, name: str, data: bytes, importer: str) -> Capture | None:
    """What an importer makes of a recording; None when it is read no more."""
    path = folder / name
    path.write_bytes(data)
    source, unit = Source(str(path), path), cast("Importer", IMPORTERS[importer])
    known = recognise(source, importers_for(source))
    try:
        return unit.read(source, Request()) if known is not None and known[0] == importer else None
    except LeadlineError:
        return None


def with_sentinels(folder: Path, importer: str) -> tuple[str, bytes, list[str]]:
    """The seed of an importer with the most name fields, each with a sentinel of its own; and the sentinels."""
    best: tuple[str, bytes, list[str]] = ("", b"", [])
    for own, data in all_seeds()[importer][:2]:
        name = f"{FILE_MARK}-{own}"
        whole = read(folder, name, data, importer)
        if whole is None:  # some are known by their name alone
            name = own
            whole = read(folder, name, data, importer)
        assert whole is not None
        reached = words_in(whole)
        raw = " ".join(_xlsx_text(data)) if name.endswith(".xlsx") else data.decode("latin-1")
        raw = "" if name.endswith(".parquet") else raw
        words = [word for word in dict.fromkeys(_WORD.findall(raw)) if word in reached][:FIELDS_MAX]
        kept: dict[str, str] = {}
        waiting = [words[at : at + 8] for at in range(0, len(words), 8)]
        while waiting:
            some = waiting.pop(0)
            trial = {word: sentinel(len(kept) + index) for index, word in enumerate(some)}
            again = read(folder, name, replaced(name, data, {**kept, **trial}), importer)
            text = "" if again is None else words_in(again).casefold()
            good = all(mark.casefold() in text for mark in (*kept.values(), *trial.values()))
            if good:
                kept |= trial
            elif len(some) > 1:
                waiting[:0] = [some[: len(some) // 2], some[len(some) // 2 :]]
        if len(kept) >= len(best[2]):
            best = (name, replaced(name, data, kept), list(kept.values()))
    return best


def _xlsx_text(data: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        return [book.read(m).decode() for m in book.namelist() if "sharedStrings" in m or "worksheets" in m]


def outputs(imported: Imported, folder: Path) -> dict[str, str]:
    """Everything that is made of a recording when it is to be anonymous."""
    diagnosis = diagnose(imported.capture)
    masked, other, _ = anonymized(diagnosis, imported)
    terminal = io.StringIO()
    out = guarded_console(terminal, width=80, highlight=False, markup=False)
    show_diagnosis(out, masked, other.capture, everything=True)
    write_report(folder / "r.html", diagnosis, imported, anonymize=True)
    save(other.capture, folder / "c.parquet")
    saved = import_paths([folder / "c.parquet"]).capture
    return {
        "terminal": terminal.getvalue(),
        "json": json.dumps(diagnosis_document(masked, other), default=str),
        "html": everything_in(folder / "r.html"),
        "sarif": json.dumps(sarif_document(masked.findings, rule_modules()), default=str),
        "parquet": words_in(saved),
        "errors": "\n".join(map(str, other.left_out)) + "\n".join(other.unrecognised),
        "notebook": words_in(other.capture) + repr(masked),
    }


@pytest.mark.parametrize("importer", sorted(unit_modules("importer")))
def test_no_name_of_any_field_is_left(importer: str, tmp_path: Path) -> None:
    name, data, marks = with_sentinels(tmp_path, importer)
    (tmp_path / name).write_bytes(data)
    imported = import_paths([tmp_path / name])
    assert marks or name.startswith(FILE_MARK) or importer in NAMELESS
    marks = [*marks, FILE_MARK]
    assert all(mark.casefold() in words_in(imported.capture).casefold() for mark in marks[:-1])
    found = outputs(imported, tmp_path)
    left = {
        where: sorted({mark for mark in marks if mark.casefold() in text.casefold()}) for where, text in found.items()
    }
    assert {where: own for where, own in left.items() if own} == {}
