"""YAML files people write, checked against a pydantic model, with line and column in every error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from leadline.core.io.pipes import as_file
from leadline.core.io.shipped import shipped
from leadline.core.io.yaml_text import YamlFault, load_yaml
from leadline.core.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

Model = TypeVar("Model", bound=BaseModel)
BYTES_MAX = 4 * 1024**2


def read_model(path: Path, model: type[Model], kind: str, guide: str) -> Model:
    """The model a YAML file describes; ``kind`` names the kind of file, ``guide`` where it is explained.

    Raises:
        InputError: not readable, not YAML, or not the model; with line and column of the first fault.
    """
    return parse_model(read_text(path, kind, guide), str(path), model, kind, guide)


def read_text(path: Path, kind: str, guide: str) -> str:
    """The text of a file people write.

    Raises:
        InputError: not readable, not UTF-8, or too large.
    """
    try:
        with as_file(shipped(path)).open("rb") as stream:
            content = stream.read(BYTES_MAX + 1)
        if len(content) > BYTES_MAX:
            raise _wrong(str(path), "more than 4 MiB", kind, guide)
        return content.decode("utf-8")
    except (OSError, ValueError) as error:  # a NUL in the path, bytes that are no UTF-8
        raise _wrong(str(path), f"not readable ({error})", kind, guide) from error


def parse_model(
    text: str, name: str, model: type[Model], kind: str, guide: str, context: dict[str, str] | None = None
) -> Model:
    """The model a YAML text describes; ``context`` is for its validators.

    Raises:
        InputError: not YAML, or not the model; with line and column of the first fault.
    """
    try:
        loaded = load_yaml(text)
    except YamlFault as error:
        where = f"{name}:{error.line}:{error.column}" if error.line else name
        raise _wrong(where, f"not YAML ({error.problem})", kind, guide) from error
    try:
        return model.model_validate({} if loaded.content is None else loaded.content, context=context)
    except ValidationError as error:
        first = error.errors()[0]
        line, column = _place(loaded.tree, first["loc"])
        path = ".".join(str(part) for part in first["loc"] if not isinstance(part, str) or "[" not in part)
        problem = f"{path or 'the file'}: {first['msg'].removeprefix('Value error, ')}"
        raise _wrong(f"{name}:{line}:{column}", problem, kind, guide) from error


def position(text: str, path: Sequence[int | str]) -> tuple[int, int]:
    """Line and column (from 1) of a key in YAML text that was read before."""
    return _place(yaml.compose(text, Loader=yaml.SafeLoader), path)


def _place(node: yaml.Node | None, path: Sequence[int | str]) -> tuple[int, int]:
    """Line and column (from 1) of the deepest node of a path that is written in the file."""
    line, column = (1, 1) if node is None else (node.start_mark.line + 1, node.start_mark.column + 1)
    for part in path:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == str(part)), None)
            if pair is None:
                continue  # a missing key, or a step of a union that is not in the file
            line, column = pair[0].start_mark.line + 1, pair[0].start_mark.column + 1
            node = pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line, column = node.start_mark.line + 1, node.start_mark.column + 1
    return line, column


def _wrong(where: str, problem: str, kind: str, guide: str) -> InputError:
    return InputError(where, found=problem, expected=kind, advice=f"See {guide}.")
