"""The part of the importer of esxtop's screen that says what its columns mean."""
