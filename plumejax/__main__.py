"""__main__: `python -m plumejax`, the same as the `plumejax` command."""

from plumejax.cli import command

command()
