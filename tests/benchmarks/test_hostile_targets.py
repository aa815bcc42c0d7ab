"""Targets with hostile names: no load tool sees them, and what lies beside them stays as it was."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benches.hostile_targets import WAYS, Field, Row, beside, ground, names, tried, workload
from leadline.app.density import instances as density_instances
from leadline.app.measure import benching
from leadline.app.measure.workloads import fio_job_text
from leadline.app.probe import probing
from leadline.app.sweep.sweeping import SweepWish, plan_sweep
from leadline.app.traces import replaying
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import LoadPlan, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import UsageError
from leadline.core.model.workload import Workload, parse_workload
from leadline.core.system.opened import Identity
from leadline.core.system.tools import find_program

NAMES = names()
STEP = Step("round-1", 1.0, 1)
# Of each kind of reading one: cut, cut and expanded, injected, blanks, no text. `benches/hostile_targets.py` has all.
REAL = ("v2#1;2:3", "v2${HOME}#x", "v2\n[global]\nfilename=v3", "  v2  ", "v2\udcff#\udcfe", "-v2#1")


def texts(way: str, target: Target, trace: Path, folder: Path) -> Iterator[tuple[LoadPlan | None, str]]:
    """The plan of a way of loading, and everything fio is told in it."""
    if way == "replay":
        made = replaying.plan_replay(trace, replaying.ReplayAsk(target.name, target.destroy))
        yield None, replaying.job_file(made, [folder / "lane-0.iolog"])
        return
    if way == "density":
        plan = density_instances.site_of(workload(), target).plan
        yield plan, density_instances.InstancePlace(2, plan, 2**20).job(STEP)
    elif way == "probe":
        load = probing.plan(
            target, folder / "out", seconds=(0.0, 1.0), limit=None, size="1m", shape=probing.PulseShape(outstanding=1)
        ).load
        assert load is not None
        plan = load
    elif way == "sweep":
        plan = plan_sweep(workload(), target, SweepWish(loads="1")).load_plan
    else:
        plan = benching.plan(workload(), target)
    yield plan, fio.job_file(plan, STEP)
    yield plan, "\n".join(word.removeprefix("--") for word in fio.fill_words(plan, next(iter(plan.places.values()))))


@pytest.mark.parametrize("way", WAYS)
def test_no_tool_sees_a_name_that_a_user_gave(way: str, tmp_path: Path) -> None:
    assert len(NAMES) >= 60
    trace = ground(tmp_path).trace
    for number, name in enumerate(NAMES):
        own = Field(tmp_path / str(number), name, is_folder=number % 2 == 1).make()
        before = own.seen()
        target = Target(own.target, None if own.is_folder else own.target)
        for plan, text in texts(way, target, trace, tmp_path):
            assert text.isascii()
            assert set(re.findall(r"^(?:filename|replay_redirect)=(.*)$", text, re.MULTILINE)) == {"t0"}, ascii(name)
            assert "allow_file_create=0" in text
            assert not re.search(r"[#;$\\]|v2|v3", text)
            if plan is not None:
                fio.reach(plan)
                reached = Identity.of((plan.targets.folder / "t0").stat())
                place = next(iter(plan.places.values()))
                assert reached == Identity.of(Path(place.path).stat())
                assert Path(place.path) == Path(own.target) or Path(place.path).parent == Path(own.target)
                fio.clean(plan)
        assert own.seen() == before
        assert own.differences() == (0, 0)


@pytest.mark.real
@pytest.mark.skipif(find_program("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("way", WAYS)
def test_what_lies_beside_a_hostile_name_stays_as_it_was(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "PAUSE_S", 0.0)
    own, row = ground(tmp_path), Row()
    index = list(WAYS).index(way)
    for name in REAL[index::2][:2]:  # each name in two or three ways
        base = tmp_path / f"base-{row.loaded}"
        base.mkdir()
        tried(base, own, way, name, row)
    assert row.failed == []
    assert (row.loaded, row.changed, row.created) == (2 * len(REAL[index::2][:2]), 0, 0)
    assert row.bystanders > 4


def test_what_a_cut_name_would_hit_lies_beside_it() -> None:
    assert {"v2", "v2#"} <= set(beside("v2#1"))
    assert "v2" + os.environ.get("HOME", "").replace("/", "_") + "1" in beside("v2${HOME}1")
    assert all(name not in beside(name) for name in NAMES)


@pytest.mark.parametrize(
    "address", ["nbd://h/a#b", "nbd://h/a;b", "nbd://h/a\nfilename=b", "nbd://h/${HOME}", "rbd://a b"]
)
def test_addresses_are_taken_as_they_are_or_refused(address: str) -> None:
    with pytest.raises(UsageError, match="an address with a blank, a quote or one of"):
        benching.plan(workload(), Target(address, address))
    plain = "nbd+unix:///disk0?socket=/tmp/leadline-x/nbd.sock"
    assert f"uri={plain}" in fio.job_file(benching.plan(workload(), Target(plain, plain)), STEP).splitlines()


def test_a_stream_of_any_name_is_one_section_and_one_file(tmp_path: Path) -> None:
    odd = ["a]\nfilename=x\n[b", "../../v2", "a/b", "a_b", "global", "${HOME}", "read 4k"]
    made = Workload.model_validate({"name": "t", "io": [{"name": n, "working_set": "1m", "read_pct": 50} for n in odd]})
    plan = fio.plan(made, Target(str(tmp_path)))
    text = fio.job_file(plan, STEP)
    sections = [line for line in text.splitlines() if line.startswith("[")]
    assert len(set(sections)) == len(odd) + 1
    assert sections[-1] == "[read 4k]"
    assert {Path(place.path).parent for place in plan.places.values()} == {tmp_path}
    assert len({place.path for place in plan.places.values()}) == len(odd)
    assert re.findall(r"^filename=(.*)$", text, re.MULTILINE) == [f"t{number}" for number in range(len(odd))]


@pytest.mark.parametrize(
    "target", ["/srv/a#b", "/srv/a;b", "/srv/a\nfilename=b", "/srv/${HOME}", " /srv", "/srv/\udcff"]
)
def test_a_job_file_for_another_machine_names_only_plain_paths(target: str) -> None:
    with pytest.raises(UsageError, match="a path that fio would cut or change"):
        fio_job_text(parse_workload("name: t\nio: [{}]\n", "t"), target)
    assert "filename=/srv/a\\:b/leadline-bench-io.dat" in fio_job_text(
        parse_workload("name: t\nio: [{}]\n", "t"), "/srv/a:b"
    )
