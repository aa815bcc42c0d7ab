"""Groups of verbs that import a verb only when it is called: the list of verbs is read from the files' docstrings.

A file of the group's folder is a verb, a folder a group of verbs. A file's name gives the verb's name, the docstring of
its ``command`` the line in the list.
"""

from __future__ import annotations

import re
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
_MODULE_DOC = re.compile(r'\A"""(.*?)"""', re.DOTALL)


def verb_group(package: str) -> type[TyperGroup]:
    """The class of the group whose verbs are the files and folders of a package."""
    return type("VerbGroup", (_LazyGroup,), {"package": package})


class _LazyGroup(TyperGroup):
    """Knows its verbs by name and summary; imports the one that is called."""

    package: ClassVar[str]

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - what typer makes a group of
        self._stems = _verb_stems(self.package)
        super().__init__(**{**attributes, "commands": {name: TyperCommand(name) for name in self._stems}})

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:  # noqa: ANN401 - typer does not name it
        """The verb itself, with its options."""
        stem = self._stems.get(cmd_name)
        return None if stem is None else _load(f"{self.package}.{stem}", cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer names neither type
        """Write the list of verbs without importing one."""
        listed = [TyperCommand(name, help=_summary(self.package, stem)) for name, stem in self._stems.items()]
        TyperGroup(name=self.name, commands=listed).format_commands(ctx, formatter)


def _verb_stems(package: str) -> dict[str, str]:
    """Name of each verb -> its file's name without the ending, files before folders."""
    stems = {}
    for entry in sorted(_folder(package).iterdir(), key=lambda entry: (entry.is_dir(), entry.name)):
        stem = entry.name.removesuffix(".py")
        if not stem.startswith(("_", ".")) and (entry.is_dir() or entry.name.endswith(".py")):
            stems[stem.rstrip("_").replace("_", "-")] = stem
    return stems


def _folder(package: str) -> Path:
    return Path(__file__).parent.joinpath(*package.removeprefix(f"{__package__}.").split("."))


def _summary(package: str, stem: str) -> str:
    """Return a verb's line in the list of verbs: from the text of its file, or by import where that shows none."""
    path = _folder(package) / stem
    if path.is_dir():
        docstring = _MODULE_DOC.match((path / "__init__.py").read_text(encoding="utf-8"))
    else:
        docstring = _COMMAND_DOC.search(path.with_suffix(".py").read_text(encoding="utf-8"))
    if docstring is not None:
        return cleandoc(docstring[1])
    return _load(f"{package}.{stem}", stem).help or ""


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
