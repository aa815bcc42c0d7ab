"""Use case: a script that records on a machine where nothing can be installed.

A part per target lies in ``leadline/recorders``; the frame of its language runs them. A part begins with comments that
say what it is for, what it collects and what it was tried on; adding a part edits no list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from leadline import __version__
from leadline.core.model.errors import UsageError

_FIELD = re.compile(r"^# (Target|Collects|Queries|Tried): (.+)$", re.MULTILINE)
_ENDINGS = (".sh", ".ps1")
_WIDTH = 118
MINUTES_MAX, MAX_MIB_MAX = 24 * 60, 100_000


@dataclass(frozen=True, slots=True)
class RecorderPart:
    """What records one target.

    Attributes:
        name: of the target: linux, postgresql.
        ending: of its file, which names its language.
        target: what it records, in words.
        collects: what it collects, a line each.
        queries: what it collects on request, which may hold texts of statements.
        tried: what it was tried on.
        text: of the script.
    """

    name: str
    ending: str
    target: str
    collects: tuple[str, ...]
    queries: tuple[str, ...]
    tried: str
    text: str


@dataclass(frozen=True, slots=True)
class RecorderAsk:
    """How long it records, how often, how much, and whether texts of statements are wanted."""

    minutes: int = 10
    interval_s: int = 1
    max_mib: int = 200
    with_queries: bool = False


def parts() -> dict[str, RecorderPart]:
    """The targets there are, by name."""
    return {part.name: part for part in sorted(_parts(), key=lambda part: part.name)}


def _parts() -> Iterator[RecorderPart]:
    for entry in resources.files("leadline.recorders").iterdir():
        name, dot, ending = entry.name.rpartition(".")
        if name.startswith("_") or dot + ending not in _ENDINGS:
            continue
        head, _, text = entry.read_text(encoding="utf-8").partition("\n\n")
        fields: dict[str, list[str]] = {}
        for match in _FIELD.finditer(head):
            fields.setdefault(match[1], []).append(match[2])
        yield RecorderPart(
            name,
            dot + ending,
            fields["Target"][0],
            tuple(fields["Collects"]),
            tuple(fields.get("Queries", ())),
            fields["Tried"][0],
            text,
        )


def script(names: Sequence[str], asked: RecorderAsk) -> str:
    """The script that records the targets.

    Raises:
        UsageError: there is no such target, or they are of different systems.
    """
    known = parts()
    for name in names:
        if name not in known:
            raise UsageError(
                name,
                found="no such target",
                expected=f"one of {', '.join(known)}",
                advice="leadline recorder lists them.",
            )
    chosen = [known[name] for name in dict.fromkeys(names)]
    if len({part.ending for part in chosen}) > 1:
        raise UsageError(
            " ".join(names),
            found="targets of Windows and of others in one script",
            expected="targets of one system",
            advice="Print a script for each.",
        )
    frame = (resources.files("leadline.recorders") / f"_frame{chosen[0].ending}").read_text(encoding="utf-8")
    queries = [line for part in chosen for line in part.queries] if asked.with_queries else []
    lists = [line for part in chosen for line in part.collects]
    text = "\n".join(part.text.rstrip("\n") for part in chosen)
    is_shell = chosen[0].ending == ".sh"
    filled = {
        "PARTS": text if is_shell else "\n".join(f"    {line}".rstrip() for line in text.splitlines()),
        "BEGIN": "\n".join(f"{part.name}_begin" for part in chosen),
        "END": "\n".join(f"    {part.name}_end" for part in chosen if f"{part.name}_end()" in part.text),
        "TARGETS": ", ".join(part.name for part in chosen),
        "VERSION": __version__,
        "COLLECTS": "\n".join(f"#   - {line}" for line in (*lists, *queries)),
        "UNLESS_QUERIES": "" if queries else ", texts of statements",
        "TRIED": "; ".join(dict.fromkeys(f"{part.name}: {part.tried}" for part in chosen)),
        "MINUTES": str(asked.minutes),
        "INTERVAL": str(asked.interval_s),
        "MAX_MIB": str(asked.max_mib),
        "WITH_QUERIES": "yes" if asked.with_queries else "",
    }
    # Parts hold placeholders, too: they are put in first, then all placeholders are filled.
    for place, value in filled.items():
        frame = frame.replace(f"@{place}@", value)
    return frame
