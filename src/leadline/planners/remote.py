"""Managing hosts of remote offices over a link.

Answers:
    How long vCenter operations take over a link of a given round trip, bandwidth and loss, against the same next
    door; which of them to keep local, and whether a nearer vCenter, a wider or a cleaner line helps more.

Method:
    Operations are simulated as exchanges of requests and responses over TCP (system management-plane), once over the
    link, once next door, once with a quarter of the round trip, once with four times the bandwidth, once without its
    losses. ``link`` names a usual link, of which the numbers not given are taken: dial-up, dsl, t1, satellite, cable,
    fiber, 3g, 4g or lte. An operation stays local when it takes longer than accepted and more than ``times_slower``
    as long as next door. From an inventory: the round trip of the host that is farthest from vCenter, and the VMs of
    its cluster.

Assumptions:
    Exchanges and bytes are those counted with pyVmomi; work at the other end is a small host's. Disks and memory of
    migrations and clones do not cross the link. A usual link is as its source has it: dsl, t1 and satellite as VMware
    emulated them in 2010, the others as WebPageTest emulates them, without losses and at the slower direction's
    bandwidth. Links have become faster since, round trips by satellites in high orbits have not: measure yours.

Bends:
    Round trips above 500 ms; losses above 1 %. Numbers given that are not those of the link that is named.

Sources:
    The system management-plane, with its sources: `leadline explain management-plane`.
    VMware, "Performance of VMware vCenter 5.0 in remote offices and branch offices" (2012), and the same of vCenter 6.7
    (2019), for the kinds of links. Their numbers: VMware, "vCloud Director 1.0 performance and best practices",
    table 3; WebPageTest, settings/connectivity.ini.sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import Field

from leadline.core.contracts.planner import (
    Bend,
    Figure,
    Infeasible,
    Plan,
    PlanContext,
    PlanInput,
    PlannerMeta,
    Sheet,
    Snippet,
)
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.recorded_loads import RecordedInput
from leadline.estate.derived.recorded_loads import filled as recorded
from leadline.estate.knowledge.placement import cluster_of
from leadline.estate.knowledge.stored import machines_kept
from leadline.planners._remote.links import KNOWN, LINKS, LinkName

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture

SYSTEM = "simulated: management-plane"
NEAR = {"round_trip": 0.001, "mbit_per_s": 1000.0, "loss_pct": 0.0}
MANY = ("inventory", "statistics")  # read as many VMs as there are
OPERATIONS = ("connect", "power-on", "clone", "vmotion", *MANY)
ROUND_TRIP_MAX_MS, LOSS_MAX_PCT = 500.0, 1.0  # Judgement: above, sessions time out

SNIPPET = Snippet(
    "Keep statistics small on a slow link",
    "powercli",
    "# Get-Stat is a round trip for each entity: ask for many in one call\n"
    "Get-Stat -Entity (Get-VM) -Stat cpu.ready.summation -Realtime -MaxSamples 1",
)

META = PlannerMeta(
    about="How long vCenter operations on remote hosts take over a link, and what to keep local.",
    example={"round_trip_ms": 250.0, "mbit_per_s": 1.5, "loss_pct": 0.05, "vms": 100},
    grows=(("round_trip_ms", "all operations"), ("vms", "all operations")),
    reads="VMs, or hosts with the round trip to vCenter",
)


class Remote(PlanInput):
    """A link and what is managed over it."""

    link: Annotated[
        LinkName, Field(description=f"A usual link, for numbers that are not given; none for none. {KNOWN}.")
    ] = "none"
    round_trip_ms: Annotated[float, Field(gt=0, le=10_000, description="Round trip of the link, ms.")] = 100.0
    mbit_per_s: Annotated[float, Field(gt=0, le=1e6, description="Bandwidth of the link, Mbit/s.")] = 1.5
    loss_pct: Annotated[float, Field(ge=0, le=50, description="Packets lost, percent.")] = 0.0
    vms: Annotated[int, Field(ge=1, le=100_000, description="VMs at the office.")] = 100
    accepted_s: Annotated[float, Field(gt=0, description="What an operation may take more than next door, s.")] = 1.0
    times_slower: Annotated[float, Field(ge=1, description="How many times as long as next door is accepted.")] = 2.0
    daily: Annotated[int, Field(ge=0, description="Times a day all operations are done.")] = 10


MODEL = Remote


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return how long operations take over the link, and which operations to keep local."""
    inputs, other_numbers = of_link(cast("Remote", inputs))  # read with MODEL
    inputs, evidence = filled(inputs, context.capture)
    link = {"round_trip": inputs.round_trip_ms / 1000.0, "mbit_per_s": inputs.mbit_per_s, "loss_pct": inputs.loss_pct}
    here = _times(inputs, link, context)
    near = _times(inputs, NEAR, context)
    others = {
        "a quarter of the round trip": {**link, "round_trip": link["round_trip"] / 4},
        "four times the bandwidth": {**link, "mbit_per_s": inputs.mbit_per_s * 4},
        **({"no losses": {**link, "loss_pct": 0.0}} if inputs.loss_pct else {}),
    }
    local = [
        name
        for name in OPERATIONS
        if here[name] > inputs.times_slower * near[name] and here[name] - near[name] > inputs.accepted_s
    ]
    total, total_near = sum(here.values()), sum(near.values())
    saved = {name: total - sum(_times(inputs, other, context).values()) for name, other in others.items()}
    better = max(saved, key=lambda name: saved[name])
    figures = (
        *_link_figure(inputs),
        Figure("all operations", round(total, 2), "s", " + ".join(f"{here[name]:.3g}" for name in OPERATIONS), SYSTEM),
        Figure("the same next door", round(total_near, 2), "s", "1 ms, 1 Gbit/s", SYSTEM),
        *(
            Figure(f"saved by {name}", round(value, 2), "s", f"{total:.4g} less {total - value:.4g}", SYSTEM)
            for name, value in saved.items()
        ),
        Figure("helps more", better, "", " against ".join(f"{value:.3g} s" for value in saved.values())),
        Figure(
            "waited a day",
            round((total - total_near) * inputs.daily / 60, 1),
            "min",
            f"{inputs.daily} times the difference",
        ),
        Figure(
            "keep local",
            ", ".join(local) or "nothing",
            "",
            f"{inputs.accepted_s:g} s and {inputs.times_slower:g} x more",
        ),
    )
    return Plan(
        headline=f"Over {inputs.round_trip_ms:g} ms and {inputs.mbit_per_s:g} Mbit/s all operations take "
        f"{total:,.3g} s, next door {total_near:,.3g} s; {better} helps more.",
        figures=figures,
        sheets=(_operations_sheet(here, near, local),),
        assumptions=("Disks and memory of clones and migrations do not cross the link.",),
        bends=(*_bends(inputs), *other_numbers),
        snippets=(SNIPPET,),
        evidence=evidence,
        infeasible=_infeasible() if len(local) == len(OPERATIONS) else None,
    )


def _operations_sheet(here: dict[str, float], near: dict[str, float], local: list[str]) -> Sheet:
    """Return the seconds of each operation over the link and next door, and which to keep local."""
    rows = tuple(
        (
            name,
            round(here[name], 2),
            round(near[name], 2),
            round(here[name] / near[name], 2),
            "local" if name in local else "",
        )
        for name in OPERATIONS
    )
    return Sheet("Seconds by operation", ("operation", "here", "next door", "times", "keep"), rows)


def of_link(inputs: Remote) -> tuple[Remote, tuple[Bend, ...]]:
    """Return the inputs with the numbers of the named link that are not given, and a bend for those that differ."""
    link = LINKS.get(inputs.link)
    if link is None:
        return inputs, ()
    numbers = link.numbers()
    given = {key: getattr(inputs, key) for key in numbers if key in inputs.model_fields_set}
    other = [f"{key} {value:g} instead of {numbers[key]:g}" for key, value in given.items() if value != numbers[key]]
    bend = Bend("a named link has its usual numbers", f"{', '.join(other)}: given, so they count", link.source)
    return inputs.model_copy(update={**numbers, **given}), (bend,) if other else ()


def _link_figure(inputs: Remote) -> tuple[Figure, ...]:
    link = LINKS.get(inputs.link)
    return () if link is None else (Figure("link", inputs.link, "", link.text(), link.source),)


def filled(inputs: Remote, capture: Capture | None) -> tuple[Remote, tuple[str, ...]]:
    """Return the inputs, those not given from the host with the longest round trip, and a sentence on their source."""
    if capture is None:
        return inputs, ()
    inventory = capture.inventory
    trips = {host: inventory.fact(host, "vcenter_rtt_ms") for host in inventory.of_kind(EntityKind.HOST)}
    known = {host: fact for host, fact in trips.items() if fact is not None and fact.value > 0}
    if not known:
        kept = len(machines_kept(inventory))
        return recorded(inputs, [RecordedInput("vms", kept or None, "VMs of the inventory; templates left out")])
    host = max(known, key=lambda one: (known[one].value, one.name))
    cluster = cluster_of(inventory, host)
    office = {host, *(one for one in trips if cluster is not None and cluster_of(inventory, one) == cluster)}
    vms = [vm for vm in inventory.of_kind(EntityKind.VM) if vm.ancestor(EntityKind.HOST) in office]
    known_inputs = {"round_trip_ms": float(known[host].value), **({"vms": len(vms)} if vms else {})}
    known_inputs = {key: value for key, value in known_inputs.items() if key not in inputs.model_fields_set}
    values = ", ".join(f"{key} {value:g}" for key, value in known_inputs.items())
    place = host.name if cluster is None else f"{host.name} of {cluster.name}"
    evidence = (f"{values}: {place}, the farthest of {len(known)} hosts; {known[host].source}",) if values else ()
    return inputs.model_copy(update=known_inputs), evidence


def _infeasible() -> Infeasible:
    return Infeasible(
        f"all {len(OPERATIONS)} operations are slower than accepted", "a vCenter of its own at the office"
    )


def _times(inputs: Remote, link: dict[str, float], context: PlanContext) -> dict[str, float]:
    """Mean seconds of each operation, one after the other by one client."""
    operations: list[Any] = [{"name": name, "count": inputs.vms} if name in MANY else name for name in OPERATIONS]
    slowest = 200.0 * link["round_trip"] + inputs.vms * 0.1 / link["mbit_per_s"] + 60.0
    outcome = context.simulated(
        {
            "name": "remote-plan",
            "system": "management-plane",
            "timing": {"warm_up_s": 0, "measure_s": 40 * slowest, "window_s": slowest},
            "link": link,
            "operations": operations,
        }
    )
    return {name: outcome.measure(name, "latency_ms_mean").value / 1000.0 for name in OPERATIONS}


def _bends(inputs: Remote) -> list[Bend]:
    bends = []
    if inputs.round_trip_ms > ROUND_TRIP_MAX_MS:
        bends.append(
            Bend(f"round trips stay below {ROUND_TRIP_MAX_MS:g} ms", "sessions time out; hosts look disconnected")
        )
    if inputs.loss_pct > LOSS_MAX_PCT:
        bends.append(Bend(f"losses stay below {LOSS_MAX_PCT:g} %", "each costs a round trip or a timeout"))
    return bends
