"""Events per second of the simulation kernel beside SimPy, in the same process, one after the other.

``python -m benches.bench_sim [--events N] [--simpy-events N] [--repeat N] [--pending N ...]``

M/M/1: 800 requests/s, exponential service of 1 ms, all waiting times measured; an arrival and a departure are one event
each, and both must find a mean wait of 4 ms. SimPy runs it twice: as its documentation writes it, a process per
request that asks for a resource, and as lean as SimPy can be, one process for the source and callbacks for the rest;
the factor is against the lean one. Leadline's events are counted the same way in both: one per arrival and departure,
however many SimPy needs inside.

Hold: so many events pending; each puts itself back an exponential time later. In SimPy it is a timeout with a callback,
which is the leanest it has.

Decisions: mClock with so many clients that always have requests waiting, a decision and the next arrival counted as
one, beside what the best public implementation does on this class of machine.

Hour: 100 virtual machines with Poisson arrivals of 1,000 IOPS each for an hour of virtual time under mClock, each
with a reservation and a limit, on a device that is 83 % busy; every latency is measured.

The best of all repeats counts, of the hour the one there is. It exits with 1 when a budget printed beside a figure is
missed.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

import simpy

from leadline import _core

EVENTS_PER_S_MIN = 20e6
FACTOR_MIN = 20.0
RATE, SERVICE_S = 800.0, 0.001
WAIT_MS = 4.0  # Source: Kleinrock, "Queueing systems" 1, section 3.2: rho / (1 - rho) times the service
PENDING = (1_000, 100_000, 1_000_000)
DECISIONS_PER_S_MIN = {4: 11.3e6, 100: 4.6e6, 1_000: 2.7e6, 10_000: 1.5e6}  # the best public implementation
HOUR_S_MAX = 60.0
MACHINES = 100


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


def hold(pending: int, events: int, simpy_events: int, repeat: int) -> float:
    """The kernel's factor over SimPy."""
    own = hold_per_second(pending, max(events, 4 * pending), repeat)
    filled = simpy_hold(pending, 1)
    theirs = per_second(lambda: filled(simpy_events), simpy_events, repeat)
    print(f"hold {pending:>9,}  {own / 1e6:8.2f} million events/s, SimPy {theirs / 1e6:5.3f}  {own / theirs:6.0f} x")
    return own / theirs


def decisions(clients: int, count: int, repeat: int) -> float:
    """Decisions of mClock per second over those of the best public implementation."""
    own = _core.SimulationDecisions(clients, 1)
    own.decide(count)
    rate = per_second(lambda: own.decide(count), count, repeat)
    budget = DECISIONS_PER_S_MIN[clients]
    print(
        f"mClock, {clients:>6,} clients {rate / 1e6:6.2f} million decisions/s, budget {budget / 1e6:4.1f}  "
        f"{rate / budget:4.1f} x"
    )
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
    parser.add_argument("--any", action="store_true", help="exit with 0 whatever the figures are")
    options = parser.parse_args(arguments)
    print(f"SimPy {simpy.__version__}; CPU time, best of {options.repeat}")
    own, factor = mm1(options.events, options.simpy_events, options.repeat)
    factors = [hold(count, options.events, options.simpy_events, options.repeat) for count in options.pending]
    print(f"budget: {EVENTS_PER_S_MIN / 1e6:g} million M/M/1 events/s, {FACTOR_MIN:g} x SimPy everywhere")
    ratios = [decisions(clients, options.decisions, options.repeat) for clients in DECISIONS_PER_S_MIN]
    spent = hour(options.hour_seconds)
    is_met = own >= EVENTS_PER_S_MIN and min([factor, *factors]) >= FACTOR_MIN
    if not options.any and not (is_met and min(ratios) >= 1.0 and spent <= HOUR_S_MAX):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
