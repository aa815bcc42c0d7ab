"""Groups of verbs that import a verb only when it is called: the list of verbs is read from the files' docstrings.

A file of the group's folder is a verb, a folder a group of verbs. A file's name gives the verb's name, the docstring of
its ``command`` the line in the list, its ``QUESTION`` the heading that it stands under.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any, ClassVar, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from leadline.faces.cli.endings import interruptible
from leadline.faces.cli.values import checked

# The docstring of `command` as ruff formats it: after the line that ends the signature.
_COMMAND_DOC = re.compile(r'^def command\(.*?\) -> [^\n]*:\n    """(.*?)"""', re.DOTALL | re.MULTILINE)
# What people ask, in the order of the list; the verbs of a group within a group answer none.
QUESTIONS = {
    "slow": "Why is it slow",
    "fast": "How fast is it",
    "if": "What if",
    "size": "How to size and configure it",
    "record": "What to record",
    "leadline": "What Leadline knows",
    "": "Commands",
}
_QUESTION = re.compile(r'^QUESTION = "(\w+)"$', re.MULTILINE)
_MODULE_DOC = re.compile(r'\A"""(.*?)"""', re.DOTALL)


def verb_group(package: str) -> type[TyperGroup]:
    """The class of the group whose verbs are the files and folders of a package."""
    return type("VerbGroup", (_LazyGroup,), {"package": package})


class _LazyGroup(TyperGroup):
    """Knows its verbs by name and summary; imports the one that is called."""

    package: ClassVar[str]

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - what typer makes a group of
        self._stems = verb_stems(self.package)
        super().__init__(**{**attributes, "commands": {name: TyperCommand(name) for name in self._stems}})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer does not name it
        """The words of the command line; those of a group with a verb of its own choice may leave it out."""
        default = getattr(import_module(self.package), "DEFAULT", "")
        if default and (not args or (args[0].startswith("-") and args[0] not in {"--help", "-h"})):
            args = [default, *args]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:  # noqa: ANN401 - typer does not name it
        """The verb itself, with its options."""
        stem = self._stems.get(cmd_name)
        return None if stem is None else _load(f"{self.package}.{stem}", cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer names neither type
        """Write the list of verbs by the question they answer, without importing one."""
        listed: dict[str, list[tuple[str, str]]] = {key: [] for key in QUESTIONS}
        width = max(map(len, self._stems)) + 2
        limit = formatter.width - width - 4
        for name, stem in self._stems.items():
            listed[question_of(self.package, stem)].append(
                (name.ljust(width - 2), short_line(summary_of(self.package, stem), limit))
            )
        for key, rows in listed.items():
            if rows:
                with formatter.section(QUESTIONS[key]):
                    formatter.write_dl(rows)


def verb_stems(package: str) -> dict[str, str]:
    """Name of each verb -> its file's name without the ending, files before folders."""
    stems = {}
    for entry in sorted(_folder(package).iterdir(), key=lambda entry: (entry.is_dir(), entry.name)):
        stem = entry.name.removesuffix(".py")
        if not stem.startswith(("_", ".")) and (entry.is_dir() or entry.name.endswith(".py")):
            stems[stem.rstrip("_").replace("_", "-")] = stem
    return stems


def _folder(package: str) -> Path:
    return Path(__file__).parent.joinpath(*package.removeprefix(f"{__package__}.").split("."))


def _text(package: str, stem: str) -> str:
    path = _folder(package) / stem
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


def question_of(package: str, stem: str) -> str:
    """The key of `QUESTIONS` that a verb's file names; empty where it names none."""
    named = _QUESTION.search(_text(package, stem))
    return "" if named is None else named[1]


def summary_of(package: str, stem: str) -> str:
    """Return a verb's line in the list of verbs: from the text of its file, or by import where that shows none."""
    is_group = (_folder(package) / stem).is_dir()
    docstring = (_MODULE_DOC.match if is_group else _COMMAND_DOC.search)(_text(package, stem))
    if docstring is not None:
        return cleandoc(docstring[1])
    return _load(f"{package}.{stem}", stem).help or ""


def short_line(summary: str, limit: int) -> str:
    """The first paragraph where it fits, else as many whole clauses of it as do.

    >>> short_line("Show series by entity and metric: statistics, a picture over time.", 50)
    'Show series by entity and metric'
    """
    text = " ".join(summary.split("\n\n", 1)[0].split())
    if len(text) <= limit:
        return text
    for ends in (":;.?", ","):
        cut = max((at for at in range(limit) if text[at] in ends and text[at + 1] == " "), default=0)
        if cut:
            return text[: cut + 1] if text[cut] in ".?" else text[:cut]
    return f"{text[: limit - 3].rsplit(' ', 1)[0]}..."


@lru_cache  # a notebook or a test that calls many verbs builds each once
def _load(module_name: str, verb: str) -> TyperCommand | TyperGroup:
    module = import_module(module_name)
    if hasattr(module, "__path__"):
        group = typer.Typer(
            name=verb,
            cls=verb_group(module_name),
            no_args_is_help=True,
            rich_markup_mode=None,
            help=module.__doc__,
            epilog=module.EPILOG,
        )
        return get_group(group)
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(verb, epilog=module.EPILOG)(interruptible(checked(module.command)))
    return cast("TyperCommand", get_command(app))
