"""Parts of the importer of Linux kernel logs: the forms of its lines, and the messages that tell of trouble."""
