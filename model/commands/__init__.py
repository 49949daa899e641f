"""The subcommands that need theory alone: `add_arguments(parser)` and `execute(options)`."""
