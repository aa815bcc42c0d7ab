"""Keep every sample, judge while it happens, and say what goes wrong now."""

QUESTION = "slow"
DEFAULT = "run"
EPILOG = """\
Examples:

  leadline watch init

  leadline watch

  leadline watch status

  leadline watch incidents --json

`leadline watch` without a verb runs it: leadline watch run.
"""
