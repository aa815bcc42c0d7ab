"""Throw-away database servers and what loads of databases share."""
