"""The probe on a disk with a real limit: QEMU's block layer in user space, reached over NBD."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benches.bench_limit import RULE, from_counters, pulsed
from benches.throttled import missing, throttled_disk
from leadline.app.benching import SILENT
from leadline.app.probing import block_device_of, plan, probe
from leadline.core.benchmark import Target
from leadline.core.errors import InputError, UsageError
from leadline.core.probe import Ruling
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
        outstanding=116,
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
    assert "by a limit" in first.summary
    assert first.evidence[0].value == pytest.approx(400, rel=0.03)
    assert found.verdict is not None
    assert found.verdict.is_limit


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


def test_offline_from_two_recordings(tmp_path: Path) -> None:
    quiet = ROOT / "examples" / "incidents" / "healthy" / "iostat.json"
    done = CliRunner().invoke(build_app(), ["probe", "--from", str(quiet), "--from", str(quiet), "--json"])
    assert done.exit_code == 0, done.output
    assert "of" in json.loads(done.stdout)["sentence"]
    with pytest.raises(UsageError, match="two: of the workload"):
        CliRunner().invoke(build_app(), ["probe", "--from", str(quiet)], catch_exceptions=False)
    shutil.copy(ROOT / "examples" / "incidents" / "healthy" / "pg_settings.csv", tmp_path / "no-disk.csv")
    with pytest.raises(InputError, match="no disk"):
        words = ["probe", "--from", str(tmp_path / "no-disk.csv"), "--from", str(quiet)]
        CliRunner().invoke(build_app(), words, catch_exceptions=False)


def test_nobody_to_ask_and_data_nobody_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--yes"):
        CliRunner().invoke(build_app(), ["probe", "--on", str(tmp_path), "--set-size", "1m"], catch_exceptions=False)
    held = tmp_path / "held"
    held.write_bytes(b"x" * 2**21)
    with pytest.raises(UsageError, match="--destroy-data"):
        CliRunner().invoke(build_app(), ["probe", "--on", str(held), "--yes"], catch_exceptions=False)
    assert block_device_of(str(tmp_path / "none")) is None
