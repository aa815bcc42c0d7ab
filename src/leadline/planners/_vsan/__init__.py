"""Parts of the planner of vSAN: its inputs, protection, rates, write buffer, endurance and policies."""
