"""The subcommand that opens the dashboard: `add_arguments(parser)` and `execute(options)`."""
