"""One file per live source: what is there now, read without changing anything."""
