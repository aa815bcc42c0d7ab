"""Options the verbs of `leadline guest` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.core.model.errors import UsageError

Template = Annotated[str, typer.Option("--template", "-t", help="postgresql or server.")]
Root = Annotated[Path, typer.Option(help="Root folder: / or the tree of an image.")]
Take = Annotated[list[str] | None, typer.Option(help="Also take an optional item. Repeatable.", show_default=False)]
Leave = Annotated[list[str] | None, typer.Option(help="Leave an item out. Repeatable.", show_default=False)]
Values = Annotated[
    list[str] | None,
    typer.Option("--set", help="A value an item asks for, as huge_pages=4200. Repeatable.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="Take every optional item, too.")]


def values_of(texts: list[str] | None) -> dict[str, int]:
    """``NAME=NUMBER`` pairs as a mapping.

    Raises:
        UsageError: a pair has no name or no whole number.
    """
    values = {}
    for text in texts or []:
        name, _, number = text.partition("=")
        if not name or not (number.isascii() and number.isdigit()):
            raise UsageError("--set", found=text, expected="NAME=NUMBER", advice="For example huge_pages=4200")
        values[name] = int(number)
    return values
