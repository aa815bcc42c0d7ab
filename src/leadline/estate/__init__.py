"""What is known of virtual infrastructure and databases, shared by rules and planners."""
