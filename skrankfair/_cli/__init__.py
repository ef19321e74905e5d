"""The command line: reading files, writing to the terminal, the demo."""
