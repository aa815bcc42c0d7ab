"""Where a workload is named: shipped ones, workload files, other tools' job files; and what fio makes of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from leadline.app.measure.workloads import fio_job_text, notes_in_short, translation_of, translation_text, workload_of
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.workload import find_workload, parse_workload, profiles
from leadline.formats.json_documents import json_documents
from tests.conftest import ROOT

NEEDS_FIO = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
RUN_S = 5
# Rates low enough for any disk, so that counts are the load's and not the disk's; the first has no rate.
JOB = f"""\
[global]
direct=1
size=16m
runtime={RUN_S}s
time_based
group_reporting
new_group
[mixed]
rw=randrw
rwmixread=70
bssplit=4k/60:16k/40
thinktime=5ms
[split]
ioengine=libaio
iodepth=4
rw=randrw
bs=8k,16k
rate_iops=60,20
[both]
rw=randrw
bs=8k
rate_iops=15
numjobs=2
[sizes]
rw=randread
bssplit=4k/50:16k/50
rate_iops=150
[random]
rw=randrw
bs=4k
rwmixread=70
rate_iops=70,30
rate_process=poisson
[written]
rw=write
bs=32k
rate=1m
"""


def test_shipped_workloads_and_files_are_found(tmp_path: Path) -> None:
    for name in profiles():
        assert workload_of(name) == find_workload(name)
    path = tmp_path / "w.yaml"
    path.write_text("name: mine\nio: [{block: 8k}]\n")
    assert workload_of(str(path)).name == "mine"
    path.write_text("name: mine\nio: [{block: 8q}]\n")
    with pytest.raises(InputError, match=r"w\.yaml:2:"):
        workload_of(str(path))


def test_names_that_are_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no shipped workload"):
        workload_of("nothing#x")
    path = tmp_path / "w.yaml"
    path.write_text("name: mine\nio: [{}]\n")
    with pytest.raises(UsageError, match="name it alone"):
        workload_of(f"{path}#x")
    with pytest.raises(UsageError, match="fio does I/O only"):
        fio_job_text(workload_of("pgbench"))


def test_a_file_with_a_mark_in_its_name_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "job#2"
    path.write_text("[a]\nrw=read\n")
    assert workload_of(str(path)).name == "job-2"


def test_every_verb_takes_job_files() -> None:
    """One function finds the workload of a name: `workload_of`; the other one knows no job files."""
    others = [
        str(path.relative_to(ROOT))
        for folder in ("app", "faces")
        for path in (ROOT / "src" / "leadline" / folder).rglob("*.py")
        if "find_workload" in path.read_text()
    ]
    assert sorted(others) == [
        "src/leadline/app/measure/workloads.py",
        "src/leadline/faces/cli/verbs/bench/workloads.py",
    ]


def test_a_shipped_workload_is_printed_as_a_file() -> None:
    for name in profiles():
        text = translation_text(translation_of(name))
        assert parse_workload(text, "w.yaml") == find_workload(name)
        assert max(map(len, text.splitlines())) <= 100


def test_many_notes_are_shortened_in_a_plan() -> None:
    workload = workload_of("hci-8k-50-50").model_copy(update={"notes": tuple(map(str, range(20)))})
    assert len(notes_in_short(workload)) == 9
    assert notes_in_short(workload)[-1].startswith("and 12 more")


@NEEDS_FIO
@pytest.mark.real
def test_the_original_and_the_workload_do_the_same(tmp_path: Path) -> None:
    """fio runs the job file, and what it became; its two reports agree on counts, sizes and read shares."""
    path = tmp_path / "job.fio"
    path.write_text(JOB)
    originals, files = tmp_path / "original", tmp_path / "files"
    originals.mkdir()
    files.mkdir()
    words = ["fio", "--output-format=json", "--output=original.json", str(path)]
    subprocess.run(words, check=True, timeout=120, cwd=originals)
    before = reported(originals / "original.json")

    made = fio.plan(workload_of(str(path)), Target(str(files)))
    fio.prepare(made, files, lambda _: None)
    measured = fio.measure(made, Step("round-1", made.workload.timing.measure_s, 1), files, lambda _: True)
    fio.clean(made)
    after = reported(measured.files[0])

    assert set(before) == set(after) == {"mixed", "split", "both", "sizes", "random", "written"}
    for name, (count, size, share) in before.items():
        if name != "mixed":
            assert after[name][0] == pytest.approx(count, rel=0.2), name
        assert after[name][1] == pytest.approx(size, rel=0.25), name
        assert after[name][2] == pytest.approx(share, abs=0.08), name
    # A single rate is one of each direction and each process; bytes per second are requests of the size.
    assert before["both"][0] == pytest.approx(2 * 2 * 15 * RUN_S, rel=0.2)
    assert before["written"][0] == pytest.approx(32 * RUN_S, rel=0.2)


def reported(path: Path) -> dict[str, tuple[int, float, float]]:
    """Per job: requests, their mean size in bytes, the share of reads."""
    last: Any = json_documents(path.read_text(), "fio").documents[-1].value
    found = {}
    for job in last["jobs"]:
        reads, writes = job["read"], job["write"]
        count = reads["total_ios"] + writes["total_ios"]
        found[job["jobname"]] = (count, (reads["io_bytes"] + writes["io_bytes"]) / count, reads["total_ios"] / count)
    return found


@NEEDS_FIO
@pytest.mark.real
def test_bench_run_takes_a_job_file_and_keeps_the_notes(tmp_path: Path) -> None:
    (tmp_path / "on").mkdir()
    job = tmp_path / "load.vdb"
    job.write_text(
        "sd=sd1,lun=/dev/sdx,size=8m,openflags=o_direct,hitarea=1m\nwd=wd1,sd=sd1,rdpct=100\n"
        "rd=r1,wd=wd1,iorate=max\nrd=r2,wd=wd1,iorate=100,elapsed=2\n"
    )
    words = ["bench", "run", "load.vdb#r2", "--on", "on", "--seconds", "1", "--warm-up", "0", "--yes", "--json"]
    done = subprocess.run(
        [str(Path(sys.executable).parent / "leadline"), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "load.vdb:1: hitarea: left out" in done.stderr
    kept = json.loads(done.stdout)["run"]
    assert any("hitarea" in note for note in kept["workload"]["notes"])
    assert kept["workload"]["io"][0]["rate_iops"] == {"read": 100.0}
    assert list((tmp_path / "on").iterdir()) == []
