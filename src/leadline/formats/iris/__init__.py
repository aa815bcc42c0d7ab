"""Reports of InterSystems systems."""
