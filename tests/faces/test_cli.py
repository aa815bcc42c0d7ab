"""The command line as a user sees it: text, JSON, errors, exit statuses."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import pytest

import leadline
from leadline.core.model.vocabulary import Severity
from leadline.faces.cli.verbs import probe
from leadline.stores.incidents import IncidentStore, LiveIncident
from leadline.stores.runs import RunStore
from tests.command_line import BIN
from tests.command_line import leadline as run
from tests.conftest import ROOT, stand_in_for_fio
from tests.fio_servers import fio_server
from tests.traces import write_vscsi


def _verbs(package: str, words: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """The words of every verb and group of verbs -> its module."""
    found: dict[tuple[str, ...], str] = {}
    for entry in resources.files(package).iterdir():
        stem = entry.name.removesuffix(".py")
        if stem.startswith(("_", ".")):
            continue
        own = (*words, stem.rstrip("_").replace("_", "-"))
        found[own] = f"{package}.{stem}"
        if entry.is_dir():
            found |= _verbs(f"{package}.{stem}", own)
    return dict(sorted(found.items()))


VERBS = _verbs("leadline.faces.cli.verbs")


def document(*words: str, cwd: Path | None = None) -> dict[str, Any]:
    done = run(*words, "--json", cwd=cwd)
    assert done.returncode in (0, 1), done.stderr
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "cap.csv"
    done = run("generate", str(path), "--minutes", "10", "--fault", "cpu-contention:1:200-400")
    assert done.returncode == 0, done.stderr
    return path


def test_help_names_every_verb_and_fits_80_columns() -> None:
    done = run("--help")
    assert done.returncode == 0
    for verb in [words[0] for words in VERBS if len(words) == 1]:
        assert re.search(rf"^  {verb} ", done.stdout, re.MULTILINE), verb
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_of_a_verb_ends_with_examples(verb: tuple[str, ...]) -> None:
    done = run(*verb, "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


# Examples that load this machine, record it or simulate a great deal.
_REAL = re.compile(
    r"leadline (?:bench (?:density|hosts|protect --on|run)|bench sweep.*(?:--yes|--resume)|collect|lab run|trace replay"
    r"|probe --(?:on|observe-only|from probed)|simulate .*--check-real|watch(?:$| (?:run|check|init)))"
)


PROBES = [line.strip() for line in probe.EPILOG.splitlines() if line.strip()]


def _examples() -> list[Any]:
    lines = []
    for module in VERBS.values():
        epilog: str = import_module(module).EPILOG
        lines += [line.strip() for line in epilog.splitlines() if line.strip().startswith("leadline ")]
    return [pytest.param(line, marks=[pytest.mark.real] if _REAL.match(line) else []) for line in lines]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, fixtures: Path) -> Path:
    """A folder with files under the names the examples use."""
    folder = tmp_path_factory.mktemp("examples")
    run("generate", str(folder / "esxtop.csv"), "--minutes", "3", "--vms", "2")
    vms = folder / "esxtop.csv"
    vms.write_text(vms.read_text().replace("vm001", "db01"))
    (folder / "iostat.txt").write_bytes(next((fixtures / "iostat").glob("*x*.txt")).read_bytes())
    (folder / "inventory.yaml").write_text("leadline_inventory: 1\n")
    (folder / "leadline.toml").write_text("[rules.cpu-ready-high]\nwarn = 4.0\n")
    run("import", "esxtop.csv", "-o", "incident.parquet", cwd=folder)
    subprocess.run(["tar", "czf", "bundle.tar.gz", "esxtop.csv", "iostat.txt"], cwd=folder, check=True)
    (folder / "template.xml").write_text(
        '<sequence name="t"><group name="g"><step name="s" category="Mandatory"><action><type>Service</type>'
        "<params><serviceName>WSearch</serviceName><startMode>Disabled</startMode></params></action></step></group></sequence>"
    )
    (folder / "before.reg").write_text("Windows Registry Editor Version 5.00\n\n[HKEY_LOCAL_MACHINE\\SYSTEM]\n")
    (folder / "image" / "etc").mkdir(parents=True)
    run("guest", "apply", "--root", "image", "--yes", cwd=folder)  # examples run in any order: one reverts
    (folder / "scratch").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        stand_in_for_fio(patch)
        _measure(folder)
    write_vscsi(folder / "db01.vscsi", count=300, mean_gap_us=3000)
    (folder / "traces").mkdir()
    write_vscsi(folder / "traces" / "db02.vscsi", count=300)
    (folder / "job.fio").write_text("[global]\nrw=randread\nbs=8k\nsize=64m\nruntime=60\n[data]\niodepth=4\n")
    (folder / "runs.vdbench").write_text(
        "sd=sd1,lun=/dev/sdx\nwd=wd1,sd=sd1,rdpct=70\nrd=rd1,wd=wd1,iorate=max\nrd=rd2,wd=wd1,iorate=500\n"
    )
    (folder / "export.csv").write_text("time,cpu idle\n2026-11-20T08:00:00Z,90\n2026-11-20T08:00:10Z,80\n")
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "my.yaml").write_text(
        "name: my\nio_settings: {working_set: 4m}\nio: [{oio: 4}]\ntiming: {warm_up_s: 0, measure_s: 2, rounds: 1}\n"
    )
    _done(
        "calibrate",
        str(ROOT / "examples/incidents/throttled-wal-disk/iostat.txt"),
        "--entity",
        "loop1",
        "-o",
        "mine.yaml",
        cwd=folder,
    )
    return folder


@pytest.fixture(scope="module")
def watched(bench: Path) -> Path:
    """The same folder with a watch that has run, a receiver, and an incident."""
    (bench / "watch.yaml").write_text(
        "sources: [{name: here, collector: linux}]\nstore: {folder: watch-store}\npage: {listen: ''}\n"
        "tell: [{name: oncall, notifier: run-command, settings: {command: ['true']}}]\n"
    )
    subprocess.run([BIN, "watch", "run", "--seconds", "4", "-q"], cwd=bench, check=True, timeout=100)
    kept = IncidentStore(bench / "watch-store")
    now_ns = time.time_ns()
    kept.save(LiveIncident("20261126-120000-1", now_ns, now_ns, None, Severity.HIGH, "x", "vm:db01", "title", "text"))
    return bench


def _measure(folder: Path) -> None:
    """Runs and a sweep for the examples that show, compare or resume some."""
    load = ("--set-size", "8m", "--seconds", "2", "--rounds", "1", "--warm-up", "0", "--yes")
    for baseline in ("before-upgrade", "passing", "after-upgrade"):
        _done("bench", "run", "hci-8k-50-50", "--on", "scratch", *load, "--keep", baseline, cwd=folder)
    _done("bench", "sweep", "hci-4k-read", "--on", "scratch", "--oio", "1", *load, cwd=folder)


def _done(*words: str, cwd: Path) -> None:
    done = run(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def served(bench: Path) -> Iterator[Path]:
    """The same folder with a host that takes load."""
    with fio_server(bench) as address:
        (bench / "hosts.txt").write_text(f"{address} {bench / 'scratch'}\n")
        yield bench


@pytest.mark.parametrize("example", _examples())
def test_the_examples_of_the_help_work(
    example: str, bench: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "hosts.txt" in example:
        request.getfixturevalue("served")
    if "--add" in example:
        RunStore().mark("tonight", [])  # examples run in any order: what it held may be of another load
    if "--suggest-map" in example:
        (bench / "export.map.yaml").unlink(missing_ok=True)  # of the example below
    elif "--map" in example and not (bench / "export.map.yaml").exists():
        _done("import", "--suggest-map", "export.csv", "-o", "export.map.yaml", cwd=bench)
    if (output := re.search(r"^leadline probe .*-o (\w+)", example)) is not None:
        shutil.rmtree(bench / output[1], ignore_errors=True)  # of the example below, or of an earlier try of this one
    elif "--from probed" in example and not (bench / "probed").exists():
        _done(*shlex.split(next(one for one in PROBES if "-o probed" in one))[1:], cwd=bench)
    words, folder = shlex.split(example.split("   ", maxsplit=1)[0])[1:], bench
    if words[0] == "watch":
        request.getfixturevalue("watched")
        if words[1:2] in ([], ["run"]):
            words = ["watch", "run", *words[2:], "--seconds", "1", "--no-page"]  # as it is typed it runs for ever
        if words == ["watch", "init"]:
            folder = tmp_path
    done = run(*words, cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr


def test_diagnose_says_what_was_injected(faulty: Path) -> None:
    found = document("diagnose", str(faulty))
    top = found["findings"][0]
    assert found["schema"] == "leadline.diagnosis/2"
    assert (top["rule"], top["entity"]) == ("cpu-ready-high", "host:esx01.example/vm:vm002")
    assert top["windows"][0]["duration_s"] == 200.0
    assert {layer["layer"]: layer["state"] for layer in found["layers"]}["hypervisor-cpu"] == "convicted"
    assert top["evidence"][0]["source"] == str(faulty)
    assert top["remedy"]


def test_text_is_plain_and_fits_80_columns_when_piped(faulty: Path) -> None:
    done = run("diagnose", str(faulty))
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.startswith("No, it is not the disk: ")
    assert "leadline explain cpu-ready-high" in " ".join(done.stdout.split())


def test_fail_on_sets_the_exit_status(faulty: Path) -> None:
    assert run("diagnose", str(faulty), "--fail-on", "high").returncode == 1
    assert run("diagnose", str(faulty), "--fail-on", "critical").returncode == 0


def test_a_profile_moves_a_limit(faulty: Path, tmp_path: Path) -> None:
    (tmp_path / "leadline.toml").write_text("[rules.cpu-ready-high]\nwarn = 90.0\ncrit = 95.0\n")
    found = document("diagnose", str(faulty), cwd=tmp_path)
    assert "cpu-ready-high" not in {finding["rule"] for finding in found["findings"]}


def test_a_clock_offset_moves_the_window(faulty: Path) -> None:
    plain, moved = (
        document("diagnose", str(faulty), *words)["findings"][0]["windows"][0]["start"]
        for words in ([], ["--clock-offset", "cap.csv=60"])
    )
    assert int(moved[14:16]) == int(plain[14:16]) + 1


def test_an_incident_is_given_by_its_time(faulty: Path) -> None:
    done = run("diagnose", str(faulty), "--incident", "200s..400s", "--normal", "0s..150s", "--quiet")
    assert done.returncode == 0, done.stderr
    other = run("diagnose", str(faulty), "--incident", "20s..150s", "--quiet")
    assert "1. high" not in other.stdout  # it did not hold then


def test_saved_captures_diagnose_the_same(faulty: Path, tmp_path: Path) -> None:
    saved = tmp_path / "c.parquet"
    assert run("import", str(faulty), "-o", str(saved)).returncode == 0
    one, other = document("diagnose", str(faulty)), document("diagnose", str(saved))
    assert [f["rule"] for f in one["findings"]] == [f["rule"] for f in other["findings"]]
    assert one["headline"] == other["headline"]


def test_show_exports(faulty: Path, tmp_path: Path) -> None:
    words = ("show", str(faulty), "-m", "cpu_ready_pct", "-e", "vm:vm002/*")
    done = run(*words, "-o", str(tmp_path / "r.csv"))
    assert done.returncode == 0
    lines = (tmp_path / "r.csv").read_text().splitlines()
    assert lines[0] == "time,entity,metric,unit,value,since_boot"
    assert all(line.endswith(",false") for line in lines[1:])
    assert len(lines) == 1 + 4 * 120
    assert all("/vcpu:" in line for line in lines[1:])
    assert {s["unit"] for s in document(*words)["series"]} == {"pct"}


def test_show_prints_results_where_there_is_no_series() -> None:
    seeds = ROOT / "tests" / "importers" / "seeds"
    path = str(seeds / "sysbench-0.4-fileio.txt")
    done = run("show", path)
    assert done.returncode == 0
    assert "operation" in done.stdout
    assert document("show", path)["results"][0]["tool"] == "sysbench"
    refused = run("show", "-m", "disk_iops", path)
    assert refused.returncode == 2
    assert "results and no series" in refused.stderr


def test_show_says_what_a_file_of_facts_is_good_for() -> None:
    refused = run("show", str(ROOT / "tests" / "importers" / "seeds" / "pg_settings.csv"))
    assert refused.returncode == 2
    assert "facts and no series" in refused.stderr
    assert "leadline audit" in refused.stderr


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_printed(option: str) -> None:
    done = run(option)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"leadline {leadline.__version__}\n", "")


def test_planners_are_listed_as_json_too() -> None:
    found = document("plan")
    assert found["schema"] == "leadline.planners/1"
    assert {own["name"] for own in found["planners"]} >= {"qos", "vsan"}
    assert all(own["about"] for own in found["planners"])
    example = document("plan", "protect", "--example")
    assert example["inputs"]["schemes"] == ["3x", "3+2"]


def test_averages_since_boot_are_marked_wherever_series_go(tmp_path: Path) -> None:
    recording = ROOT / "tests/fixtures/iostat/x-t-iso.txt"
    words = ("show", str(recording), "-m", "disk_reads_per_s")
    done = run(*words, "-o", str(tmp_path / "r.csv"))
    rows = list(csv.DictReader((tmp_path / "r.csv").read_text().splitlines()))
    first = min(row["time"] for row in rows)
    assert {row["since_boot"] for row in rows if row["time"] == first} == {"true"}
    assert {row["since_boot"] for row in rows if row["time"] > first} == {"false"}
    assert "an average since boot." in done.stdout
    shown = document(*words)["series"]
    assert {own["since_boot_left_out"] for own in shown} == {1}
    frame = leadline.open(recording).series("disk_reads_per_s")
    assert frame.filter(frame["since_boot"]).height == len(shown)
    assert [own["count"] for own in shown] == [frame.height // len(shown) - 1] * len(shown)


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        (["diagnose", "no-such-file"], 3, "no such file"),
        (["diagnose", "{garbage}"], 3, "expected a recording"),
        (["diagnose", "{empty}"], 3, "is empty"),
        (["diagnose", "{folder}"], 3, "no file that is a known recording"),
        (["explain", "cpu-redy-high"], 2, "Near: cpu-ready-high"),
        (["show", "{faulty}", "-m", "nothing"], 2, "no series"),
        (["show", "{faulty}", "-o", "x.docx"], 2, ".parquet or .csv"),
        (["diagnose", "{faulty}", "--clock-offset", "x"], 2, "FILE=SECONDS"),
        (["diagnose", "{faulty}", "--incident", "400s..200s"], 2, "Exchange the two times"),
        (["diagnose", "{faulty}", "--normal", "1s..100s"], 2, "--normal: no --incident"),
        (["diagnose", "{faulty}", "--profile", "{garbage}"], 2, "TOML"),
        (["diagnose", "{faulty}", "--clock-offset", "a.csv=nan"], 2, "FILE=SECONDS"),
        (["diagnose", "{faulty}", "--clock-offset", "a.csv=-inf"], 2, "FILE=SECONDS"),
        (["diagnose", "{faulty}", "--clock-offset", "a.csv=1e300"], 2, "at most a century"),
        (["generate", "x.csv", "--minutes", "nan"], 2, "--minutes: nan; expected a finite number"),
        (["generate", "x.csv", "--interval", "1e300"], 2, "--interval: 1e+300; expected a finite number"),
        (["generate", "x.csv", "--vms", "9" * 400], 2, "--vms"),
        (["diagnose", "x" * 256], 2, "PATHS: xxxxxxxxxx"),
        (["diagnose", "a/" * 2500], 2, "a name of 4999 bytes; expected at most 4095"),
        (["diagnose", "{faulty}", "--html", "y" * 300], 2, "--html: yyyyyyy"),
        (["probe", "--from", "no-such-folder"], 3, "no such folder"),
        (["plan", "cpu", ""], 2, "a word of the command: an empty text"),
        (["bench", "run", "hci-4k-read", "--hosts", "hosts.txt", "--wal", "x"], 2, "--wal: with --hosts"),
        (["bench", "run", "hci-4k-read", "--hosts", "hosts.txt", "--html", "x.html"], 2, "--html: with --hosts"),
        (["bench", "run", "hci-4k-read", "--hosts", "hosts.txt", "--keep", "monday"], 2, "--keep: with --hosts"),
        (["bench", "run", "hci-4k-read", "--hosts", "hosts.txt", "--repeat", "2"], 2, "--repeat: with --hosts"),
        (
            ["bench", "run", "hci-4k-read", "--hosts", "hosts.txt", "--fail-on-worse"],
            2,
            "--fail-on-worse: with --hosts",
        ),
        (["bench", "run", "hci-4k-read", "--on", ""], 2, "--on: an empty text"),
        (["diagnose", "{faulty}", "--html="], 2, "--html: an empty text"),
        (["rules", "--layer", "cloud"], 2, "hypervisor-cpu"),
        (["generate", "x.csv", "--vms", "0"], 2, "at least 1"),
        (["generate", "x.csv", "--fault", "nonsense"], 2, "no such unit"),
        (["generate", "x.csv", "--fault", "cpu-contention:99"], 2, "counted from 0"),
        (["generate", "x.csv", "--fault", "cpu-contention:0:9-1"], 2, "a span within"),
        (["generate", "x.csv", "--fault", "cpu-contention:a"], 2, "NAME[:TARGET"),
        (["generate", "x.csv", "--columns", "10"], 2, "at least"),
        (["nonsense"], 2, "nonsense"),
        (["diagnose"], 2, "PATHS"),
    ],
)
def test_mistakes_are_one_line_and_a_status(
    words: list[str], status: int, part: str, faulty: Path, tmp_path: Path
) -> None:
    (tmp_path / "garbage").write_text("hello, I am not a recording\n")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("nothing")
    names = {"garbage": "garbage", "empty": "empty", "folder": "folder", "faulty": str(faulty)}
    done = run(*(word.format(**names) for word in words), cwd=tmp_path)
    assert done.returncode == status
    assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not list(tmp_path.glob("*x.csv*"))


def test_an_error_as_json() -> None:
    done = run("diagnose", "no-such-file", "--json")
    assert done.returncode == 3
    error = json.loads(done.stdout)["error"]
    assert {"where", "found", "expected", "advice", "exit_status"} <= set(error)


def test_a_closed_pipe_is_no_error() -> None:
    done = subprocess.run(f"{BIN} metrics | head -1", shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_doctor_says_what_a_missing_tool_disables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    found = document("doctor")
    fio = next(tool for tool in found["tools"] if tool["name"] == "fio")
    assert not fio["present"]
    assert fio["install"] == "apt-get install fio"
    assert fio["disables"]


@pytest.mark.parametrize(
    ("words", "lists"),
    [
        (["show", "--metric", "guest_disk_await_ms_read"], "leadline import lists them"),
        (["audit"], "--all"),
        (["diagnose"], "--all"),
    ],
)
def test_notes_are_one_line_that_says_what_lists_them(words: list[str], lists: str) -> None:
    done = run(words[0], ROOT / "examples/incidents/throttled-wal-disk", *words[1:])
    assert re.fullmatch(rf".+: .+\. \d+ more notes?: {lists}\n", done.stderr), done.stderr


@pytest.mark.parametrize("words", [["import"], ["audit", "--all"]])
def test_all_notes_are_said_where_they_are_asked_for(words: list[str]) -> None:
    done = run(words[0], ROOT / "examples/incidents/throttled-wal-disk", *words[1:])
    assert len(done.stderr.splitlines()) >= 2
    assert "more note" not in done.stderr
