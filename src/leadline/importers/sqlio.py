r"""SQLIO: the rate and latency of one load on a disk of Windows, until DiskSpd replaced it.

Reads:
    What ``sqlio.exe`` 1.5 prints, with ``-LS`` or ``-LP`` (latency) or without, one or many runs in one file.

Sample:
    .. code-block:: text

        sqlio v1.5.SG
        32 threads writing for 30 secs to file E:\Testfile.dat
                using 8KB sequential IOs
                enabling multiple I/Os per thread with 8 outstanding
        CUMULATIVE DATA:
        throughput metrics:
        IOs/sec:  7851.80
        MBs/sec:    61.34
        latency metrics:
        Avg_Latency(ms): 3

Lost:
    The histogram, in whole percent. When it ran: runs are taken to end when the file was written, one after the other.

Units:
    MB of 2**20 bytes. Latency is printed in whole milliseconds: where the number under way is known, the mean is taken
    from it and the rate, as long as it agrees with what is printed.

Sources:
    Microsoft, SQLIO readme; Linchi Shea, Parse the sqlio.exe output.
    J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import NAN, add_columns
from leadline.formats.printed import number_of

META = ImporterMeta(
    tool="SQLIO",
    marks=("ios/sec:",),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "IOs/sec": Field("job_iops", "per_s"),
        "MBs/sec": Field("job_mib_per_s", "mib_per_s"),
        "Avg_Latency(ms)": Field("job_latency_ms", "ms"),
        "Max_Latency(ms)": Field("job_latency_ms_max", "ms"),
    },
    record="sqlio -kW -t2 -o8 -s60 -frandom -b8 -LS -BN E:\\testfile.dat > sqlio.txt; better: diskspd",
)

_THREADS = re.compile(r"(\d{1,5}) threads? (reading|writing) for (\d{1,9}) secs (?:to|from) files? (.{1,200})")
_BLOCK = re.compile(r"using (\d{1,8})KB (random|sequential) IOs")
_OUTSTANDING = re.compile(r"enabling multiple I/Os per thread with (\d{1,6}) outstanding")
_VERSION = re.compile(r"sqlio v(\S{1,20})")
_NUMBER = re.compile(
    r"(IOs/sec|MBs/sec|Min_Latency\(ms\)|Avg_Latency\(ms\)|Max_Latency\(ms\)): {0,12}(\d{1,12}(?:\.\d{1,6})?)"
)


@dataclass(slots=True)
class _SqlioRun:
    """One run; numbers by the name that is printed before them."""

    threads: int = 0
    way: str = ""
    duration_s: float = NAN
    file: str = ""
    block_kib: int = 0
    pattern: str = ""
    outstanding: int = 0
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def latency_ms(self) -> float:
        """The mean: from rate and requests under way where that agrees with what is printed in whole ms."""
        printed = self.numbers.get("Avg_Latency(ms)", NAN)
        under_way = self.threads * max(self.outstanding, 1)
        reckoned = 1000.0 * under_way / self.numbers["IOs/sec"] if self.threads else NAN
        return reckoned if not abs(printed - reckoned) > 1.0 and np.isfinite(reckoned) else printed


def sniff(source: Source) -> int:
    """Sure by IOs/sec above MBs/sec, and another line that only SQLIO prints."""
    text = source.head_text
    is_own = _VERSION.search(text) or "CUMULATIVE DATA:" in text or _THREADS.search(text)
    return 93 if "IOs/sec:" in text and "MBs/sec:" in text and is_own else 0


def read(source: Source, request: Request) -> Capture:
    """A result and a sample for each run.

    Raises:
        InputError: no run has a rate.
    """
    builder = CaptureBuilder(source.name, "sqlio", META.tool)
    version = _VERSION.search(source.head_text)
    runs = _runs(source)
    sound = [
        run for run in runs if run.numbers.get("IOs/sec", 0.0) > 0 and np.isfinite(run.numbers.get("MBs/sec", NAN))
    ]
    if not sound:
        raise InputError(
            source.name,
            found="no run with a rate",
            expected="IOs/sec and MBs/sec below CUMULATIVE DATA",
            advice=f"Run it again: {META.record}",
        )
    if len(sound) < len(runs):
        builder.warn("left-out", "runs without a rate were left out", len(runs) - len(sound))
    builder.warn("no-times", "the last run was placed at the file's last change, the others before it")
    end_ns = source.mtime_ns
    for number, run in reversed(list(enumerate(sound, 1))):
        _add(builder, request, run, (f" {number}" if len(sound) > 1 else "", end_ns))
        end_ns -= round((run.duration_s if np.isfinite(run.duration_s) else 1.0) * 1e9)
    builder.results.reverse()
    return builder.build(clock_known=False, tool_version=version[1] if version else None)


def _runs(source: Source) -> list[_SqlioRun]:
    """The runs; one begins where threads or a rate are named again."""
    runs: list[_SqlioRun] = []
    for line in source.lines():
        text = line.strip()
        if match := _THREADS.search(text):
            way = "read" if match[2] == "reading" else "write"
            runs.append(_SqlioRun(int(match[1]), way, float(match[3]), match[4].strip()))
        elif match := _NUMBER.search(text):
            if not runs or match[1] in runs[-1].numbers:
                runs.append(_SqlioRun())
            runs[-1].numbers[match[1]] = number_of(match[2])
        elif runs and (match := _BLOCK.search(text)):
            runs[-1].block_kib, runs[-1].pattern = int(match[1]), match[2]
        elif runs and (match := _OUTSTANDING.search(text)):
            runs[-1].outstanding = int(match[1])
    return runs


def _add(builder: CaptureBuilder, request: Request, run: _SqlioRun, at: tuple[str, int]) -> None:
    label, end_ns = at
    per_s, mib_per_s = run.numbers["IOs/sec"], run.numbers["MBs/sec"]
    size = f"{run.block_kib}k" if run.block_kib else ""
    depth = f"Q{max(run.outstanding, 1)}T{run.threads}" if run.threads else ""
    job = " ".join(part for part in (run.pattern, run.way or "mixed", size, depth) if part) + label
    columns = {"job_iops": [per_s], "job_mib_per_s": [mib_per_s], "job_latency_ms": [run.latency_ms]}
    columns["job_latency_ms_max"] = [run.numbers.get("Max_Latency(ms)", NAN)]
    entity = Entity(EntityKind.JOB, job, UNNAMED_GUEST)
    add_columns(builder, request, entity, np.array([end_ns]), columns, interval_s=run.duration_s)
    latency = {"mean": run.latency_ms, "max": run.numbers.get("Max_Latency(ms)", NAN)}
    operation = Operation(
        run.way or "mixed",
        per_s,
        mib_per_s * 2**20,
        latency_ms={name: wait for name, wait in latency.items() if np.isfinite(wait)},
    )
    workload = {"bs": size, "numjobs": run.threads, "iodepth": max(run.outstanding, 1), "filename": run.file}
    if run.pattern:
        workload["rw"] = f"{'rand' if run.pattern == 'random' else ''}{run.way}"
    builder.results.append(
        Result(
            META.tool,
            job,
            (operation,),
            duration_s=run.duration_s,
            workload={name: setting for name, setting in workload.items() if setting},
            source=builder.info.name,
        )
    )
