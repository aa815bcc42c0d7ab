"""Options several verbs share, and the reading they have in common."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.core.model.errors import UsageError
from leadline.core.model.numbers import OFFSET_S_MAX
from leadline.core.model.vocabulary import Severity

if TYPE_CHECKING:
    from leadline.app.read.importing import Imported
    from leadline.app.read.stored import StoredPart
    from leadline.core.model.finding import Diagnosis
    from leadline.core.model.profile import Profile
    from leadline.faces.theoretical import Theoretical

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATHS",
        help="Files, folders, archives (gz, xz, zst, zip, tar); - for standard input; store: for what watch keeps.",
        show_default=False,
    ),
]
STORE_PREFIX = "store:"
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")]
CaFile = Annotated[
    Path | None,
    typer.Option(
        "--ca-file",
        help="Certificates of the authority to trust alone, PEM. [default: the machine's]",
        show_default=False,
    ),
]
Html = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a report in one file, for browser, paper or mail.", show_default=False),
]
ProfileFile = Annotated[
    Path | None,
    typer.Option(
        "--profile", help="Your own limits. [default: leadline.toml here, if there is one]", show_default=False
    ),
]
Most = Annotated[
    str | None,
    typer.Option(
        "--theoretical", help="Devices x rated IOPS or GB/s, per host: 24x550000, 8x3.2GB/s.", show_default=False
    ),
]
Since = Annotated[
    str | None,
    typer.Option("--from", help="Of a store: since when, as 14:00 or 20m. [default: 1h]", show_default=False),
]
Until = Annotated[
    str | None, typer.Option("--to", help="Of a store: until when. [default: its newest sample]", show_default=False)
]
OfMachine = Annotated[
    str | None, typer.Option("--vm", help="Of a store: one VM, guest or database, or db*.", show_default=False)
]
Timezone = Annotated[
    str | None,
    typer.Option("--timezone", help="Zone of times printed without one, e.g. Europe/Berlin.", show_default=False),
]
Date = Annotated[str | None, typer.Option("--date", help="Date of times printed without one.", show_default=False)]
MapFile = Annotated[
    Path | None,
    typer.Option("--map", help="What the columns of other tables mean; see --suggest-map.", show_default=False),
]
Offsets = Annotated[
    list[str] | None,
    typer.Option(
        "--clock-offset", help="Put a source's clock right: FILE=SECONDS to add. Repeatable.", show_default=False
    ),
]


def said_report(html: Path, size_bytes: int, *, quiet: bool) -> None:
    """Tell where a report was written."""
    if not quiet:
        sys.stderr.write(f"report: {html} ({size_bytes / 1e6:.1f} MB)\n")


class FailOn(StrEnum):
    """Severities a build can fail on."""

    NEVER = "never"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


def fails(diagnosis: Diagnosis, fail_on: FailOn) -> bool:
    """Whether a finding that no other explains is at least as severe as asked."""
    if fail_on is FailOn.NEVER:
        return False
    limit = Severity[fail_on.value.upper()]
    return any(finding.severity >= limit and not finding.is_explained for finding in diagnosis.findings)


def profile_of(path: Path | None) -> Profile:
    """The profile named, else ``leadline.toml`` of the working directory, else the defaults."""
    from leadline.core.contracts.rule import rule_metas
    from leadline.core.model.profile import Profile, load_profile

    profile_path = path or (Path("leadline.toml") if Path("leadline.toml").is_file() else None)
    if profile_path is None:
        return Profile()
    known = {name: frozenset(meta.thresholds) for name, meta in rule_metas().items()}
    return load_profile(profile_path, known)


def offsets_of(texts: list[str] | None) -> dict[str, float]:
    """``FILE=SECONDS`` pairs as a mapping.

    Raises:
        UsageError: a pair has no ``=`` or no number, or one no clock is wrong by.
    """
    offsets = {}
    for text in texts or []:
        name, _, seconds = text.rpartition("=")
        try:
            offsets[name] = float(seconds)
            if not abs(offsets[name]) <= OFFSET_S_MAX:
                name = ""
        except ValueError:
            name = ""
        if not name:
            raise UsageError(
                "--clock-offset",
                found=text,
                expected="FILE=SECONDS, at most a century",
                advice="For example esxtop.csv=-3.5",
            )
    return offsets


def read_paths(
    ctx: typer.Context,
    paths: list[Path],
    *,
    metrics: frozenset[str] | None = None,
    timezone: str | None = None,
    date: str | None = None,
    offsets: dict[str, float] | None = None,
    map_file: Path | None = None,
    quiet: bool = False,
    notes: str | None = "leadline import lists them",
    else_all: bool = False,
    stored: StoredPart | None = None,
) -> Imported:
    """Import as `import_paths` does, with progress on stderr; say the notes once the verb has ended.

    ``notes`` is what lists all of them: then the gravest and the number of the others are said. Empty: all are said;
    None: none are.
    """
    from leadline.app.read.importing import import_paths
    from leadline.core.contracts.importer import Request
    from leadline.faces.cli.output import reading_progress, say_sources

    request = Request(metrics=metrics, timezone=timezone, date=date, map_file=map_file)
    stores = [path for path in paths if str(path).startswith(STORE_PREFIX)]
    if stores:
        from leadline.app.read.stored import import_with_stores

        imported = import_with_stores(paths, stored, request, offsets)
    elif stored is not None and not stored.is_whole:
        raise UsageError(
            "--from, --to and --vm",
            found="no store among the recordings",
            expected="store: or store:FOLDER",
            advice="Of other recordings choose the time with --incident.",
        )
    else:
        with reading_progress(quiet=quiet) as progress:
            imported = import_paths(paths, request, clock_offsets=offsets, progress=progress, else_all=else_all)
    if notes is not None:
        say = partial(say_sources, imported, quiet=quiet, everything=not notes, lists=notes)
        ctx.call_on_close(say)
    return imported


def stored_part(since: str | None, until: str | None, vm: str | None, timezone: str | None = None) -> StoredPart | None:
    """Which samples of a store are wanted; None where nothing was asked for."""
    if since is None and until is None and vm is None:
        return None
    from leadline.app.read.stored import StoredPart

    return StoredPart(since, until, vm, timezone)


def most_of(text: str | None) -> Theoretical | None:
    """What devices could do together.

    Raises:
        UsageError: the text is nothing such.
    """
    from leadline.faces.theoretical import parse_theoretical

    if text is None:
        return None
    try:
        return parse_theoretical(text)
    except ValueError as error:
        raise UsageError(
            "--theoretical",
            found=str(error),
            expected="devices x rated value",
            advice="For example 24x550000 or 8x3.2GB/s, or 24x550000/2 where protection halves it.",
        ) from error
