"""What twelve nodes of NVMe devices reached of what their devices can do.

Setup:
    Twelve nodes with four devices of 550,000 operations per second each, with two of them in one test, and 112.5 GB/s
    of all devices together. What was measured is the published total of all nodes.

Run:
    Arithmetic: nodes by devices by a device's rate, and what was measured as a share of it.

Limits:
    It tells how far the measured rates are from the devices' own and nothing about why. More than 100 % is the device
    being better than its data sheet, or a cache before it.
"""

from __future__ import annotations

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated

META = ExperimentMeta(
    claim=(
        "of 26.4 million operations per second in theory 26,834,060 are 101.5 % and, over NVMe-oF, 22,239,158 are "
        "84 %; of 13.2 million 6,709,997 are 51 %; of 112.5 GB/s 108.38 are 96 %"
    ),
    source="vmgu.ru on StarWind's test with 12 nodes",
    verified="read",
    kind="exact",
    by=("arithmetic",),
)
NODES = 12  # published
DEVICE_IOPS = 550_000.0  # published, a device's data sheet
# What was tested: devices of a node in use, operations per second measured, published share.
TESTS = (
    ("26,834,060 with four devices a node", 4, 26_834_060.0, 1.016),
    ("22,239,158 with four devices a node, over NVMe-oF", 4, 22_239_158.0, 0.842),
    ("6,709,997 with two devices a node", 2, 6_709_997.0, 0.508),
)
THEORY_GB_PER_S, FOUND_GB_PER_S, PUBLISHED_SHARE = 112.5, 108.38, 0.963  # published


def share(measured: float, devices: int, device_iops: float = DEVICE_IOPS) -> float:
    """Measured operations per second divided by those of all devices."""
    return measured / (NODES * devices * device_iops)


def reproduce(simulated: Simulated) -> Findings:
    """Each measured rate as a share of the devices'."""
    rates = [Published(name, published, share(measured, devices)) for name, devices, measured, published in TESTS]
    throughput = Published("throughput", PUBLISHED_SHARE, FOUND_GB_PER_S / THEORY_GB_PER_S)
    theory = Published("operations in theory", 26.4e6, NODES * 4 * DEVICE_IOPS, "per_s")
    return Findings(comparisons=(theory, *rates, throughput))
