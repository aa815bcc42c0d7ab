"""Keys of a scenario that change nothing: refused when no variant honours them, noted where only some do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from leadline.core.contracts.ignored_keys import Ignored, changed_keys, given_keys, without_effect
from leadline.core.contracts.scenario import GUIDE, WHAT, Scenario, Variant
from leadline.core.io.yaml_files import position, read_text
from leadline.core.model.errors import InputError, UsageError


def with_idle_keys(path: Path, scenario: Scenario, planned: Sequence[Variant]) -> list[Variant]:
    """The variants, each with a note for every key of the file that it ignores.

    Raises:
        InputError: a key of the file is ignored in every variant; with line and column.
        UsageError: a varied key is ignored wherever it is set.
    """
    given, base = given_keys(scenario), scenario.plain()
    changed = [changed_keys(base, variant.scenario.plain()) if variant.settings else set[str]() for variant in planned]
    ignored = [
        without_effect([*given, *keys], variant.scenario.ignored())
        for keys, variant in zip(changed, planned, strict=True)
    ]
    for key in sorted(set[str]().union(*ignored), key=lambda name: [str(step) for step in given.get(name, (name,))]):
        in_play = [keys for keys, others in zip(ignored, changed, strict=True) if key in given or key in others]
        if all(key in keys for keys in in_play):
            raise _refusal(path, key, given, in_play[0][key])
    return [
        replace(variant, idle=tuple(f"{key}: {keys[key].because}" for key in sorted(keys) if key in given))
        for variant, keys in zip(planned, ignored, strict=True)
    ]


def _refusal(
    path: Path, key: str, given: Mapping[str, Sequence[int | str]], reason: Ignored
) -> InputError | UsageError:
    refusal, advice = f"{key}: {reason.because}", f"Change that, or leave {key} out; see {GUIDE}."
    if key not in given:
        return UsageError(f"--vary {key}", found=refusal, expected=reason.needs, advice=advice)
    line, column = position(read_text(path, WHAT, GUIDE), given[key])
    return InputError(f"{path}:{line}:{column}", found=refusal, expected=reason.needs, advice=advice)
