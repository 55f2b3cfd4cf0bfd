"""How `top node` looks, to the byte as Arena's."""
