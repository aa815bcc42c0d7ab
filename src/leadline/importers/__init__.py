"""One file per tool: its recordings turned into captures."""
