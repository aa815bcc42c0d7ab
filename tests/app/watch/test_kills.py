"""A watch that is killed at any moment loses nothing it had said was kept, and keeps nothing twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from leadline.stores.samples import SampleStore
from tests.conftest import ROOT

# A watch of a source that counts: sample N has the time N x 0.1 s and the value N. It says each number that is kept.
CHILD = """
import sys, time
from pathlib import Path
import numpy as np
from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity
from tests.app.watch.test_watching import playing
folder, first = Path(sys.argv[1]), int(sys.argv[2])
vms = [Entity.parse(f"vm:{n}") for n in range(20)]
with playing(folder) as play:
    number = first
    while True:
        times = np.arange(number, number + 5, dtype=np.int64) * 100_000_000
        values = np.tile(np.arange(number, number + 5, dtype=float), (len(vms), 1))
        group = SeriesGroup("cpu_ready_pct", vms, times, values, 0.1)
        play.step(Capture([group], [SourceInfo("x", "x", "x")]))
        if not play.watch._unstored:
            print(number + 4, flush=True)
        if number % 50 == 0:
            play.watch.store.maintain(whole=True)
        number += 5
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_that_was_kept_is_lost_or_doubled_in_kills_at_random_moments(tmp_path: Path) -> None:
    generator = random.Random(35)
    kills = int(os.environ.get("LEADLINE_KILLS", "12"))
    acknowledged, first = 0, 1
    for _ in range(kills):
        words = [sys.executable, "-c", CHILD, str(tmp_path), str(first)]
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True
        ) as child:
            assert child.stdout is not None
            last = child.stdout.readline()
            time.sleep(generator.uniform(0.0, 0.6))
            child.send_signal(signal.SIGKILL)
            lines = [last, *child.stdout.read().splitlines()]
        numbers = [int(line) for line in lines if line.strip().isdigit()]
        assert numbers, "the watch kept nothing before it was killed"
        acknowledged = numbers[-1]
        first = acknowledged - 9  # it gives some of them again, as a late source does
    with SampleStore(tmp_path / "store", read_only=True) as store:
        groups = store.read(0, 1 << 62).of("cpu_ready_pct")
    times = np.concatenate([group.times_ns for group in groups])
    assert len(times) == len(set(times.tolist()))
    for group in groups:
        assert np.array_equal(group.values, np.tile(group.times_ns / 100_000_000, (len(group.entities), 1)))
    assert set(range(1, acknowledged + 1)) <= {int(time_ns // 100_000_000) for time_ns in times}
