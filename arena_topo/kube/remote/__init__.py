"""Processes in containers, over the API server's websocket."""
