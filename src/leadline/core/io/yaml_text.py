"""YAML that people write, read within bounds: the one loader of every file and option that holds YAML.

PyYAML stops at nothing: a few hundred bytes of aliases stand for more than any memory holds, deep nesting ends the
interpreter's stack, and what looks like a date but is none ends in a foreign error. Here each is a `YamlFault` with
its line and column. A key that comes twice is a fault, too, since one of the two would be lost without a word.

Source: YAML 1.1, sections 3.2.1.3 (keys are unique) and 10.2.1.1 (merge keys, which may be overridden).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

import yaml

DEPTH_MAX = 60  # Judgement: the deepest file we know of, an inventory, has 8 levels
NODE_COUNT_MAX = 1_000_000  # Judgement: an inventory of 10,000 VMs with 50 settings each
EXPANDED_COUNT_MIN = 20_000  # Judgement: aliases may make this of the smallest file
EXPANDED_TIMES_MAX = 10  # Judgement: and this many times what is written of a larger one
_CHARACTERS_PER_NODE = 64  # a long text weighs as many nodes as it would fill
INTEGER_MAX = 2**64  # more bytes than any system has
_KINDS = {"int": "whole number", "float": "number", "timestamp": "date or time", "bool": "yes or no"}
_MERGE = "tag:yaml.org,2002:merge"
_SHOWN_CHARACTERS = 40
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is there


class _Mark(Protocol):
    """Where PyYAML, or libyaml, saw something."""

    line: int
    column: int


class YamlFault(Exception):
    """Why a text is no YAML that is read here; ``line`` and ``column`` count from 1, 0 where they are not known."""

    def __init__(self, problem: str, mark: _Mark | None, line_max: int | None = None) -> None:
        self.problem = problem
        self.line = 0 if mark is None else min(mark.line + 1, line_max or mark.line + 1)
        self.column = 0 if mark is None else mark.column + 1
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class YamlText:
    """What a text holds as plain data, and its nodes, which know their lines."""

    content: Any
    tree: yaml.Node | None


def load_yaml(text: str) -> YamlText:
    """The only document of a YAML text; None for an empty one.

    Raises:
        YamlFault: it is not YAML, has a value or a key that is none, or is larger or deeper than the limits.
    """
    try:
        _check_depth(text)
        tree = yaml.compose(text, Loader=_Loader)
        if tree is None:
            return YamlText(None, None)
        _check_expansion(tree)
        return YamlText(_Constructor().construct_document(tree), tree)
    except UnicodeError as error:
        raise YamlFault("characters that are no text", None) from error
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        lines = max(len(text.splitlines()), 1)  # what is missing at the end is missing in the last line
        raise YamlFault(str(problem), getattr(error, "problem_mark", None), lines) from error


def _check_depth(text: str) -> None:
    """Count levels and nodes without recursion, before anything that recurses looks at the text."""
    depth = count = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        count += 1
        if depth > DEPTH_MAX:
            raise YamlFault(f"nested more than {DEPTH_MAX} levels deep", event.start_mark)
        if count > 2 * NODE_COUNT_MAX:
            raise YamlFault(f"more than {NODE_COUNT_MAX:,} values", event.start_mark)


def _check_expansion(tree: yaml.Node) -> None:
    """Refuse aliases that stand for far more than is written, or for what they are part of."""
    known: dict[int, tuple[int, int]] = {}  # per node, how many values it stands for, and how deep they lie
    written_count = 0

    def measure(node: yaml.Node, around: frozenset[int]) -> tuple[int, int]:
        nonlocal written_count
        if id(node) in around:
            raise YamlFault("an alias to what it is part of", node.start_mark)
        if id(node) not in known:
            node_count = 1 + len(node.value) // _CHARACTERS_PER_NODE if isinstance(node, yaml.ScalarNode) else 1
            written_count += node_count
            parts = [measure(part, around | {id(node)}) for part in _parts(node)]
            depth = 1 + max((depth for _, depth in parts), default=0)
            if depth > DEPTH_MAX:
                raise YamlFault(f"aliases nested more than {DEPTH_MAX} levels deep", node.start_mark)
            known[id(node)] = node_count + sum(count for count, _ in parts), depth
        return known[id(node)]

    expanded_count, _ = measure(tree, frozenset())
    limit = min(max(EXPANDED_COUNT_MIN, EXPANDED_TIMES_MAX * written_count), NODE_COUNT_MAX)
    if expanded_count > max(limit, written_count):
        raise YamlFault(f"aliases that stand for more than {limit:,} values", tree.start_mark)


def _parts(node: yaml.Node) -> list[yaml.Node]:
    """Keys and values of a mapping, items of a list.

    Raises:
        YamlFault: a key comes twice.
    """
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if not isinstance(node, yaml.MappingNode):
        return []
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
            if (key.tag, key.value) in seen:
                raise YamlFault(f"key {_shown(key.value)} comes twice", key.start_mark)
            seen.add((key.tag, key.value))
    return [part for pair in node.value for part in pair]


class _Constructor(yaml.constructor.SafeConstructor):
    """Makes plain data; what looks like a number or a time and is none is a fault with its place."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401 - PyYAML's
        try:
            value = super().construct_object(node, deep=deep)
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
            kind = node.tag.rpartition(":")[2]
            raise YamlFault(f"{_shown(node.value)} is no {_KINDS.get(kind, kind)}", node.start_mark) from error
        if isinstance(value, float) and not isfinite(value):
            raise YamlFault(f"{_shown(node.value)} is no finite number", node.start_mark)
        if isinstance(value, int) and abs(value) > INTEGER_MAX:
            raise YamlFault(f"{_shown(node.value)} is larger than any number that is read", node.start_mark)
        return value


def _shown(written: object) -> str:
    text = str(written)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}... ({len(text)} characters)"
