"""`leadline guest apply`: print the plan, ask, write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from leadline.faces.cli.consent import Yes, agree
from leadline.faces.cli.options import Json
from leadline.faces.cli.verbs.guest._options import All, Leave, Root, Take, Template, Values, values_of

if TYPE_CHECKING:
    from leadline.core.contracts.target import FileChange, Item

EPILOG = """\
Examples:

  leadline guest apply --root image --yes

  leadline guest apply --take huge-pages --set huge_pages=4200 --root image --yes

  leadline guest apply --template server --all --leave no-apt-timers --root image --yes
"""


def command(
    *,
    template: Template = "postgresql",
    take: Take = None,
    leave: Leave = None,
    every: All = False,
    values: Values = None,
    root: Root = Path("/"),
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Print what would be written, ask, and write it.

    Only drop-in files of Leadline's own are written, after a journal of what was there; nothing is run: the commands
    that make the files effective are printed.
    """
    from leadline.app.optimising import apply, items_of, plan
    from leadline.faces.cli.output import print_json

    items = items_of(template, take or [], leave or [], every=every, values=values_of(values))
    changes = plan(items, root)
    agree("guest apply", _plan_lines(changes, items, root), yes=yes or not changes, quiet=json)
    entry = apply(template, items, root)
    activate = list(dict.fromkeys(i.activate for i in items if {c.path for c in i.files} & {c.path for c in changes}))
    if json:
        print_json("leadline.guest/1", applied=None if entry is None else entry.to_dict(), activate=activate)
    elif entry is not None:
        typer.echo(f"written; take it back with: leadline guest revert {entry.id} --root {root}")
        typer.echo("To make it effective now:")
        for line in activate:
            typer.echo(f"  {line}")


def _plan_lines(changes: list[FileChange], items: list[Item], root: Path) -> Iterator[str]:
    if not changes:
        yield "Nothing to write: every item is there or not applicable."
        return
    yield f"Plan for {root}:"
    titles = {change.path: item for item in items for change in item.files}
    for change in changes:
        item = titles[change.path]
        yield f"\n{change.path}   # {item.title}"
        body = f"-> {change.link}" if change.link is not None else (change.content or "").rstrip()
        yield from (f"  {line}" for line in body.splitlines())
        yield f"  why: {item.reason}\n  risk: {item.risk}"
