"""The command line: verbs are found by file name, errors become one line and an exit status."""

from __future__ import annotations

import os
import sys
from importlib import import_module, resources
from typing import NoReturn

import typer

from leadline import __version__
from leadline.core.errors import LeadlineError

_EPILOG = """\
Examples:

  leadline diagnose esxtop.csv iostat.txt      why is it slow, is it the disk?

  leadline show capture.csv --metric cpu_ready_pct

  leadline explain cpu-ready-high
"""
VERBS = "leadline.faces.cli.verbs"
INTERRUPTED = 130  # as shells report a program ended by Ctrl-C


def build_app() -> typer.Typer:
    """The command line with every verb of ``verbs/``: a file is a verb, a folder a group of them."""
    app = typer.Typer(
        name="leadline",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help="Why is the database slow? Reads the recordings you have and brings up the evidence.",
        epilog=_EPILOG,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    )
    app.callback()(_options)
    _add_verbs(app, VERBS)
    return app


def _add_verbs(app: typer.Typer, package: str) -> None:
    for entry in sorted(resources.files(package).iterdir(), key=lambda found: found.name):
        stem = entry.name.removesuffix(".py")
        if stem.startswith(("_", ".")) or not (entry.is_dir() or entry.name.endswith(".py")):
            continue
        module = import_module(f"{package}.{stem}")
        name = stem.rstrip("_").replace("_", "-")
        if entry.is_dir():
            group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=module.__doc__, epilog=module.EPILOG)
            _add_verbs(group, f"{package}.{stem}")
            app.add_typer(group, name=name)
        else:
            app.command(name, epilog=module.EPILOG)(module.command)


def _options(
    *,
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        sys.stdout.write(f"leadline {__version__}\n")
        raise typer.Exit


def run() -> NoReturn:
    """Entry point: never a traceback for bad input, a closed pipe or Ctrl-C."""
    try:
        code = build_app()(standalone_mode=False)
        sys.stdout.flush()
    except LeadlineError as error:
        _fail(error)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was left behind\n")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Point stdout elsewhere so that the exit flush does not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        _usage_or_raise(error)
    if code == INTERRUPTED:  # Typer turns Ctrl-C into this status and says nothing
        sys.stderr.write("interrupted; nothing was left behind\n")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(error: LeadlineError) -> NoReturn:
    if "--json" in sys.argv:
        import json

        sys.stdout.write(json.dumps({"schema": "leadline.error/1", "error": error.to_dict()}) + "\n")
    sys.stderr.write(f"error: {error}\n")
    sys.exit(error.exit_status)


def _usage_or_raise(error: Exception) -> NoReturn:
    if not hasattr(error, "format_message"):
        if type(error).__name__ == "Abort":
            sys.stderr.write("interrupted; nothing was left behind\n")
            sys.exit(INTERRUPTED)
        raise error
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{error.format_message()}\n")
        sys.exit(2)
    message = str(error.format_message()).rstrip(".").replace("\n", " ")
    context = getattr(error, "ctx", None)
    command = "leadline" if context is None else context.command_path
    sys.stderr.write(f"error: {message}. Try `{command} --help`.\n")
    sys.exit(getattr(error, "exit_code", 2))
