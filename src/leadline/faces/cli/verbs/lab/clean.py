"""`leadline lab clean`: remove what killed labs left behind."""

from __future__ import annotations

from typing import Annotated

import typer

EPILOG = """\
Examples:

  XDG_CACHE_HOME=cache leadline lab clean
"""


def command(
    *, images: Annotated[bool, typer.Option("--images", help="Also the guests' root image; it is built again.")] = False
) -> None:
    """End guests whose lab is gone and remove their files; labs that run are left alone."""
    from leadline.lab.folders import clean, labs
    from leadline.lab.image import cache_folder

    done = clean()
    if images and not any(lab.is_running for lab in labs()):
        for path in cache_folder().glob("root-*.img"):
            path.unlink()
            done.append(f"removed {path}")
    for line in done or ["Nothing to clean."]:
        typer.echo(line)
