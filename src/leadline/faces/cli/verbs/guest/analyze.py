"""`leadline guest analyze`: how each item of a template stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leadline.faces.cli.options import Json
from leadline.faces.cli.verbs.guest._options import Root, Template, Values, values_of

if TYPE_CHECKING:
    from rich.console import Console

    from leadline.core.contracts.target import ItemStatus

EPILOG = """\
Examples:

  leadline guest analyze

  leadline guest analyze --template server --json
"""


def command(
    *, template: Template = "postgresql", values: Values = None, root: Root = Path("/"), json: Json = False
) -> None:
    """Say how each item of a template stands on this Linux guest, and why it matters."""
    from leadline.app.optimising import analyze
    from leadline.faces.cli.output import console, print_json

    statuses = analyze(template, root, values_of(values))
    if json:
        print_json(
            "leadline.guest/1", template=template, root=str(root), items=[status.to_dict() for status in statuses]
        )
        return
    out = console()
    for status in statuses:
        _show(out, status)


def _show(out: Console, status: ItemStatus) -> None:
    from leadline.core.contracts.target import ItemState
    from leadline.faces.terminal import wrapped

    style = {ItemState.APPLIED: "green", ItemState.DIFFERS: "yellow", ItemState.WRITTEN: "cyan"}.get(
        status.state, "dim"
    )
    item = status.item
    optional = "" if item.default else " (optional: --take)"
    wrapped(out, f"{item.title}{optional}", f"{item.id:<16}{status.state.value:<22}", style=style)
    if item.asks is not None:
        wrapped(out, f"{status.current}. {item.reason} Source: {item.source}.", "   ")
    if status.state in (ItemState.DIFFERS, ItemState.WRITTEN):
        wrapped(out, f"now {status.current}, wanted {item.check['wanted']}", "   ")
        wrapped(out, f"{item.reason} Risk: {item.risk}. Source: {item.source}.", "   ")
