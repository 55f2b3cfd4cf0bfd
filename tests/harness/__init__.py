"""How a run of all tests is carried out: interrupted, shared out among workers, and cleaned up after."""
