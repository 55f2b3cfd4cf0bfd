"""Tables of packings for common machines, shipped, and the program that writes them."""
