"""What the controller costs."""
