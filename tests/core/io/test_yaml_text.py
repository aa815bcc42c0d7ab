"""YAML within bounds, in every file and option that holds YAML."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.contracts.planner import parse_setting
from leadline.core.contracts.scenario import parse_axis
from leadline.core.io.yaml_text import YamlFault, load_yaml
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.workload import find_workload
from leadline.formats.inventory_file import parse_inventory

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
WIDE_BOMB = "vms:\n- &vm {name: db01, disks: [" + "{name: a}, " * 500 + "]}\n" + "- *vm\n" * 5000
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 5000))

FAULTS: dict[str, tuple[str, str, int]] = {
    "a day that is none": ("a: 1\nb: 2024-02-30", "'2024-02-30' is no date or time", 2),
    "a month that is none": ("a: 2024-13-01", "'2024-13-01' is no date or time", 1),
    "a time that is none": ("a: 2024-01-01T25:00:00Z", "is no date or time", 1),
    "hexadecimal without digits": ("a: 0x_", "'0x_' is no whole number", 1),
    "binary without digits": ("a: 0b_", "'0b_' is no whole number", 1),
    "5,000 digits": (f"a: {'9' * 5000}", "(5000 characters) is no whole number", 1),
    "400 digits": (f"a: {'9' * 400}", "is larger than any number", 1),
    "infinite": ("a: .inf", "'.inf' is no finite number", 1),
    "not a number": ("a: [1, .NaN]", "'.NaN' is no finite number", 1),
    "a float that is none": ("a: !!float x", "'x' is no number", 1),
    "a bool that is none": ("a: !!bool x", "'x' is no yes or no", 1),
    "a python object": ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor", 1),
    "a list as key": ("? [a]\n: b", "unhashable key", 1),
    "a key twice": ("a: 1\nb: 2\na: 3", "key 'a' comes twice", 3),
    "a key twice, deep": ("x:\n- {a: 1, a: 2}", "key 'a' comes twice", 2),
    "deep lists": ("[" * 100_000, "nested more than 60 levels deep", 1),
    "deep mappings": ("".join(f"{' ' * n}a:\n" for n in range(500)), "nested more than 60 levels deep", 61),
    "a chain of aliases": (CHAIN, "aliases nested more than 60 levels deep", 60),
    "an alias to itself": ("a: &a [*a]", "an alias to what it is part of", 1),
    "a bomb of aliases": (BOMB, "aliases that stand for more than 20,000 values", 1),
    "a wide bomb": (WIDE_BOMB, "aliases that stand for more than", 1),
    "merges without end": ("a: &a {x: 1}\n" + "b: &b {<<: [" + "*a, " * 30_000 + "]}\n", "aliases that stand for", 1),
    "two documents": ("a: 1\n--- \nb: 2", "but found another document", 2),
    "a control character": ("a: \x00", "", 0),
    "half a character": ("a: \udcff", "", 0),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_have_their_place(kind: str) -> None:
    text, problem, line = FAULTS[kind]
    started = time.process_time()
    tracemalloc.start()
    with pytest.raises(YamlFault) as caught:
        load_yaml(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert problem.replace("'", "") in caught.value.problem.replace("'", "")
    assert caught.value.line == line or not problem
    assert time.process_time() - started < 10.0
    assert peak < 100 << 20


@pytest.mark.parametrize("kind", FAULTS)
def test_every_reader_turns_a_fault_into_one_error(kind: str, tmp_path: Path) -> None:
    text = FAULTS[kind][0]
    (tmp_path / "w.yaml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError):
        find_workload(str(tmp_path / "w.yaml"))
    with pytest.raises(InputError):
        parse_inventory(text, "inventory.yaml")
    if "\n" not in text and "," not in text:
        value = text.removeprefix("a: ")
        with pytest.raises(UsageError):
            parse_setting(f"a={value}")
        with pytest.raises(UsageError):
            parse_axis(f"a={value}")


def test_what_is_right_is_read() -> None:
    text = """
    base: &base {size: 8, kind: read}
    list: [*base, {<<: *base, kind: write}, 0x10, 1_000, 2024-02-29, ~, 'yes', yes]
    """
    assert load_yaml(text).content == yaml.safe_load(text)
    assert load_yaml("").content is None
    assert load_yaml("# nothing\n").content is None


def test_many_values_without_aliases_are_read() -> None:
    text = "vms:\n" + "".join(f"- {{name: vm{n}, disks: [{{name: a}}]}}\n" for n in range(8000))
    assert len(load_yaml(text).content["vms"]) == 8000
    assert len(load_yaml(f"text: {'x' * 3_000_000}").content["text"]) == 3_000_000


@given(st.text(alphabet="ab:-[]{},&*!<>'\"|#%@ \n0x1_.~?", max_size=60))
def test_any_text_is_data_or_a_fault(text: str) -> None:
    try:
        loaded = load_yaml(text).content
    except YamlFault:
        return
    assert loaded == yaml.safe_load(text)
