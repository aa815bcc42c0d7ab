"""What each kind of unit must be, how units are found, and how they are described."""
