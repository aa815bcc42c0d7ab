"""Parts of the storage path: what a scenario holds, what the simulator takes, what it gave."""
