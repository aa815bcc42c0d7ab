"""One file per verb: a function `command` with its options, found by file name."""
