"""Options the verbs of `leadline guest` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Template = Annotated[str, typer.Option("--template", "-t", help="postgresql or server.")]
Root = Annotated[Path, typer.Option(help="Root folder: / or the tree of an image.")]
Take = Annotated[list[str] | None, typer.Option(help="Also take an optional item. Repeatable.", show_default=False)]
Leave = Annotated[list[str] | None, typer.Option(help="Leave an item out. Repeatable.", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="Take every optional item, too.")]
