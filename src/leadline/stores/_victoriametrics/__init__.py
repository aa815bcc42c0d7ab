"""Parts of the VictoriaMetrics store: its connection, what is written, what is answered, and facts beside it."""
