"""Boot guests with the virtual hardware databases run on, load them, and see both sides of the hypervisor."""

QUESTION = "fast"
EPILOG = """\
Examples:

  LEADLINE_HOME=runs leadline lab run examples/lab/pvscsi-vs-lsi.yaml

  XDG_CACHE_HOME=cache leadline lab console pvscsi

  XDG_CACHE_HOME=cache leadline lab clean
"""
