"""A guest that does not look full while its users wait: its neighbour has the cores.

Setup:
    The host and the VM of the right-sizing figure at 3x, beside a second VM of 24 vCPUs at 1x, 2x and 3x.

Run:
    CPU as the guest counts it (waiting for a thread included), its run queue, and its response, by the load of the
    neighbour.

Limits:
    The run queue sets how long users think, and is no prediction; the guest's CPU is.
"""

from __future__ import annotations

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.core.model.picture import Curve, Picture
from leadline.experiments import _cpu_24_cores as setup

META = ExperimentMeta(
    claim=(
        "with a second VM of 24 vCPUs at 2x beside it, the guest at 3x reports 86 % CPU and a run queue near 25, while "
        "its response soars; ready and co-stop rise with the host's load"
    ),
    source=setup.SOURCE,
    verified="read",
    kind="numeric",
    by=("simulation",),
    tolerance=0.15,
    calibrated=f"{setup.CALIBRATED_THINK}; {setup.CALIBRATED_RATE} (point of another figure)",
)
SCALES = (0, 1, 2, 3)
SOARS_MIN = 1.25  # Judgement: what users notice; the source gives no number


def reproduce(simulated: Simulated) -> Findings:
    """The guest alone, and beside a neighbour at 1x, 2x and 3x."""
    first = setup.vm(setup.GUEST, 24, 3)
    beside = {
        scale: simulated(setup.host([first, setup.vm(setup.NEIGHBOUR, 24, scale)] if scale else [first]))
        for scale in SCALES
    }

    def of(name: str) -> list[float]:
        return [setup.value(beside[scale], name) for scale in SCALES]

    ready, stopped, response = of("ready_pct"), of("co_stop_pct"), of("latency_ms_mean")
    return Findings(
        comparisons=(
            Published("guest beside 2x", 86.0, of("guest_pct")[2], "%"),
            Published("run queue beside 2x", 25.0, of("run_queue_count_mean")[2], "tasks", is_calibrated=True),
        ),
        checks=(
            Statement(
                "response soars beside 2x",
                response[2] > SOARS_MIN * response[0],
                ", ".join(f"{ms:.0f} ms" for ms in response),
            ),
            Statement(
                "ready rises with the host's load",
                ready[0] <= ready[1] < ready[2] < ready[3],
                ", ".join(f"{pct:.2f} %" for pct in ready),
            ),
            Statement(
                "co-stop rises with the host's load",
                stopped[0] <= stopped[1] < stopped[2] < stopped[3],
                ", ".join(f"{pct:.2f} %" for pct in stopped),
            ),
        ),
        picture=Picture(
            "neighbour's load, times 1x",
            "%",
            (
                Curve("guest", SCALES, tuple(of("guest_pct"))),
                Curve("ready", SCALES, tuple(ready)),
                Curve("co-stop", SCALES, tuple(stopped)),
                Curve("guest, published", (2.0,), (86.0,), is_published=True),
            ),
        ),
    )
