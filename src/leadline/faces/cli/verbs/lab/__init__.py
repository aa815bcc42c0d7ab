"""Boot guests with the virtual hardware databases run on, load them, and see both sides of the hypervisor."""

EPILOG = """\
Examples:

  leadline lab run examples/lab/pvscsi-vs-lsi.yaml

  leadline lab console pvscsi

  leadline lab clean
"""
