"""The command line: verbs are found by file name, errors become one line and an exit status."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path
from typing import NoReturn

import typer

from leadline import __version__
from leadline.core.model.errors import LeadlineError
from leadline.core.system.interrupts import NOTHING, Interrupted
from leadline.core.system.secret import scrubbed, take_environment, take_words
from leadline.faces.cli.endings import INTERRUPTED, end_as_by_ctrl_c, ended_an_import, interrupted, unforeseen
from leadline.faces.cli.guard import guarded_streams
from leadline.faces.cli.lazy_verbs import verb_group
from leadline.faces.cli.streams import Stdout, drop_stdout, guard_stdout, stdout_error
from leadline.faces.cli.values import refuse_empty
from leadline.faces.visible import escaped_json, one_line

_EPILOG = """\
Examples:

  leadline diagnose esxtop.csv iostat.txt      why is it slow, is it the disk?

  leadline show capture.csv --metric cpu_ready_pct

  leadline explain cpu-ready-high
"""
_GUIDE = re.compile(r"\bdocs/guides/[a-z-]+\.md")
VERBS = "leadline.faces.cli.verbs"
_START = """\
Leadline finds out why a database is slow, from the recordings you have.

  leadline diagnose FILES...            why is it slow, is it the disk?
  leadline recorder linux > record.sh   a script that records where nothing
                                        can be installed
  leadline bench run postgresql-io --on FOLDER
                                        how fast is it, honestly?
  leadline simulate iops-cap            what if there were a limit, a queue,
                                        another host?
  leadline plan cpu --example           how to size it?
  leadline audit FILES...               how is it configured?

FILES are what esxtop, iostat, sar, fio, perfmon, PostgreSQL and many other
tools write: files, folders or archives.
All verbs: leadline --help. What each reads: leadline explain importers.
"""


def build_app() -> typer.Typer:
    """The command line with every verb of ``verbs/``: a file is a verb, a folder a group of them."""
    app = typer.Typer(
        name="leadline",
        cls=verb_group(VERBS),
        invoke_without_command=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help="Why is the database slow? Reads the recordings you have and brings up the evidence.",
        epilog=_EPILOG,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    )
    app.callback()(_options)
    return app


def _say_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"leadline {__version__}\n")
        raise typer.Exit


def _options(
    context: typer.Context,
    *,
    version: bool = typer.Option(
        False, "--version", "-V", help="Print the version and exit.", is_eager=True, callback=_say_version
    ),
) -> None:
    """Take what comes before a verb; without one say what there is to do."""
    if context.invoked_subcommand is None:
        sys.stdout.write(_START)


def run() -> NoReturn:
    """Entry point: passwords taken from sight, names that cannot harm a terminal; then the command."""
    end_as_by_ctrl_c()
    take_environment()
    take_words(sys.argv[1:])
    stdout = guard_stdout()
    with guarded_streams():
        _run(stdout)


def _run(stdout: Stdout | None) -> NoReturn:
    """Never a traceback for bad input, a closed pipe, a full disk, Ctrl-C or a fault of ours."""
    try:
        refuse_empty(sys.argv[1:])
        if _does_work(sys.argv[1:]):
            _remove_leftovers()
        code = build_app()(standalone_mode=False)
        sys.stdout.flush()
    except LeadlineError as error:
        _fail(error)
    except SystemExit:
        if stdout is not None and isinstance(stdout.failure, BrokenPipeError):  # rich ends a closed pipe so
            drop_stdout()
            sys.exit(0)
        raise
    except Interrupted as ended:
        interrupted(str(ended))
    except KeyboardInterrupt:
        interrupted(NOTHING)
    except BrokenPipeError:
        drop_stdout()  # the reader (head, less) has seen enough
        sys.exit(0)
    except Exception as error:
        if stdout is not None and stdout.failure is not None:
            drop_stdout()
            _fail(stdout_error(stdout.failure))
        _usage_or_unforeseen(error)
    if code == INTERRUPTED:  # Typer turns Ctrl-C outside a command into this status and says nothing
        interrupted(NOTHING)
    sys.exit(code if isinstance(code, int) else 0)


def _does_work(words: list[str]) -> bool:
    """Whether a verb is called, rather than help or the version."""
    return bool(words) and not words[0].startswith("-") and not {"--help", "-h"} & set(words)


def _remove_leftovers() -> None:
    """Remove what killed runs left, and say so."""
    from leadline.core.system.leftovers import remove_leftovers, removed_line

    removed = remove_leftovers()
    if removed:
        sys.stderr.write(f"{removed_line(removed)}\n")


def _fail(error: LeadlineError) -> NoReturn:
    if "--json" in sys.argv:
        with contextlib.suppress(OSError):
            sys.stdout.write(escaped_json({"schema": "leadline.error/1", "error": error.to_dict()}, indent=None) + "\n")
    try:
        sys.stdout.flush()
    except OSError:
        drop_stdout()
    sys.stderr.write(f"error: {_GUIDE.sub(_guide_shown, one_line(str(error)))}\n")
    sys.exit(error.exit_status)


def _guide_shown(named: re.Match[str]) -> str:
    """Return the name of a guide where it can be opened, elsewhere the command that prints it."""
    return named[0] if Path(named[0]).is_file() else f"`leadline explain {named[0]}`"


def _usage_or_unforeseen(error: Exception) -> NoReturn:
    if isinstance(error, ImportError):
        from leadline.core.system.extras import lacking

        missing = lacking(error)
        if missing is not None:
            _fail(missing)
    if not hasattr(error, "format_message"):
        if type(error).__name__ == "Abort" or ended_an_import(error):
            interrupted(NOTHING)
        unforeseen(error)
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{error.format_message()}\n")
        sys.exit(2)
    message = scrubbed(str(error.format_message())).rstrip(".").replace("\n", " ")
    context = getattr(error, "ctx", None)
    command = "leadline" if context is None else context.command_path
    sys.stderr.write(f"error: {message}. Try `{command} --help`.\n")
    sys.exit(getattr(error, "exit_code", 2))
