"""Tests of the recorder of incidents."""
