"""Read a live source, without changing anything, into files every verb reads."""

QUESTION = "record"
EPILOG = """\
Examples:

  leadline explain vcenter

  LEADLINE_PASSWORD=... leadline collect vcenter vc.example -u ro@vsphere.local -o vc.parquet

  PGPASSFILE=... leadline collect postgresql "host=db1 user=monitor" -o db1

  SSH_AUTH_SOCK=... leadline collect linux ssh://monitor@db1 -o db1
"""
