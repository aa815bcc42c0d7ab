"""Limits that several rules compare with, with where they come from."""

from __future__ import annotations

from leadline.core.contracts.rule import Threshold

THREE_SAMPLES = Threshold(15.0, "s", "Judgement: three samples of esxtop's default interval")
TWO_SAMPLES = Threshold(60.0, "s", "Judgement: two samples of 30 s, or one of five minutes")
FEW_COMMANDS = Threshold(50.0, "per_s", "Broadcom KB 309140: averages of few commands mislead")
LOAD_PROFILE = Threshold(6.0 * 3600.0, "s", "Judgement: the least for a load profile")
