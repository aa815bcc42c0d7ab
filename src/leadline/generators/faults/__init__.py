"""One file per fault that can be injected into a generated capture."""
