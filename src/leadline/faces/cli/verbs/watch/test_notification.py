"""`leadline watch test-notification`: try whether notices arrive."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from leadline.faces.cli.verbs.watch._common import Settings, settings_of

EPILOG = """\
Examples:

  leadline watch test-notification --settings watch.yaml

  leadline watch test-notification oncall
"""
TOOL_EXIT = 4


def command(
    receiver: Annotated[str, typer.Argument(help="One receiver; all of them when left out.")] = "",
    *,
    settings: Settings = None,
) -> None:
    """Send a test notice to who is told of incidents, and say who took it. Exit 4 when somebody did not."""
    from leadline.app.watch.telling import send_test
    from leadline.core.model.errors import UsageError

    chosen = settings_of(settings)
    names = [one.name for one in chosen.tell]
    if (receiver and receiver not in names) or not names:
        raise UsageError(
            f"receiver {receiver}" if receiver else "the settings",
            found="no such receiver" if names else "nobody who is told",
            expected=f"one of {', '.join(names)}" if names else "a list `tell` with receivers",
            advice="Add it to watch.yaml; docs/guides/watch.md shows how.",
        )
    failed = False
    for one in chosen.tell:
        if receiver in ("", one.name):
            error = send_test(one.receiver(), time.time_ns())
            failed = failed or bool(error)
            typer.echo(f"{one.name}: {error or 'took it'}", err=bool(error))
    if failed:
        raise typer.Exit(TOOL_EXIT)
