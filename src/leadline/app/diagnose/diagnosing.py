"""Use case: from a capture to an answer for each incident, in six steps; each is a module beside this one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING

from leadline.app.diagnose import answer, bystanders, near, seconds, who
from leadline.app.diagnose import symptoms as symptoms_step
from leadline.app.diagnose.account import accounts_of
from leadline.app.diagnose.answer import answers_of
from leadline.app.diagnose.causes import explained
from leadline.app.diagnose.examine import unused_counters
from leadline.app.diagnose.findings import run_rules
from leadline.app.diagnose.layers import layers_of
from leadline.app.diagnose.stretches import combined, stretches
from leadline.app.diagnose.symptoms import symptoms_of
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.finding import Diagnosis
from leadline.core.model.profile import Profile

if TYPE_CHECKING:
    from leadline.app.diagnose.incidents import Lookout
    from leadline.app.diagnose.symptoms import Symptoms
    from leadline.core.model.capture import Capture
    from leadline.core.model.finding import Window


@cache
def rule_modules() -> dict[str, ModuleType]:
    """Every rule by name."""
    return load_units("rule")


@cache
def metrics_read() -> frozenset[str]:
    """Every metric that a step of the verdict or a rule reads: what importers are asked for.

    Whatever else a capture holds, `diagnose` does not look at it: the verdict is the same however it was read.
    """
    modules = (symptoms_step, seconds, bystanders, who, near, answer)  # the account reads what its seconds do
    steps = (module.READS for module in modules)
    return frozenset().union(*steps, *(meta.metrics() for meta in rule_metas().values()))


def diagnose(
    capture: Capture,
    profile: Profile | None = None,
    rules: Iterable[str] | None = None,
    *,
    incident: Window | None = None,
    normal: Window | None = None,
    lookout: Lookout | None = None,
) -> Diagnosis:
    """An answer for each incident of a capture, a state for each layer, and the findings they rest on.

    Args:
        capture: as read by `leadline.app.read.importing.import_paths`.
        profile: a site's own limits.
        rules: names of the rules to run; all by default.
        incident: when it was bad, as `leadline.app.diagnose.spans.asked_spans` reads it; found by default.
        normal: what a given incident is compared with; the rest of the recording by default.
        lookout: of a watch, which asks only for what goes on now.
    """
    unused = unused_counters(capture, metrics_read())
    capture = capture.of_metrics(metrics_read())
    parts = stretches(capture) if incident is None else (capture,)
    felt = partial(symptoms_of, window=incident, normal=normal, lookout=lookout)
    diagnoses = [_diagnosed(part, profile or Profile(), rules, felt(part)) for part in parts]
    return replace(combined(diagnoses, parts), unused=unused)


def _diagnosed(capture: Capture, site: Profile, rules: Iterable[str] | None, symptoms: Symptoms) -> Diagnosis:
    """The steps from what was felt to an answer, each called once."""
    run = run_rules(site, rules, symptoms, capture)
    accounts = accounts_of(capture, symptoms.incidents)
    joined = explained(run.findings, symptoms, capture, accounts)
    layers = layers_of(run, joined, symptoms, capture)
    answers = answers_of(symptoms, joined, accounts, run, layers)
    return Diagnosis(
        answers=answers,
        layers=layers,
        findings=joined.findings,
        skipped=run.skipped,
        rules_run=tuple(power.rule for power in run.powers),
        powers=run.powers,
        feeling=symptoms.feeling,
        has_samples=bool(capture.results) or any(source.start_ns is not None for source in capture.sources),
    )
