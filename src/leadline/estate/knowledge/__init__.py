"""What is known of infrastructure and databases, asked of an inventory: what runs where, what is set how."""
