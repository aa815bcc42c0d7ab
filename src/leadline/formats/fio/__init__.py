"""fio's results, logs, job files and options."""
