"""All-or-nothing scheduling: one module a gang back-end."""
