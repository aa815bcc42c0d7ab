"""Consent: the plan is printed, then somebody says yes, or ``--yes`` did; the same for every verb that writes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Annotated

import typer

from leadline.core.model.errors import UsageError

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan alone.")]
Destroy = Annotated[
    str | None,
    typer.Option("--destroy-data", help="The very same target again: its data may go.", show_default=False),
]
DestroyEach = Annotated[
    list[str] | None,
    typer.Option("--destroy-data", help="The very same target again: its data may go. Repeatable.", show_default=False),
]


def show_plan(lines: Iterable[str], *, err: bool = True) -> None:
    """Print a plan: on stderr, since stdout is the result; a plan that was asked for alone is the result."""
    for line in lines:
        typer.echo(line, err=err)


def wanted(question: str, *, default: bool) -> bool:
    """Ask something that loses nothing either way, such as what a file is to say."""
    return bool(typer.confirm(question, default=default))


def agree(
    verb: str,
    plan: Iterable[str] | Callable[[], object],
    *,
    yes: bool,
    quiet: bool = False,
    question: str = "Go?",
) -> None:
    """Print what will be done and ask for it.

    Args:
        verb: for messages.
        plan: lines of the plan, or a function that prints it on stderr.
        yes: the user agreed beforehand: nothing is asked.
        quiet: with ``yes``, the plan is not printed.
        question: what is asked.

    Raises:
        UsageError: there is nobody to ask.
        Abort: the answer is no.
    """
    if not (quiet and yes):
        if callable(plan):
            plan()
        else:
            show_plan(plan)
    require_answer(verb, yes=yes)
    ask(question, yes=yes)


def require_answer(verb: str, *, yes: bool) -> None:
    """Refuse to begin when a question will come that nobody can answer.

    Raises:
        UsageError: there is nobody to ask.
    """
    if not yes and not sys.stdin.isatty():
        raise UsageError(verb, found="nobody to ask", expected="--yes", advice="Look at the plan, then add it.")


def ask(question: str, *, yes: bool) -> None:
    """Ask, unless the user agreed beforehand.

    Raises:
        Abort: the answer is no.
    """
    if not yes:
        typer.confirm(question, abort=True, err=True)
