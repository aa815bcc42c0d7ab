"""Parts of the sample store: its log, its catalogue, its segments and its roll-ups."""
