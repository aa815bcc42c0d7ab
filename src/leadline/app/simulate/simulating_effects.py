"""Keys of a scenario that change nothing: refused when no variant honours them, noted where only some do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from leadline.core.contracts.ignored_keys import Ignored, changed_keys, given_keys, without_effect
from leadline.core.contracts.scenario import GUIDE, WHAT, Scenario, Variant
from leadline.core.io.yaml_files import position, read_text
from leadline.core.model.errors import InputError, UsageError


def with_idle_keys(path: Path, scenario: Scenario, made: Sequence[Variant]) -> list[Variant]:
    """The variants, each with a note for every key of the file that it ignores.

    Raises:
        InputError: a key of the file is ignored in every variant; with line and column.
        UsageError: a varied key is ignored wherever it is set.
    """
    given, base = given_keys(scenario), scenario.plain()
    changed = [changed_keys(base, own.scenario.plain()) if own.settings else set[str]() for own in made]
    ignored = [
        without_effect([*given, *own], variant.scenario.ignored()) for own, variant in zip(changed, made, strict=True)
    ]
    for key in sorted(set[str]().union(*ignored), key=lambda own: [str(step) for step in given.get(own, (own,))]):
        in_play = [own for own, others in zip(ignored, changed, strict=True) if key in given or key in others]
        if all(key in own for own in in_play):
            raise _refusal(path, key, given, in_play[0][key])
    return [
        replace(variant, idle=tuple(f"{key}: {own[key].because}" for key in sorted(own) if key in given))
        for variant, own in zip(made, ignored, strict=True)
    ]


def _refusal(
    path: Path, key: str, given: Mapping[str, Sequence[int | str]], reason: Ignored
) -> InputError | UsageError:
    found, advice = f"{key}: {reason.because}", f"Change that, or leave {key} out; see {GUIDE}."
    if key not in given:
        return UsageError(f"--vary {key}", found=found, expected=reason.needs, advice=advice)
    line, column = position(read_text(path, WHAT, GUIDE), given[key])
    return InputError(f"{path}:{line}:{column}", found=found, expected=reason.needs, advice=advice)
