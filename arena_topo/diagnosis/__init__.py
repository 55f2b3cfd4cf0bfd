"""What the ranks of a running job do, seen from outside: whether they move, and which of them the others wait for."""
