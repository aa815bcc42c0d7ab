"""Where runs, series and events are kept."""
