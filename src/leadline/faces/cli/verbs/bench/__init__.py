"""Load a machine honestly and keep what was measured."""

QUESTION = "fast"
EPILOG = """\
Examples:

  leadline bench workloads

  LEADLINE_HOME=runs leadline bench run postgresql-io --on /srv/scratch --set-size 4g
"""
