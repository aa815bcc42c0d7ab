"""Parts of ``bench_incidents``: recordings, what a reader has of them, the judgement and its tables."""
