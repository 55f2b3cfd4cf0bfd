"""What the ranks of a running job do, seen from outside: who moves, and which rank the others wait for."""
