"""`leadline guest`: optimisation of a Linux guest, with a way back."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.options import Json

if TYPE_CHECKING:
    from rich.console import Console

    from leadline.core.target import FileChange, Item, ItemStatus

EPILOG = """\
Examples:

  leadline guest analyze

  leadline guest apply --template postgresql --take overcommit --root image --yes

  leadline guest history --root image

  leadline guest revert --root image
"""


class Action(StrEnum):
    """What to do."""

    ANALYZE = "analyze"
    APPLY = "apply"
    HISTORY = "history"
    REVERT = "revert"


def command(
    action: Annotated[Action, typer.Argument(help="analyze, apply, history or revert.")],
    entry: Annotated[str | None, typer.Argument(help="For revert: which; the last by default.")] = None,
    *,
    template: Annotated[str, typer.Option("--template", "-t", help="postgresql or server.")] = "postgresql",
    take: Annotated[list[str] | None, typer.Option(help="Also take an optional item. Repeatable.")] = None,
    leave: Annotated[list[str] | None, typer.Option(help="Leave an item out. Repeatable.")] = None,
    root: Annotated[Path, typer.Option(help="Root folder: / or the tree of an image.")] = Path("/"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Revert files that were changed since, too.")] = False,
    json: Json = False,
) -> None:
    """Optimise a Linux guest for a database, item by item, and take it back.

    `apply` prints its plan and asks; it writes drop-in files of its own and nothing else, keeps a journal, and runs
    nothing: the commands that make it effective are printed. `revert` restores every file exactly.
    """
    if action is Action.ANALYZE:
        _analyze(template, root, json=json)
    elif action is Action.APPLY:
        _apply(template, take or [], leave or [], root, yes=yes, json=json)
    elif action is Action.HISTORY:
        _history(root, json=json)
    else:
        _revert(root, entry, force=force, json=json)


def _analyze(template: str, root: Path, *, json: bool) -> None:
    from leadline.app.optimising import analyze
    from leadline.faces.cli.output import console, print_json

    found = analyze(template, root)
    if json:
        print_json("leadline.guest/1", template=template, root=str(root), items=[status.to_dict() for status in found])
        return
    out = console()
    for status in found:
        _show_status(out, status)


def _show_status(out: Console, status: ItemStatus) -> None:
    from leadline.core.target import ItemState
    from leadline.faces.terminal import wrapped

    style = {ItemState.APPLIED: "green", ItemState.DIFFERS: "yellow", ItemState.WRITTEN: "cyan"}.get(
        status.state, "dim"
    )
    item = status.item
    optional = "" if item.default else " (optional: --take)"
    wrapped(out, f"{item.title}{optional}", f"{item.id:<16}{status.state.value:<22}", style=style)
    if status.state in (ItemState.DIFFERS, ItemState.WRITTEN):
        wrapped(out, f"now {status.current}, wanted {item.check['wanted']}", "   ")
        wrapped(out, f"{item.reason} Risk: {item.risk}. Source: {item.source}.", "   ")


def _apply(template: str, take: list[str], leave: list[str], root: Path, *, yes: bool, json: bool) -> None:
    from leadline.app.optimising import apply, items_of, plan
    from leadline.core.errors import UsageError
    from leadline.faces.cli.output import print_json

    items = items_of(template, take, leave)
    changes = plan(items, root)
    if not json:
        _show_plan(changes, items, root)
    if changes and not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                "guest apply", found="nobody to ask", expected="--yes", advice="Look at the plan, then add it."
            )
        typer.confirm("Write these files?", abort=True)
    entry = apply(template, items, root)
    activate = list(dict.fromkeys(i.activate for i in items if {c.path for c in i.files} & {c.path for c in changes}))
    if json:
        print_json("leadline.guest/1", applied=None if entry is None else entry.to_dict(), activate=activate)
    elif entry is not None:
        typer.echo(f"written; take it back with: leadline guest revert {entry.id} --root {root}")
        typer.echo("To make it effective now:")
        for line in activate:
            typer.echo(f"  {line}")


def _show_plan(changes: list[FileChange], items: list[Item], root: Path) -> None:
    if not changes:
        typer.echo("Nothing to write: every item is there or not applicable.")
        return
    typer.echo(f"Plan for {root}:")
    titles = {change.path: item for item in items for change in item.files}
    for change in changes:
        item = titles[change.path]
        typer.echo(f"\n{change.path}   # {item.title}")
        body = f"-> {change.link}" if change.link is not None else (change.content or "").rstrip()
        for line in body.splitlines():
            typer.echo(f"  {line}")
        typer.echo(f"  why: {item.reason}\n  risk: {item.risk}")


def _history(root: Path, *, json: bool) -> None:
    from leadline.app.optimising import history
    from leadline.faces.cli.output import print_json

    entries = history(root)
    if json:
        print_json(
            "leadline.guest/1", history=[{**e.to_dict(), "files": [f["path"] for f in e.files]} for e in entries]
        )
        return
    for entry in entries:
        state = "reverted" if entry.reverted else "applied"
        typer.echo(f"{entry.id}  {entry.time}  {state:<9} {entry.template}: {', '.join(entry.items)}")
    if not entries:
        typer.echo("Nothing was applied here.")


def _revert(root: Path, entry: str | None, *, force: bool, json: bool) -> None:
    from leadline.app.optimising import revert
    from leadline.faces.cli.output import print_json

    reverted, left = revert(root, entry, force=force)
    if json:
        print_json("leadline.guest/1", reverted=reverted.id, left=left)
    else:
        for file in reverted.files:
            state = (
                "left: changed since" if file["path"] in left else "removed" if file["before"] is None else "restored"
            )
            typer.echo(f"{file['path']}: {state}")
        if left:
            typer.echo("Files somebody changed since were left; --force puts them back too.")
    if left:
        raise typer.Exit(1)
