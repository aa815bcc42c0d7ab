"""Where runs, series and events are kept.

Here: SQLite and Parquet stores that a kill does not break.
Elsewhere: what a run is (core/model).
"""
