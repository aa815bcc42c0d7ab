"""Events per second of the simulation kernel beside SimPy, NexoSim and dmclock, one after the other.

``python -m benches.bench_sim [--events N] [--repeat N] [--pending N ...] [--nexosim] [--dmclock FOLDER]``

SimPy runs in the same process. With ``--nexosim`` cargo builds ``crates/leadline-bench/peers/nexosim`` first, with the
NexoSim of its lock file; with ``--dmclock FOLDER``, a copy of github.com/ceph/dmclock, the C++ compiler builds
``crates/leadline-bench/peers/dmclock``.

M/M/1: 800 requests/s, exponential service of 1 ms, all waiting times measured; an arrival and a departure are one event
each, and both must find a mean wait of 4 ms. SimPy runs it twice: as its documentation writes it, a process per
request that asks for a resource, and as lean as SimPy can be, one process for the source and callbacks for the rest;
the factor is against the lean one. Leadline's events are counted the same way in both: one per arrival and departure,
however many SimPy needs inside.

Hold: so many events pending; each puts itself back an exponential time later. In SimPy it is a timeout with a callback,
which is the leanest it has.

Decisions: mClock with so many clients that always have requests waiting, a decision and the next arrival counted as
one, beside what the best public implementation does on this class of machine, and beside dmclock on this machine now.

Hour: 100 virtual machines with Poisson arrivals of 1,000 IOPS each for an hour of virtual time under mClock, each
with a reservation and a limit, on a device that is 83 % busy; every latency is measured.

The best of all repeats counts, of the hour the one there is. It exits with 1 when a budget printed beside a figure is
missed.
"""

from __future__ import annotations

import argparse
import gc
import random
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import simpy

from leadline import _core

EVENTS_PER_S_MIN = 60e6
FACTOR_MIN = 20.0
RATE, SERVICE_S = 800.0, 0.001
WAIT_MS = 4.0  # Source: Kleinrock, "Queueing systems" 1, section 3.2: rho / (1 - rho) times the service
PENDING = (1_000, 100_000, 1_000_000)
DECISIONS_PER_S_MIN = {4: 11.3e6, 100: 4.6e6, 1_000: 2.7e6, 10_000: 1.5e6}  # the best public implementation
HOUR_S_MAX = 30.0
MACHINES = 100
ROOT = Path(__file__).parent.parent
PEERS = ROOT / "crates" / "leadline-bench" / "peers"


def simpy_processes(events: int, seed: int) -> float:
    """M/M/1 as SimPy's documentation writes it; mean wait in ms."""
    own, environment = random.Random(seed), simpy.Environment()
    server = simpy.Resource(environment)
    waits: list[float] = []

    def request() -> Generator[simpy.Event, Any, None]:
        arrived = environment.now
        with server.request() as turn:
            yield turn
            waits.append(environment.now - arrived)
            yield environment.timeout(own.expovariate(1.0 / SERVICE_S))

    def source() -> Generator[simpy.Event, Any, None]:
        for _ in range(events // 2):
            yield environment.timeout(own.expovariate(RATE))
            environment.process(request())

    environment.process(source())
    environment.run()
    return 1000.0 * sum(waits) / len(waits)


def simpy_lean(events: int, seed: int) -> float:
    """M/M/1 with timeouts and callbacks alone; mean wait in ms."""
    own, environment = random.Random(seed), simpy.Environment()
    waiting: deque[float] = deque()
    total, left, is_busy = 0.0, events // 2, False

    def serve() -> None:
        nonlocal total, is_busy
        is_busy = bool(waiting)
        if is_busy:
            total += environment.now - waiting.popleft()
            done = simpy.Timeout(environment, own.expovariate(1.0 / SERVICE_S))
            done.callbacks.append(departed)

    def departed(_: Any) -> None:  # noqa: ANN401 - SimPy's event
        serve()

    def arrived(_: Any) -> None:  # noqa: ANN401 - SimPy's event
        nonlocal left
        left -= 1
        waiting.append(environment.now)
        if not is_busy:
            serve()
        if left:
            simpy.Timeout(environment, own.expovariate(RATE)).callbacks.append(arrived)

    simpy.Timeout(environment, own.expovariate(RATE)).callbacks.append(arrived)
    environment.run()
    return 1000.0 * total / (events // 2)


def simpy_hold(pending: int, seed: int) -> Callable[[int], float]:
    """A hold model that is filled; steps of it are run by the call returned."""
    own, environment = random.Random(seed), simpy.Environment()
    rate = 1.0 / pending

    def again(_: Any) -> None:  # noqa: ANN401 - SimPy's event
        simpy.Timeout(environment, own.expovariate(rate)).callbacks.append(again)

    for _ in range(pending):
        again(None)

    def run(events: int) -> float:
        for _ in range(events):
            environment.step()
        return float(environment.now)

    return run


def per_second(work: Callable[[], object], events: int, repeat: int) -> float:
    """Events per second of CPU time, the best of all repeats."""
    best = 0.0
    for _ in range(repeat):
        gc.collect()
        start = time.process_time()
        work()
        best = max(best, events / (time.process_time() - start))
    return best


def hold_per_second(pending: int, events: int, repeat: int) -> float:
    """Events per second of the kernel's hold model without filling it: two lengths, and what the longer takes more."""
    least = []
    for count in (events, 2 * events):
        spent = []
        for _ in range(repeat):
            start = time.process_time()
            _core.simulation_hold(pending, count, 1)
            spent.append(time.process_time() - start)
        least.append(min(spent))
    return events / max(least[1] - least[0], 1e-9)


def right(name: str, wait_ms: float, events: int) -> None:
    """Refuse a system that is not the one meant; a short run may be farther off."""
    within = 0.1 if events >= 1_000_000 else 0.5
    if abs(wait_ms / WAIT_MS - 1.0) > within:
        raise SystemExit(f"{name}: mean wait {wait_ms:.2f} ms instead of {WAIT_MS:g} ms")


def mm1(events: int, simpy_events: int, repeat: int) -> tuple[float, float]:
    """Events per second of the kernel, and its factor over lean SimPy."""
    right("leadline", _core.simulation_mm1(events, 1)[2] / 1e6, events)
    right("SimPy, processes", simpy_processes(simpy_events, 1), simpy_events)
    right("SimPy, lean", simpy_lean(simpy_events, 1), simpy_events)
    own = per_second(lambda: _core.simulation_mm1(events, 1), events, repeat)
    processes = per_second(lambda: simpy_processes(simpy_events, 1), simpy_events, repeat)
    lean = per_second(lambda: simpy_lean(simpy_events, 1), simpy_events, repeat)
    print(f"M/M/1           {own / 1e6:8.2f} million events/s")
    print(f"  SimPy, processes {processes / 1e6:5.3f}  {own / processes:6.0f} x")
    print(f"  SimPy, lean      {lean / 1e6:5.3f}  {own / lean:6.0f} x")
    return own, own / lean


def built_nexosim(folder: Path) -> Path:
    """The program that runs M/M/1 in NexoSim, built in ``folder``."""
    manifest = PEERS / "nexosim" / "Cargo.toml"
    words: list[str | Path] = [
        "cargo",
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--manifest-path",
        manifest,
        "--target-dir",
        folder,
    ]
    subprocess.run(words, check=True)
    return folder / "release" / "nexosim-mm1"


def built_dmclock(folder: Path, source: Path) -> Path:
    """The program that counts decisions of dmclock, built in ``folder`` with the ``source`` of ceph/dmclock."""
    program, peer = folder / "decisions", PEERS / "dmclock"
    parts = [peer / "decisions.cpp", source / "src" / "dmclock_util.cc", source / "support" / "src" / "run_every.cc"]
    includes = [f"-I{place}" for place in (peer, source / "src", source / "support" / "src")]
    words: list[str | Path] = ["c++", "-O3", "-std=c++17", "-DNDEBUG", *includes, *parts, "-pthread", "-o", program]
    subprocess.run(words, check=True)
    return program


def printed(program: Path, *words: object) -> list[float]:
    """The numbers that a peer prints."""
    done = subprocess.run([program, *map(str, words)], check=True, capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()]


def nexosim_mm1(program: Path, events: int, repeat: int, kernel_per_s: float) -> None:
    """Print events per second of NexoSim, and the kernel's factor over it."""
    runs = [printed(program, events) for _ in range(repeat)]
    right("NexoSim", runs[0][1], events)
    best = max(handled / spent_s for handled, _, spent_s in runs)
    print(f"  NexoSim          {best / 1e6:5.3f}  {kernel_per_s / best:6.0f} x")


def dmclock_decisions(program: Path, clients: int, count: int, repeat: int, kernel_per_s: float) -> None:
    """Print decisions per second of dmclock, and the kernel's factor over it."""
    best = max(served / spent_s for served, spent_s in (printed(program, clients, count) for _ in range(repeat)))
    print(f"  dmclock              {best / 1e6:6.2f} million decisions/s  {kernel_per_s / best:4.1f} x")


def hold(pending: int, events: int, simpy_events: int, repeat: int) -> float:
    """The kernel's factor over SimPy."""
    own = hold_per_second(pending, max(events, 4 * pending), repeat)
    filled = simpy_hold(pending, 1)
    theirs = per_second(lambda: filled(simpy_events), simpy_events, repeat)
    print(f"hold {pending:>9,}  {own / 1e6:8.2f} million events/s, SimPy {theirs / 1e6:5.3f}  {own / theirs:6.0f} x")
    return own / theirs


def decisions(clients: int, count: int, repeat: int, dmclock: Path | None) -> float:
    """Decisions of mClock per second over those of the best public implementation."""
    own = _core.SimulationDecisions(clients, 1)
    own.decide(count)
    rate = per_second(lambda: own.decide(count), count, repeat)
    budget = DECISIONS_PER_S_MIN[clients]
    print(
        f"mClock, {clients:>6,} clients {rate / 1e6:6.2f} million decisions/s, budget {budget / 1e6:4.1f}  "
        f"{rate / budget:4.1f} x"
    )
    if dmclock is not None:
        dmclock_decisions(dmclock, clients, count, repeat, rate)
    return rate / budget


def hour(seconds: int) -> float:
    """CPU seconds for an hour of 100 machines under mClock, from ``seconds`` of virtual time."""
    start = time.process_time()
    events = _core.simulation_host(MACHINES, seconds * 10**9, 1)[0]
    spent = (time.process_time() - start) * 3600 / seconds
    simulated = "" if seconds == 3600 else f" (from {seconds} s)"
    print(
        f"{MACHINES} machines at 1,000 IOPS under mClock, one hour{simulated}: {spent:.1f} s, "
        f"{events * 3600 / seconds / spent / 1e6:.1f} million events/s; budget {HOUR_S_MAX:g} s"
    )
    return spent


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--simpy-events", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--pending", type=int, nargs="*", default=list(PENDING))
    parser.add_argument("--decisions", type=int, default=3_000_000)
    parser.add_argument("--hour-seconds", type=int, default=3600, help="virtual seconds of the hour that are simulated")
    parser.add_argument("--nexosim", action="store_true", help="beside NexoSim, which cargo builds")
    parser.add_argument("--dmclock", type=Path, metavar="FOLDER", help="beside dmclock, from a copy of its source")
    parser.add_argument("--any", action="store_true", help="exit with 0 whatever the figures are")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        nexosim = built_nexosim(ROOT / "target" / "nexosim") if options.nexosim else None
        dmclock = built_dmclock(Path(folder), options.dmclock) if options.dmclock else None
        is_met = measured(options, nexosim, dmclock)
    if not options.any and not is_met:
        raise SystemExit(1)


def measured(options: argparse.Namespace, nexosim: Path | None, dmclock: Path | None) -> bool:
    """Print every figure; whether all budgets are met."""
    print(f"SimPy {simpy.__version__}; CPU time, best of {options.repeat}")
    own, factor = mm1(options.events, options.simpy_events, options.repeat)
    if nexosim is not None:
        nexosim_mm1(nexosim, options.events, options.repeat, own)
    factors = [hold(count, options.events, options.simpy_events, options.repeat) for count in options.pending]
    print(f"budget: {EVENTS_PER_S_MIN / 1e6:g} million M/M/1 events/s, {FACTOR_MIN:g} x SimPy everywhere")
    ratios = [decisions(clients, options.decisions, options.repeat, dmclock) for clients in DECISIONS_PER_S_MIN]
    spent = hour(options.hour_seconds)
    is_fast = own >= EVENTS_PER_S_MIN and min([factor, *factors]) >= FACTOR_MIN
    return is_fast and min(ratios) >= 1.0 and spent <= HOUR_S_MAX


if __name__ == "__main__":
    main()
