"""Parts of the importer of InnoDB's status."""
