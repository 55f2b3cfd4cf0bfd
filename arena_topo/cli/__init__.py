"""The command line: one small module a command, loaded when it is needed."""
