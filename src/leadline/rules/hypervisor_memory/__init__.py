"""Rules of the hypervisor-memory layer."""
