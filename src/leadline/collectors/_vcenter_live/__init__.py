"""The live source of vCenter, in parts: connection, estate, counters, samples that come late, columns."""
