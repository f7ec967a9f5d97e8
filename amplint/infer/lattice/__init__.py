"""What is known of a value: its dtype in each scenario, its kind, its range and where it comes from."""
