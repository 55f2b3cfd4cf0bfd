"""How plans look."""
