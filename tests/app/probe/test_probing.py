"""The probe on a disk with a real limit: QEMU's block layer in user space, reached over NBD."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benches.bench_limit import RULE, from_counters, pulsed
from benches.throttled import missing, throttled_disk
from leadline.app.measure.rounds import SILENT
from leadline.app.probe.model import Pulse, Ruling
from leadline.app.probe.probing import PulseShape, block_device_of, plan, probe, repeated
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import InputError, UsageError
from leadline.core.system.tools import find_program
from leadline.faces.cli.main import build_app
from tests.conftest import ROOT


@pytest.fixture(params=[200, 400])
def capped(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, str]]:
    """A disk capped at so many operations per second, and its address."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with throttled_disk(tmp_path, request.param, 64 * 2**20) as address:
        yield request.param, address


@pytest.mark.real
@pytest.mark.slow
def test_a_real_cap_is_found_and_not_taken_for_a_slow_disk(capped: tuple[int, str], tmp_path: Path) -> None:
    cap, address = capped
    made = plan(
        Target(address, destroy=address),
        tmp_path / "probe",
        seconds=(0.0, 8.0),
        limit=float(cap),
        size="4m",
        shape=PulseShape(outstanding=116),
    )
    found = probe(made, SILENT, lambda: None)
    assert found.verdict is not None
    hard, gentle, at_limit = found.pulses
    assert hard.per_s == pytest.approx(cap, rel=0.03)
    assert hard.mean_ms == pytest.approx(116_000 / cap, rel=0.1)
    assert gentle.mean_ms < 20.0
    assert at_limit.per_s == pytest.approx(cap, rel=0.05)
    assert found.verdict.is_limit
    assert found.verdict.ruling is not Ruling.CONVICTED


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(missing(as_device=True) is not None, reason=missing(as_device=True) or "")
def test_the_rule_says_limit_from_the_kernels_counters(tmp_path: Path) -> None:
    """`make bench-limit` does both caps with the rule's own 60 s."""
    found, disk = pulsed(400, 20.0, tmp_path)
    first = from_counters(tmp_path, disk, 15.0)[0]
    assert first.rule == RULE
    assert "capped at about " in first.summary
    assert first.evidence[0].value == pytest.approx(400, rel=0.03)
    assert found.verdict is not None
    assert found.verdict.is_limit


@pytest.mark.real
def test_the_pulses_of_the_article_are_repeated(tmp_path: Path) -> None:
    on = tmp_path / "on"
    on.mkdir()
    words = ["probe", "--article", "--on", str(on), "--seconds", "1.5", "--pulse", "1.5", "--set-size", "8m", "--yes"]
    done = CliRunner().invoke(build_app(), [*words, "-o", str(tmp_path / "out"), "--json"])
    assert done.exit_code in (0, 1), done.output
    pulses = json.loads(done.stdout)["pulses"]
    assert [pulse["offered_per_s"] is None for pulse in pulses] == [True, False] * 3
    assert {pulse["outstanding"] for pulse in pulses} == {256}
    assert {round(pulse["size_bytes"]) for pulse in pulses} == {4096}


def test_a_disk_that_differs_from_pulse_to_pulse_is_noted() -> None:
    def hard(rate: float, offered: float | None = None) -> Pulse:
        return Pulse(offered, rate, 1.0, 2.0, 1.0, 32, 4096.0, 70.0)

    assert repeated([hard(1000.0), hard(300.0, 300.0), hard(950.0)]) == []
    (note,) = repeated([hard(1000.0), hard(700.0, 700.0), hard(500.0)])
    assert note.startswith("as hard as possible the disk did 1,000, 500 per second")


@pytest.mark.real
def test_observing_never_writes(tmp_path: Path) -> None:
    on = tmp_path / "on"
    on.mkdir()
    done = CliRunner().invoke(
        build_app(),
        ["probe", "--observe-only", "--on", str(on), "--seconds", "1.5", "-o", str(tmp_path / "out"), "--json"],
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["pulses"], found["verdict"]) == ([], None)
    assert list(on.iterdir()) == []


COLUMNS = "Device r/s rkB/s r_await rareq-sz w/s wkB/s w_await wareq-sz aqu-sz %util"


def iostat(
    path: Path, rates: list[float], awaits: list[float], *, minute: int, disk: str = "sda", kib: float = 8.0
) -> Path:
    """A recording of reads of a disk, a second each, as ``iostat -x -t 1`` prints it."""
    lines = ["Linux 6.8.0 (db01) \t2026-11-20 \t_x86_64_\t(2 CPU)", ""]
    for second, (rate, wait) in enumerate(zip([0.0, *rates], [0.0, *awaits], strict=True)):
        lines += [f"2026-11-20T10:{minute + second // 60:02}:{second % 60:02}+00:00", COLUMNS]
        lines += [f"{disk} {rate:.2f} {rate * kib:.2f} {wait:.2f} {kib:.2f} 0.00 0.00 0.00 0.00 1.00 50.00", ""]
    path.write_text("\n".join(lines))
    return path


HARD, GENTLE, NONE = [1000.0, 1002.0, 999.0, 1001.0, 1000.0], [700.0, 701.0, 699.0, 700.0, 700.0], [0.0, 0.0, 0.0]
PULSES = ([*NONE, *HARD, *NONE, *GENTLE, *NONE], [*NONE, *[32.0] * 5, *NONE, *[0.8] * 5, *NONE])


def offline(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(build_app(), ["probe", *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("rate", "wait", "ruling", "words"),
    [
        (120.0, 1.2, Ruling.CLEARED, "used 120 (p95) of 1,000 IOPS at 1.2 ms"),
        (980.0, 30.0, Ruling.CONVICTED, "its IOPS limit, not a slow medium"),
        (300.0, 25.0, Ruling.SUSPECTED, "neighbours"),
        (27_316.0, 0.3, Ruling.UNDECIDED, "did 27,316 IOPS (p95), and the pulses only 1,000"),
    ],
)
def test_two_recordings_have_the_verdict_and_the_page_of_a_probe(
    rate: float, wait: float, ruling: Ruling, words: str, tmp_path: Path
) -> None:
    quiet = iostat(tmp_path / "quiet.txt", [rate] * 20, [wait] * 20, minute=0)
    second = iostat(tmp_path / "pulsed.txt", *PULSES, minute=5)
    page = tmp_path / "probe.html"
    found = offline("--from", str(quiet), "--from", str(second), "--html", str(page))
    assert found["verdict"]["ruling"] == ruling
    assert words in found["verdict"]["sentence"]
    assert "%" not in found["verdict"]["sentence"]
    hard, gentle = found["pulses"]
    assert (hard["offered_per_s"], round(hard["per_s"]), hard["outstanding"]) == (None, 1000, 32)
    assert (round(gentle["per_s"]), gentle["mean_ms"]) == (700, pytest.approx(0.8))
    text = page.read_text()
    assert ("Not decided" if ruling is Ruling.UNDECIDED else f"The disk is {ruling.value}") in text
    assert "pulse, as hard as possible" in text
    shown = CliRunner().invoke(build_app(), ["probe", "--from", str(quiet), "--from", str(second)])
    assert "not measured" not in shown.stdout
    assert "nan" not in shown.stdout


def test_what_cannot_be_two_rounds_of_one_disk_is_not_decided(tmp_path: Path) -> None:
    quiet = iostat(tmp_path / "quiet.txt", [120.0] * 20, [1.2] * 20, minute=0)
    other = iostat(tmp_path / "other.txt", *PULSES, minute=5, disk="sdb")
    beside = iostat(tmp_path / "beside.txt", *PULSES, minute=0)
    uneven = iostat(tmp_path / "uneven.txt", [10.0, 500.0, 90.0, 1000.0, 40.0] * 3, [1.0] * 15, minute=5)
    for second, words in (
        (other, "the workload was watched on sda, and the pulses ran on sdb"),
        (beside, "both recordings are of the same time"),
        (uneven, "it holds no pulse"),
        (quiet, "both recordings are of the same time"),
    ):
        found = offline("--from", str(quiet), "--from", str(second))["verdict"]
        assert (found["ruling"], words in found["sentence"]) == (Ruling.UNDECIDED, True), found["sentence"]
    small = iostat(tmp_path / "small.txt", [5000.0] * 20, [1.2] * 20, minute=0, kib=4.0)
    large = iostat(tmp_path / "pulsed.txt", *PULSES, minute=5)
    found = offline("--from", str(small), "--from", str(large))["verdict"]
    assert found["ruling"] == Ruling.UNDECIDED


def test_recordings_that_are_none(tmp_path: Path) -> None:
    quiet = ROOT / "examples" / "incidents" / "healthy" / "iostat.json"
    assert offline("--from", str(quiet), "--from", str(quiet))["verdict"]["ruling"] == Ruling.UNDECIDED
    with pytest.raises(UsageError, match="two: of the workload"):
        CliRunner().invoke(build_app(), ["probe", "--from", str(quiet)], catch_exceptions=False)
    shutil.copy(ROOT / "examples" / "incidents" / "healthy" / "pg_settings.csv", tmp_path / "no-disk.csv")
    for words in ([str(tmp_path / "no-disk.csv"), str(quiet)], [str(quiet), str(tmp_path / "no-disk.csv")]):
        with pytest.raises(InputError, match="no disk"):
            offline("--from", words[0], "--from", words[1])


@pytest.mark.real
def test_a_probe_judged_again_from_its_folder_is_the_same(tmp_path: Path) -> None:
    if find_program("fio") is None:
        pytest.skip("fio is not installed")
    on, folder = tmp_path / "on", tmp_path / "probed"
    on.mkdir()
    pages = [tmp_path / "live.html", tmp_path / "again.html"]
    words = ["--on", str(on), "--seconds", "3", "--pulse", "3", "--set-size", "16m", "--yes", "--iops-limit", "500"]
    live = offline(*words, "-o", str(folder), "--html", str(pages[0]))
    again = offline("--from", str(folder), "--html", str(pages[1]))
    both = offline("--from", str(folder / "round-1"), "--from", str(folder / "round-2"))
    assert live["verdict"] == again["verdict"] == both["verdict"]
    assert live["observed"] == again["observed"]
    assert live["findings"] == again["findings"]
    for one, other in zip(live["pulses"], again["pulses"], strict=True):
        assert {k: v for k, v in one.items() if k != "offered_per_s"} == {
            k: v for k, v in other.items() if k != "offered_per_s"
        }
        assert (one["offered_per_s"] is None) == (other["offered_per_s"] is None)
    headings = [re.findall(r"<h1[^>]*>(.*?)</h1>", page.read_text(), re.DOTALL) for page in pages]
    phases = [sorted(set(re.findall(r"pulse, [\w ,]+", page.read_text()))) for page in pages]
    assert headings[0] == headings[1]
    assert phases[0] == phases[1] != []


@pytest.mark.parametrize("facts", ["{}", "[1]", "none", '{"target": "x", "disk": 1, "iops_limit": "many"}'])
def test_facts_that_are_damaged_are_told(facts: str, tmp_path: Path) -> None:
    for name in ("round-1", "round-2"):
        (tmp_path / name).mkdir()
    (tmp_path / "probe.json").write_text(facts)
    with pytest.raises(InputError, match="no facts of a probe"):
        offline("--from", str(tmp_path))


def test_nobody_to_ask_and_data_nobody_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--yes"):
        CliRunner().invoke(build_app(), ["probe", "--on", str(tmp_path), "--set-size", "1m"], catch_exceptions=False)
    held = tmp_path / "held"
    held.write_bytes(b"x" * 2**21)
    with pytest.raises(UsageError, match="--destroy-data"):
        CliRunner().invoke(build_app(), ["probe", "--on", str(held), "--yes"], catch_exceptions=False)
    assert block_device_of(str(tmp_path / "none")) is None
