"""The language of rules: what a rule says in one line, from series to findings."""
