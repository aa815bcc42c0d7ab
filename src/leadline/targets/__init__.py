"""One file per system Leadline can change, always by a printed plan and with a way back."""
