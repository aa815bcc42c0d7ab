"""Parts of the fio driver."""
