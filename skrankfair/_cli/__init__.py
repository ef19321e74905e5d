"""The command line: its options and commands, input files, terminal output, demos."""
