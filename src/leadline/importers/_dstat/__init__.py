"""Parts of the importer of dstat and its successors."""
