"""How results look: tables, matrices, trees, pictures, json and yaml."""
