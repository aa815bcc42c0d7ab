"""sysstat's texts, columns and exports."""
