"""The live verdict equals that of the same window read at once, and asks only what can have changed."""

from __future__ import annotations

import json

from benches.bench_live import START_NS, STEP_S, Estate
from leadline.app.diagnose.findings import run_rules
from leadline.app.diagnose.symptoms import symptoms_of
from leadline.app.watch.judging import LiveJudge
from leadline.app.watch.ongoing import Ongoing
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.finding import Finding, Window
from leadline.core.model.profile import Profile

S = 10**9


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str, str]]:
    return sorted((one.rule, str(one.entity), one.summary) for one in findings)


def test_a_window_is_judged_as_the_same_recording() -> None:
    estate, judge = Estate(vms=40, window_s=200.0, red=3), LiveJudge()
    for number in range(16):
        estate.step(number)
        verdict = judge.judge(estate.window)
    groups = [
        SeriesGroup(g.metric, list(g.entities), g.times_ns.copy(), g.values.copy(), g.interval_s, g.source)
        for g in estate.window.capture.groups
    ]
    whole = Capture(groups, estate.window.sources, estate.window.inventory)
    run = run_rules(Profile(), None, symptoms_of(whole, None, None), whole)
    assert told(verdict.findings) == told(run.findings)
    assert any(rule == "cpu-ready-high" for rule, _, _ in told(verdict.findings))


def test_rules_are_asked_where_something_changed() -> None:
    estate, judge = Estate(vms=20, window_s=200.0, red=1), LiveJudge()
    for number in range(10):
        estate.step(number)
    first = judge.judge(estate.window)
    ready = [(one, estate.values(one, level)) for one, level in estate.series if one.metric == "cpu_ready_pct"]
    estate.window.step(START_NS + 10 * STEP_S * S, ready)
    second = judge.judge(estate.window)
    assert 0 < second.asked < first.asked
    assert {rule for rule, _, _ in told(second.findings)} == {rule for rule, _, _ in told(first.findings)}
    estate.window.step(START_NS + 10 * STEP_S * S, [])
    assert judge.judge(estate.window).asked == 0
    estate.window.inventory.add(next(iter(estate.window.inventory.facts)), "test", snapshot_count=0)
    assert judge.judge(estate.window).asked > second.asked


def test_what_lasts_longer_than_the_window_has_its_begin_also_after_a_restart() -> None:
    estate, judge = Estate(vms=20, window_s=200.0, red=0), LiveJudge()
    ended: list[Ongoing] = []
    longest = 0.0
    for number in range(60):
        estate.red = 1 if 12 <= number < 40 else 0
        estate.step(number)
        verdict = judge.judge(estate.window)
        ready = [one for one in verdict.ongoing if one.rule == "cpu-ready-high"]
        longest = max([longest, *(one.windows[0].duration_s for one in ready)])
        ended += [one for one in verdict.ended if one.rule == "cpu-ready-high"]
        if number == 30:
            stored = json.loads(json.dumps([one.to_plain() for one in verdict.ongoing]))
            judge = LiveJudge()
            judge.take_up(map(Ongoing.from_plain, stored))
    (over,) = ended
    assert over.windows == (Window(START_NS + 11 * STEP_S * S, START_NS + 39 * STEP_S * S),)
    assert longest == 28 * STEP_S > 200.0
