"""Making a placement hold: one module a means."""
