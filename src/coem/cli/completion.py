"""``coem completion``: completion for a shell."""

import click

EXAMPLE = """\b
Examples:
  coem completion bash >> ~/.bashrc
  coem completion fish > ~/.config/fish/completions/coem.fish
"""


@click.command("completion", epilog=EXAMPLE)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print what a shell needs to complete verbs and options."""
    from click.shell_completion import get_completion_class

    from coem.cli._program import main

    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"there is no completion for {shell}")
    click.echo(kind(main, {}, "coem", "_COEM_COMPLETE").source())
