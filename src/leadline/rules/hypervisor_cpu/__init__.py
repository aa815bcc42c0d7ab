"""Rules of the hypervisor-cpu layer."""
