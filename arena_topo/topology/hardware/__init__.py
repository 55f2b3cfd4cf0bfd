"""GPU products, how they are wired, and link graphs."""
