"""What is known of GPUs, links and machines."""
