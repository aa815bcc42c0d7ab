"""`leadline guest reference`: what a Windows template says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.faces.cli.options import Json

if TYPE_CHECKING:
    from leadline.targets.guest_windows import WindowsItem

EPILOG = """\
Examples:

  leadline guest reference

  leadline guest reference windows-10-1809-1909

  leadline guest reference template.xml --json
"""


def command(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A template (XML or YAML), or a shipped one by name. [default: windows-database]", show_default=False
        ),
    ] = None,
    *,
    json: Json = False,
) -> None:
    """List the items of a Windows template: a shipped one, a saved one, or one of the OS Optimization Tool.

    Ids are what `leadline guest export` takes and leaves. Steps that cannot be undone are listed with the reason.
    """
    from leadline.app.optimising import reference
    from leadline.faces.cli.output import console, print_json
    from leadline.faces.terminal import wrapped

    name, items, left = reference(file)
    if json:
        print_json(
            "leadline.guest-reference/1",
            name=name,
            items=[{field: getattr(item, field) for field in item.__dataclass_fields__} for item in items],
            left=[{"groups": u.step.groups, "step": u.step.name, "why": u.why} for u in left],
        )
        return
    out = console()
    out.print(f"{name}: {len(items)} item(s), {len(left)} step(s) left out", markup=False)
    for item in items:
        wrapped(out, _line(item), f"{item.id}  ", style="" if item.default else "dim")
    for untaken in left:
        wrapped(out, f"{untaken.step.name}: {untaken.why}", "left out  ", style="yellow")


def _line(item: WindowsItem) -> str:
    place = f"{item.path}\\{item.name}" if item.path else item.name
    wanted = "removed" if item.kind == "remove-value" else item.value
    return f"{item.title}{'' if item.default else ' (optional)'}: {item.kind} {place} = {wanted}"
