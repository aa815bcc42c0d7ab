"""Which samples of an entity were given already, and which may still come.

vCenter posts samples late: 15 minutes after their time where a host was not reached, storage up to 40. So an entity is
asked for what followed its last sample, and for what was left out before, as long as it may come.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from leadline.core.model.capture import NS_PER_S

_TOLERANCE = 1.5  # Judgement: a distance of more than so many intervals holds a sample that is missing


@dataclass(frozen=True, slots=True)
class LiveGap:
    """Samples of an object that never came: after ``start_ns``, until and with ``end_ns``, UTC nanoseconds."""

    key: str
    start_ns: int
    end_ns: int


@dataclass(slots=True)
class GivenSamples:
    """What was given of entities, by their ids.

    Attributes:
        interval_s: the distance of samples, seconds.
        looks_back_s: how late a sample may come, seconds.
        gaps: what never came, since they were last taken.
    """

    interval_s: int
    looks_back_s: float
    gaps: list[LiveGap] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)
    _holes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def begin(self, key: str, now_ns: int) -> None:
        """Take note of an entity whose samples from about now on are wanted."""
        self._last.setdefault(key, now_ns - self.interval_s * NS_PER_S)

    def forget(self, key: str) -> None:
        """An entity is gone or off: what it did not give is no gap."""
        self._last.pop(key, None)
        self._holes.pop(key, None)

    def asked_from(self, key: str) -> int:
        """The moment after which samples of an entity are wanted."""
        holes = self._holes.get(key)
        return holes[0] - self.interval_s * NS_PER_S if holes else self._last[key]

    def state(self, key: str) -> tuple[int, tuple[int, ...]]:
        """What decides which samples are new; entities with the same state want the same."""
        return self._last[key], self._holes.get(key, ())

    @staticmethod
    def is_new(time_ns: int, state: tuple[int, tuple[int, ...]]) -> bool:
        """Whether a sample was not given yet."""
        return time_ns > state[0] or time_ns in state[1]

    def give(self, key: str, times_ns: tuple[int, ...]) -> None:
        """Take note of samples that are given now, in ascending order."""
        if not times_ns:
            return
        last, holes = self.state(key)
        step = self.interval_s * NS_PER_S
        missing = [hole for hole in holes if hole not in times_ns]
        for time_ns in times_ns:
            if time_ns <= last:
                continue
            if time_ns - last > _TOLERANCE * step:
                missing += reversed(range(time_ns - step, last + step // 2, -step))
            last = time_ns
        self._last[key] = last
        if missing:
            self._holes[key] = tuple(missing)
        else:
            self._holes.pop(key, None)

    def expire(self, now_ns: int) -> None:
        """What is too late to come becomes a gap."""
        step = self.interval_s * NS_PER_S
        oldest = now_ns - round(self.looks_back_s * NS_PER_S)
        for key, holes in list(self._holes.items()):
            kept = tuple(hole for hole in holes if hole > oldest)
            self.gaps += [LiveGap(key, hole - step, hole) for hole in holes if hole <= oldest]
            if kept:
                self._holes[key] = kept
            else:
                del self._holes[key]
        for key, last in self._last.items():
            count = (oldest - last) // step
            if count > 0:
                self.gaps.append(LiveGap(key, last, last + count * step))
                self._last[key] = last + count * step
