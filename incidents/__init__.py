"""Real incidents, recorded with real tools on a machine whose fault is set from outside: ``make record-incidents``."""
