"""Tables of packings for common machines, and the program that writes them."""
