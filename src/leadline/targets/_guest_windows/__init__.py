"""Parts of the Windows target: items and templates, and the forms they are written in."""
