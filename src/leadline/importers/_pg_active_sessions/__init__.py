"""Parts of the importer of active sessions."""
