"""All-or-nothing scheduling: one module per gang back-end."""
