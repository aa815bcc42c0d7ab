"""The options of verbs that write files, and the check of them before the work begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, overload

import typer

from leadline.core.io.outputs import Output, check_inputs

Force = Annotated[bool, typer.Option("--force", help="Also replace a file that Leadline did not write.")]
_KEY = "leadline.outputs"
_PROFILE = "leadline.toml"


@overload
def output_file(
    ctx: typer.Context, name: str, path: Path, *, force: bool, reads: Sequence[Path] = (), beside: Sequence[Path] = ()
) -> Output: ...
@overload
def output_file(
    ctx: typer.Context, name: str, path: Path | None, *, force: bool, reads: Sequence[Path] = ()
) -> Output | None: ...
def output_file(
    ctx: typer.Context,
    name: str,
    path: Path | None,
    *,
    force: bool,
    reads: Sequence[Path] = (),
    beside: Sequence[Path] = (),
) -> Output | None:
    """The output a verb was asked for, checked: call it before the work.

    Args:
        ctx: of the verb; every file its command line names is an input of the command.
        name: the verb's parameter that names the output.
        path: what the user gave; None when there is nothing to write.
        force: whether a file that Leadline did not write may be replaced.
        reads: recordings the verb reads; of a folder, the files that would be read count.
        beside: further files that are written with it.

    Raises:
        UsageError: it must not or cannot be written, or it is an input or another output of the command.
    """
    if path is None:
        return None
    label = next((max(parameter.opts, key=len) for parameter in ctx.command.params if parameter.name == name), name)
    option = label if label.startswith("-") else label.upper()
    outputs = [Output(file, option, force) for file in (path, *beside)]
    earlier: list[Output] = ctx.meta.setdefault(_KEY, [])
    inputs = {_label(ctx, key): list(_named(value)) for key, value in ctx.params.items() if key != name}
    if "profile" in ctx.params:
        inputs[_PROFILE] = [Path(_PROFILE)]
    written = {output.path for output in earlier}
    check_inputs(
        [*earlier, *outputs], {key: [file for file in files if file not in written] for key, files in inputs.items()}
    )
    for output in outputs:
        output.check()
        _check_folders(output, reads)
    earlier += outputs
    return outputs[0]


def _label(ctx: typer.Context, name: str) -> str:
    parameter = next((option for option in ctx.command.params if option.name == name), None)
    return name if parameter is None else max(parameter.opts, key=len)


def _named(value: Any) -> Iterator[Path]:  # noqa: ANN401 - whatever an option holds
    """Files that an option or argument may name: itself, before ``#`` (a run of a job file), between colons."""
    if isinstance(value, list | tuple):
        for element in value:
            yield from _named(element)
    elif isinstance(value, str | Path) and str(value):
        text = str(value)
        yield from map(Path, {text, text.partition("#")[0], *text.split(":")} - {""})


def _check_folders(output: Output, reads: Sequence[Path]) -> None:
    """Refuse an output in an input folder when it is a recording there, which would be read and then replaced."""
    if not output.path.exists():
        return
    folders = [folder for folder in reads if folder.is_dir()]
    if any(file.is_file() and file.samefile(output.path) for folder in folders for file in folder.rglob("*")):
        from leadline.app.read.importing import is_recording

        if is_recording(output.path):
            check_inputs([output], {"in a folder it reads": [output.path]})
