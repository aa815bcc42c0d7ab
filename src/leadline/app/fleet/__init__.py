"""Worker machines cloned through vCenter, loaded and removed."""
