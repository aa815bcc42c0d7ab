"""Why a layer is convicted, suspected, cleared or was not examined, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.model.finding import LayerBecause, LayerReason
from leadline.core.model.units import several, show

if TYPE_CHECKING:
    from leadline.core.model.power import Power
    from leadline.faces.words.findings import Quotes


# What is said for a reason; {finding} is what it quotes, {looked} how many rules looked.
_SAYS = {
    LayerBecause.CAUSE: "{finding}",
    LayerBecause.WAIT: "{finding}, which does not say why",
    LayerBecause.SYMPTOMS_ONLY: "shows symptoms only, explained by {detail}",
    LayerBecause.UNFELT: "{finding}, but nobody felt it: not ruled out",
    LayerBecause.FAINT: "{finding}, of low severity: not ruled out",
    LayerBecause.PARTS_UNSEEN: "{detail}",
    LayerBecause.UNEXPLAINED: "{looked}; not ruled out while what was felt is unexplained",
    LayerBecause.TOO_SHORT: "{detail}",
    LayerBecause.NOT_RECORDED: "nothing recorded shows it; {rules} waiting",
    LayerBecause.NO_RULE: "no rule looks at it yet",
    LayerBecause.NOTHING_FOUND: "{looked}",
}


def layer_sentence(reason: LayerReason, quotes: Quotes) -> str:
    """Why a layer is in its state, for one line of a table."""
    rules = several(reason.rule_count, "rule")
    return _SAYS[reason.because].format(
        finding="" if reason.finding is None else quotes.line(reason.finding),
        detail=_detail(reason),
        rules=rules,
        looked=f"{rules} looked, nothing of weight",
    )


def _detail(reason: LayerReason) -> str:
    """What a reason's sentence says beside what it quotes."""
    if reason.power is not None:
        return too_short(reason.power)
    if reason.because is LayerBecause.SYMPTOMS_ONLY and reason.finding is not None:
        return str(reason.finding.caused_by)
    return _parts(reason)


def too_short(power: Power, cleared: str = "it") -> str:
    """How long was recorded, and how long a rule needs."""
    recorded = f"only {show(power.recorded_s, 's')} {'was' if power.recorded_s == 1.0 else 'were'} recorded"
    if power.is_alone:
        boot = ", which may be an average since boot" if power.is_since_boot else ""
        recorded = f"one report was recorded{boot}"
    if power.needed_s == 0.0:
        return f"{recorded}, too little to clear {cleared}"
    return f"{recorded}, and {show(power.needed_s, 's')} are needed to clear {cleared}"


def _parts(reason: LayerReason) -> str:
    fine = f"nothing of weight at its {and_words(reason.seen)}; " if reason.seen else ""
    lacking = f"not recorded for long enough: its {and_words(reason.brief)}" if reason.brief else ""
    absent = f"not recorded: its {and_words(reason.absent)}" if reason.absent else ""
    return fine + "; ".join(filter(None, (lacking, absent)))


def and_words(words: tuple[str, ...]) -> str:
    """Words in a sentence: "CPU, memory and disks"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
