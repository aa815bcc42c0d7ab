"""Bystanders are drawn by the seed, have no part in the fault, are felt by nobody, and are innocent in the truth."""

import subprocess
from argparse import Namespace
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from incidents import bystanders, numbers, record, recorders, rig, session
from incidents.bystanders import Bystander, Company
from incidents.contract import Stage
from incidents.processes import RigError

START = datetime(2026, 11, 23, 22, 0, tzinfo=UTC)
KINDS = record.kinds()
WITH = [name for name in KINDS if not name.startswith("lab-")]
NUMBERS = range(bystanders.FIRST, bystanders.LAST + 1)


def drawn(name: str, number: int, attempt: int = 0) -> tuple[Bystander, ...]:
    return session.Variant(name, number, attempt).company(record.load_kind(name).KIND)


@pytest.mark.parametrize("name", WITH)
def test_one_or_two_are_drawn_and_none_is_a_program_of_the_fault(name: str) -> None:
    kind = record.load_kind(name).KIND
    for number in NUMBERS:
        for attempt in range(record.ATTEMPTS):
            some = drawn(name, number, attempt)
            assert some == drawn(name, number, attempt)
            assert len(some) == len({one.role or one.program for one in some})
            assert 1 <= len(some) <= 2
            assert not {one.program for one in some} & set(kind.programs)
            assert not kind.takes_cpu or all(one.kind != "computing" for one in some)
            assert {one.role for one in some} <= {"", *bystanders.ROLES}


def test_every_sort_occurs_and_begins_before_the_fault_and_with_it() -> None:
    every = [one for name in WITH for number in NUMBERS for one in drawn(name, number)]
    assert {one.program for one in every} == {"fio", "dd", "cp", "stress-ng", "pgbench"}
    assert {one.kind for one in every} == {"busy-disk", "copying", "computing", "second-database"}
    assert {one.begins for one in every} == {"before", "fault"}
    assert all("/work" not in one.printed and not one.printed.startswith("/") for one in every)


def test_recordings_without_bystanders_stay_as_they_are() -> None:
    for name in KINDS:
        assert not any(drawn(name, number) for number in range(1, bystanders.FIRST))
        aside = [[session.Variant(name, n).is_set_aside(count) for n in (1, 2, 3)] for count in (3, 6)]
        assert aside[0] == aside[1]
    assert not any(drawn(name, number) for name in set(KINDS) - set(WITH) for number in NUMBERS)


def test_about_half_of_those_with_bystanders_are_set_aside() -> None:
    aside = [sum(session.Variant(name, n).is_set_aside(3) for n in NUMBERS) for name in WITH]
    assert set(aside) == {1, 2}
    assert 0.35 <= sum(aside) / (3 * len(WITH)) <= 0.65


def test_only_what_is_asked_for_and_missing_is_recorded_each_alone(tmp_path: Path) -> None:
    arguments = Namespace(only=[5, 4], variants=3, again=False, output=tmp_path)
    (tmp_path / "slow-disk").mkdir()
    (tmp_path / "slow-disk" / "4.tar.xz").touch()
    assert [one.number for one in record._missing("slow-disk", arguments)] == [5]
    assert [one.number for one in record._missing("slow-flush", arguments)] == [4, 5]
    assert record._missing("lab-cpu", arguments) == []
    variants = [session.Variant("slow-disk", number) for number in range(1, 6)]
    batches = record._batches(record.load_kind("slow-disk"), variants)
    assert [[one.number for one in batch] for batch in batches] == [[1, 2, 3], [4], [5]]
    assert "bystanders" in record._needs(record.load_kind("slow-disk"), variants)
    assert "bystanders" not in record._needs(record.load_kind("slow-disk"), variants[:3])


def test_a_command_is_printed_without_its_folder() -> None:
    assert recorders.printed(recorders.postgresql("host=/srv/db")).startswith(
        "leadline collect postgresql host=/srv/db"
    )


def company(tmp_path: Path, *some: Bystander) -> Company:
    disks = {
        role: rig.Disk(role, tmp_path, tmp_path, device) for role, device in (("other", "loop3"), ("second", "loop4"))
    }
    server = SimpleNamespace(database="reports", pids=lambda: ["700", "701"])
    stage = Stage(rig.Rig(tmp_path, ExitStack(), disks), None, None, tmp_path, second=server)  # type: ignore[arg-type]
    made = Company(stage, some)
    for one in some:
        process = subprocess.Popen(["sleep", "60"])
        made.standing.append(bystanders._Standing(one, START, process, START + timedelta(seconds=40)))
    return made


READS = Bystander("busy-disk", "dd", "10 MB/s", ("dd",), "dd if=archive", "other")
REPORTS = Bystander("second-database", "pgbench", "3 transactions/s", ("pgbench",), "pgbench --rate=3", "second")
COMPUTES = Bystander("computing", "stress-ng", "9 % of one CPU", ("stress-ng",), "stress-ng --cpu 1")


def ended(made: Company) -> None:
    for one in made.standing:
        one.process.kill()
        one.process.wait()


def test_the_truth_names_each_and_calls_its_disk_program_and_database_innocent(tmp_path: Path) -> None:
    made = company(tmp_path, READS, REPORTS, COMPUTES)
    made.note()
    pid = made.standing[1].process.pid
    ended(made)
    first = made.facts()[0]
    assert (first["kind"], first["program"], first["entity"], first["rate"]) == ("busy-disk", "dd", "loop3", "10 MB/s")
    assert (first["from"], first["to"]) == ("2026-11-23T22:00:00.000Z", "2026-11-23T22:00:40.000Z")
    assert "entity" not in made.facts()[2]
    names = {(one["kind"], one["name"]) for one in made.entities()}
    assert names == {
        *(("block-device", "loop3"), ("process", "dd"), ("block-device", "loop4"), ("database", "reports")),
        *(("process", "stress-ng"), ("process", f"pgbench[{pid}]"), ("process", "postgres[700]")),
        ("process", "postgres[701]"),
    }


def test_a_bystander_that_ended_by_itself_spoils_the_recording(tmp_path: Path) -> None:
    made = company(tmp_path, READS)
    ended(made)
    with pytest.raises(RigError, match="dd ended early"):
        made.note()


@pytest.mark.parametrize(("tps", "ms", "is_fine"), [(148, 4.1, True), (149, 30.0, False), (110, 4.1, False)])
def test_a_recording_in_which_users_felt_the_bystanders_is_thrown_away(
    tmp_path: Path, tps: float, ms: float, is_fine: bool
) -> None:
    lines = [
        f"progress: {START.timestamp() + second:.1f} s, {tps if second > 8 else 150} tps, "
        f"lat {ms if second > 8 else 4.0} ms stddev 1\n"
        for second in range(18)
    ]
    load = tmp_path / "load.txt"
    load.write_text("".join(lines))
    made = company(tmp_path, READS)
    ended(made)
    at = [START + timedelta(seconds=second) for second in (0, 8, 9, 18)]
    made.trial = (numbers.Phase("healthy", *at[:2]), numbers.Phase("fault", *at[2:]))
    busy = numbers.Numbers({"other_util_pct": 98.0}, {}, {}, {}, {}, {})
    assert [one.is_true for one in made.shows(load, busy)] == [is_fine, True]
    idle = numbers.Numbers({"other_util_pct": 3.0}, {}, {}, {}, {}, {})
    assert [one.is_true for one in made.shows(load, idle)] == [is_fine, False]
