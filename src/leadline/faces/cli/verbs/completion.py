"""`leadline completion`: a script by which a shell completes verbs and options."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from leadline.faces.cli.options import Json

QUESTION = "leadline"
EPILOG = """\
Examples:

  leadline completion bash

  leadline completion zsh

  leadline completion fish --json
"""


class Shell(StrEnum):
    """The shells that have a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def command(
    shell: Annotated[Shell, typer.Argument(help="Your shell.", show_default=False)],
    *,
    json: Json = False,
) -> None:
    """Print the script by which your shell completes verbs, options and files.

    Its first lines say where to put it.
    """
    from leadline.faces.cli.completion import SCRIPTS, verb_words
    from leadline.faces.cli.output import print_json

    script = SCRIPTS[shell.value](verb_words())
    if json:
        print_json("leadline.completion/1", shell=shell.value, script=script)
        return
    sys.stdout.write(script)
