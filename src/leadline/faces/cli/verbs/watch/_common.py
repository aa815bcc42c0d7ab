"""What the verbs of a watch share: which settings, whose store, how an incident is printed."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from leadline.app.watch.settings import WatchSettings
    from leadline.stores.incidents import IncidentStore

Settings = Annotated[
    Path | None,
    typer.Option(
        "--settings", "-s", help="Settings file. [default: watch.yaml here, else the user's]", show_default=False
    ),
]
_STYLES = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan", "info": "dim"}


def settings_of(path: Path | None) -> WatchSettings:
    """The settings of a file, or of the usual one."""
    from leadline.app.watch.settings import read_settings, settings_path
    from leadline.core.model.errors import UsageError

    chosen = path or settings_path()
    if path is None and not chosen.exists():
        raise UsageError(
            str(chosen),
            found="no settings of a watch",
            expected="a file that says what to watch",
            advice="Write one with: leadline watch init",
        )
    return read_settings(chosen)


def incidents_of(path: Path | None) -> IncidentStore:
    """The incidents that the watch of these settings keeps."""
    from leadline.stores.incidents import IncidentStore

    return IncidentStore(settings_of(path).store.path())


def author() -> str:
    """Who says something of an incident: the user of this process."""
    return getpass.getuser()


def show_incidents(out: Console, incidents: list[dict[str, Any]], nothing: str) -> None:
    """A line for each incident: since when, how bad, what."""
    from rich.text import Text

    if not incidents:
        out.print(Text(nothing))
    for one in incidents:
        until = "" if one["closed"] is None else f" to {one['closed'][11:19]}"
        who = f"  ({one['taken_by']})" if one["taken_by"] else ""
        line = Text(f"{one['opened'][:19].replace('T', ' ')}{until}  ")
        line.append(one["severity"], style=_STYLES.get(one["severity"], ""))
        line.append(f"  {one['title']}{who}  [{one['id']}]")
        out.print(line)
