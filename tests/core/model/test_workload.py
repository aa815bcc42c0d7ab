"""Workload files: what is accepted, and where a mistake is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.workload import (
    KINDS,
    RENAMED,
    Workload,
    find_workload,
    parse_workload,
    profiles,
    seconds_of,
    size_of,
)
from tests.conftest import ROOT


@pytest.mark.parametrize("name", profiles())
def test_every_shipped_workload_says_what_it_is_and_where_it_comes_from(name: str) -> None:
    found = find_workload(name)
    assert found.name == name
    assert found.about.endswith(".")
    assert found.source


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("name: x\nio:\n  - {name: b, read_pct: 101}\n", "f.yaml:3:15", "less than or equal to 100"),
        ("name: x\nio:\n  - {blok: 8k}\n", "f.yaml:3:6", "io.0.blok"),
        ("name: x\nio: [a\n", "f.yaml:2:1", "not YAML"),
        ("name: X y\nio: [{}]\n", "f.yaml:1:1", "name"),
        ("name: x\nio:\n- {block: 1000}\n", "f.yaml:3:4", "multiple of 512"),
        ("name: x\nio:\n- block: {8k: 50, 64k: 40}\n", "f.yaml:3:3", "add up to 100"),
        ("name: x\n", "f.yaml:1:1", "exactly one of"),
        ("name: x\nio: [{name: a}, {name: a}]\n", "f.yaml:1:1", "the same name"),
        ("name: x\ndatabase: {engine: mysql}\n", "f.yaml:2:1", "driven by sysbench or go-tpc"),
        ("name: x\nio: [{}]\ntiming: {measure_s: soon}\n", "f.yaml:3:10", "no duration"),
        ("[]", "f.yaml:1:1", "the file"),
    ],
)
def test_a_mistake_is_named_with_line_and_column(text: str, where: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_workload(text, "f.yaml")
    assert caught.value.where == where
    assert what in caught.value.found


def test_a_file_has_exactly_one_of_the_sections() -> None:
    assert KINDS == ("io", "database", "network", "latency", "flush", "web")
    for kind in KINDS:
        text = f"name: x\n{kind}: {'[{}]' if kind == 'io' else '{}'}\n"
        assert parse_workload(text, "f").kind == kind
        for other in set(KINDS) - {kind}:
            both = f"{text}{other}: {'[{}]' if other == 'io' else '{}'}\n"
            with pytest.raises(InputError, match="exactly one of io, database, network, latency, flush and web"):
                parse_workload(both, "f")


def test_the_examples_of_the_guide_are_workloads() -> None:
    text = (ROOT / "docs/guides/workloads.md").read_text(encoding="utf-8")
    examples = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert {parse_workload(example, "guide").kind for example in examples} == set(KINDS) - {"network"}


def test_a_single_rate_is_split_by_the_read_share() -> None:
    stream = parse_workload("name: a\nio: [{rate_iops: 100, read_pct: 75}]\n", "f").io[0]
    assert stream.rate_iops is not None
    assert (stream.rate_iops.read, stream.rate_iops.write) == (75.0, 25.0)


def test_names_that_are_neither_shipped_nor_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="hci-4k-read"):
        find_workload("my-load")
    (tmp_path / "w.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not readable"):
        find_workload(str(tmp_path / "w.yaml"))


def test_sizes_and_durations() -> None:
    assert [size_of(text) for text in ("8k", "64 KiB", "1.5m", 512)] == [8192, 65536, 1572864, 512]
    assert [seconds_of(text) for text in ("500us", "2s", "10m", "1h", 3)] == [0.0005, 2.0, 600.0, 3600.0, 3.0]


_STREAMS = st.fixed_dictionaries(
    {"name": st.from_regex(r"[a-z]{1,8}", fullmatch=True)},
    optional={
        "block": st.sampled_from(["4k", "8k", {"8k": 60, "64k": 40}]),
        "read_pct": st.integers(0, 100),
        "random_pct": st.integers(0, 100),
        "oio": st.integers(1, 64),
        "rate_iops": st.integers(1, 10_000),
        "burst": st.just({"on_s": 2, "off_s": "8s"}),
        "working_set": st.sampled_from(["64m", "10g"]),
    },
)


@given(st.lists(_STREAMS, min_size=1, max_size=4, unique_by=lambda stream: str(stream["name"])))
def test_what_is_written_is_read_back_the_same(streams: list[dict[str, object]]) -> None:
    first = Workload.model_validate({"name": "any", "io": streams})
    assert parse_workload(yaml.safe_dump(first.plain()), "f") == first


@pytest.mark.parametrize("name", RENAMED)
def test_an_old_name_says_the_new_one(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        find_workload(name)
    assert raised.value.expected.startswith(f"{name}-io, as it is called now: fio")
    assert find_workload(f"{name}-io").kind == "io"
    path = tmp_path / name
    path.write_text("name: mine\nio: [{block: 8k}]\n")
    assert find_workload(str(path)).name == "mine"


def test_names_of_databases_are_those_that_drive_one() -> None:
    products = ("postgresql", "oracle", "sql-server", "intersystems", "mysql", "pgbench")
    named = [find_workload(name) for name in profiles() if any(product in name for product in products)]
    assert {(own.name.endswith("-io"), own.kind) for own in named} == {(True, "io"), (False, "database")}
