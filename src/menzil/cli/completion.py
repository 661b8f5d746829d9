"""`menzil completion`: what a shell must know to complete the command."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_WHERE = {
    "bash": "menzil completion bash > ~/.local/share/bash-completion/completions/menzil",
    "zsh": "menzil completion zsh > ~/.zfunc/_menzil, with fpath+=~/.zfunc before compinit in ~/.zshrc",
    "fish": "menzil completion fish > ~/.config/fish/completions/menzil.fish",
}


@click.command(epilog="  ".join(_WHERE.values()))
@click.argument("shell", type=click.Choice(list(_WHERE)))
def completion(shell: str) -> None:
    """Print the script that completes commands, options and their words in bash, zsh or fish."""
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these three"
    root = click.get_current_context().find_root().command
    script = kind(root, {}, "menzil", "_MENZIL_COMPLETE")
    # Not its source(): that one first starts bash, to ask for its version.
    click.echo(script.source_template % script.source_vars())
