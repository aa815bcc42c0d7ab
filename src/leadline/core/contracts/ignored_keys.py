"""Keys of a scenario that change nothing as the scenario is: each is an error, not silence.

A system says in ``Scenario.ignored`` which keys it does not use and why; a policy declares what it honours in a table
that `unhonoured` reads. Here those are matched with what a file gives and what ``--vary`` changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

Path = tuple[int | str, ...]
ANY = "*"
UNLIMITED = ("without a limit it is ignored", "iops_limit")  # a burst of a limit there is not


@dataclass(frozen=True, slots=True)
class Ignored:
    """Keys that have no effect.

    Attributes:
        key: a dotted key, as ``vms.db01.shares``; ``*`` is any one step. Keys below it are meant, too.
        because: what ignores it, a sentence part: ``scheduler fifo of host esx01 ignores it``.
        needs: what would make it count: ``a scheduler that honours it: sfq, mclock``.
    """

    key: str
    because: str
    needs: str

    def covers(self, key: str) -> bool:
        """Whether this pattern covers a dotted key.

        >>> Ignored("vms.*.shares", "", "").covers("vms.db01.shares")
        True
        """
        pattern, steps = self.key.split("."), key.split(".")
        return len(steps) >= len(pattern) and all(one in (ANY, step) for one, step in zip(pattern, steps, strict=False))


def unhonoured(honoured: Mapping[str, Sequence[str]], policy: str, place: str, who: str) -> Iterator[Ignored]:
    """Keys below ``place`` that this policy does not honour though others do.

    Args:
        honoured: each policy with the keys it honours, of those that not all honour.
        policy: the one that rules.
        place: the dotted key of what it rules, empty for the scenario itself.
        who: what the policy is, as ``scheduler``; words after a comma say whose it is.
    """
    kind, _, whose = who.partition(", ")
    for key in dict.fromkeys(key for keys in honoured.values() for key in keys):
        if key not in honoured[policy]:
            able = ", ".join(name for name, keys in honoured.items() if key in keys)
            because = " ".join(part for part in (kind, policy, whose, "ignores it") if part)
            yield Ignored(f"{place}.{key}" if place else key, because, f"a {kind} that honours it: {able}")


def idle(*conditions: tuple[bool, str, str, str]) -> Iterator[Ignored]:
    """The `Ignored` keys of those conditions that hold: whether it does, key, because, needs."""
    return (Ignored(*rest) for holds, *rest in conditions if holds)


def given_keys(model: BaseModel) -> dict[str, Path]:
    """Every key that was given when a scenario was made: its dotted name, and where it lies; workloads are left out."""
    return dict(_given(model, "", ()))


def _given(model: BaseModel, name: str, place: Path) -> Iterator[tuple[str, Path]]:
    for key in model.model_fields_set:
        if key == "workload":
            continue
        dotted = f"{name}.{key}" if name else key
        yield dotted, (*place, key)
        yield from _within(getattr(model, key), dotted, (*place, key))


def _within(value: object, name: str, place: Path) -> Iterator[tuple[str, Path]]:
    if isinstance(value, BaseModel):
        yield from _given(value, name, place)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _within(item, f"{name}.{key}", (*place, key))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _within(item, f"{name}.{getattr(item, 'name', index)}", (*place, index))


def changed_keys(base: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    """Dotted keys of plain values that are in both and differ."""
    first, second = dict(_flat(base, "")), dict(_flat(other, ""))
    return {key for key, value in second.items() if key in first and first[key] != value}


def _flat(node: Any, name: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - plain data
    if isinstance(node, Mapping):
        pairs: Iterable[tuple[str, Any]] = ((str(key), item) for key, item in node.items() if key != "workload")
    elif isinstance(node, list) and all(isinstance(item, Mapping) for item in node):
        pairs = ((str(item.get("name", index)), item) for index, item in enumerate(node))
    else:
        yield name, node
        return
    for key, item in pairs:
        yield from _flat(item, f"{name}.{key}" if name else key)


def without_effect(keys: Iterable[str], ignored: Iterable[Ignored]) -> dict[str, Ignored]:
    """Those of ``keys`` that are ignored, each with the reason."""
    reasons = list(ignored)
    matches = ((key, next((reason for reason in reasons if reason.covers(key)), None)) for key in keys)
    return {key: reason for key, reason in matches if reason is not None}
