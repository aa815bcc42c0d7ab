"""`leadline trace` as a user sees it: text, JSON, errors, exit statuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.core.model.workload import find_workload
from tests.command_line import leadline as run
from tests.faces.test_cli import document
from tests.traces import vscsi_records, write_vscsi


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "db01.vscsi"
    write_vscsi(path, 3001)
    return path


def test_characterise_prints_what_vscsistats_prints(trace: Path) -> None:
    done = run("trace", "characterise", str(trace))
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    for part in ("3,001 requests", "IO lengths in bytes", "latency of IOs", "burstiness", "misses of an LRU cache"):
        assert part in done.stdout
    short = run("trace", "characterise", str(trace), "--no-histograms")
    assert "IO lengths" not in short.stdout


def test_characterise_as_json(trace: Path) -> None:
    found = document("trace", "characterise", str(trace))
    assert found["schema"] == "leadline.trace/2"
    disk = found["traces"][0]["disks"][0]
    assert disk["facts"]["read_count"] + disk["facts"]["write_count"] == 3001
    sizes = next(part for part in disk["histograms"] if (part["kind"], part["way"]) == ("io_size_bytes", "all"))
    assert sum(count for _, count in sizes["buckets"]) == 3001
    assert sizes["buckets"][-1][0] is None
    assert disk["miss_ratio_curve"][0]["cache_bytes"] == 2**20


def test_a_model_is_a_workload_file(trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "db01.yaml"
    done = run("trace", "model", str(trace), "-o", str(path))
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stderr.splitlines())) <= 80
    assert find_workload(str(path)).io[0].working_set == 15 * 2**20
    assert "# 1 stream (all): mean distance" in path.read_text()
    printed = run("trace", "model", str(trace), "--quiet")
    assert printed.stdout == path.read_text().partition("\n")[2], "the file begins with a line that says who wrote it"
    found = document("trace", "model", str(trace))
    assert (found["schema"], found["is_within"]) == ("leadline.model/1", True)


@pytest.mark.real
def test_a_replay_says_how_like_it_was(trace: Path, tmp_path: Path) -> None:
    found = document("trace", "replay", str(trace), "--on", str(tmp_path), "--seconds", "1", "--yes")
    assert found["schema"] == "leadline.replay/2"
    assert {part["name"] for part in found["fidelity"]} >= {"size", "seek distance", "interarrival", "latency"}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        (["characterise", "{garbage}"], 3, "no I/O trace"),
        (["characterise", "{empty}"], 3, "is empty"),
        (["characterise", "{none}"], 3, "cannot open"),
        (["characterise", "{damaged}"], 3, "byte 360: a record that is not of version 2"),
        (["model", "{garbage}"], 3, "no I/O trace"),
        (["model", "{trace}", "--within", "2"], 2, "--within"),
        (["model", "{trace}", "--disk", "x"], 2, "one of db01"),
        (["model", "{trace}", "-o", "{none}/x.yaml"], 2, "there is no folder"),
        (["replay", "{trace}", "--on", "{folder}"], 2, "nobody to ask"),
        (["replay", "{trace}", "--on", "{held}", "--yes"], 2, "--destroy-data"),
        (["replay", "{trace}", "--on", "{folder}", "--set-size", "much"], 2, "--set-size"),
        (["replay", "{trace}", "--on", "{folder}", "--speed", "0", "--yes"], 2, "--speed"),
        (["replay", "{trace}", "--on", "{folder}", "--speed", "200", "--yes"], 2, "Write 200%"),
    ],
)
def test_mistakes_are_one_line_and_a_status(
    words: list[str], status: int, part: str, trace: Path, tmp_path: Path
) -> None:
    names = {name: str(tmp_path / name) for name in ("garbage", "empty", "none", "damaged", "folder", "held")}
    Path(names["garbage"]).write_text("hello, I am no trace\n")
    Path(names["empty"]).touch()
    Path(names["folder"]).mkdir()
    Path(names["held"]).write_bytes(b"x" * 2**21)
    raw = bytearray(vscsi_records(40).tobytes())
    del raw[360:370]  # ten bytes are missing in the tenth record
    Path(names["damaged"]).write_bytes(raw)
    done = run("trace", *(word.format(trace=str(trace), **names) for word in words))
    assert done.returncode == status, done.stderr
    assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not list(Path(names["folder"]).iterdir())
    assert Path(names["held"]).read_bytes() == b"x" * 2**21
