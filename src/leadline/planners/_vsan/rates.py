"""Rates of the machines: as given, else 95th percentiles of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from leadline.core.model.capture import Capture
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.recorded_loads import total
from leadline.planners._vsan.inputs import Vsan

# The first kind that was recorded counts: the others have the same requests again.
KINDS = (
    EntityKind.VIRTUAL_DISK,
    EntityKind.WORLD,
    EntityKind.DATASTORE,
    EntityKind.BLOCK_DEVICE,
    EntityKind.DEVICE,
)
MIB_MB = 2**20 / 1e6
METRICS = {
    "write_mb_per_s": ("disk_write_mib_per_s", MIB_MB, "MB/s written"),
    "read_mb_per_s": ("disk_read_mib_per_s", MIB_MB, "MB/s read"),
    "write_iops": ("disk_writes_per_s", 1.0, "writes per second"),
    "read_iops": ("disk_reads_per_s", 1.0, "reads per second"),
}


@dataclass(frozen=True, slots=True)
class VsanRates:
    """Rates of the load; NaN where not measured."""

    write_mb_per_s: float = nan
    read_mb_per_s: float = nan
    write_iops: float = nan
    read_iops: float = nan
    write_mean_mb_per_s: float = nan
    evidence: tuple[str, ...] = ()

    @property
    def read_bytes(self) -> float:
        """Bytes of a read; 0 where reads are not known or none."""
        known = self.read_iops > 0 and self.read_mb_per_s > 0
        return self.read_mb_per_s * 1e6 / self.read_iops if known else 0.0


def rates_of(inputs: Vsan, capture: Capture | None, evidence: tuple[str, ...] = ()) -> VsanRates:
    """Return the rates given, those not given from the recording; ``evidence`` is what came from the inventory."""
    rates: dict[str, float] = {}
    sentences = list(evidence)
    for key, (metric, factor, noun) in METRICS.items():
        given = getattr(inputs, key)
        if given is not None:
            rates[key] = given
            continue
        seen = None if capture is None else total(capture, ((metric,),), *KINDS)
        if seen is None:
            continue
        rates[key] = seen.peak * factor
        sentences.append(f"{rates[key]:,.4g} {noun}: 95th percentile of {seen.origin}")
        if key == "write_mb_per_s" and inputs.write_mean_mb_per_s is None:
            rates["write_mean_mb_per_s"] = seen.mean * factor
            sentences.append(f"{seen.mean * factor:,.4g} {noun} on average, same window")
    if inputs.write_mean_mb_per_s is not None:
        rates["write_mean_mb_per_s"] = inputs.write_mean_mb_per_s
    return VsanRates(**rates, evidence=tuple(sentences))
