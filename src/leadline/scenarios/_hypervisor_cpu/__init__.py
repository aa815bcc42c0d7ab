"""Parts of hypervisor cpu."""
