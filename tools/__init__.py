"""Programs of the project's maintainers; no part of what is installed."""
