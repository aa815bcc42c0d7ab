"""Rules of the vm layer."""
