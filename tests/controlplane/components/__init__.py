"""The components as processes: command lines, certificates, what they hold at the start."""
