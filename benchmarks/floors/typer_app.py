"""A program of two commands made with Typer, and nothing else: the floor of what a start takes."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated

import typer

app = typer.Typer()


def print_version(value: bool) -> None:
    if value:
        print("1.0")
        raise typer.Exit


@app.callback()
def main(*, version: Annotated[bool, typer.Option("--version", callback=print_version, is_eager=True)] = False) -> None:
    """Two commands."""


@app.command()
def hello(name: str) -> None:
    print(f"Hello, {name}")


@app.command()
def send(agent: list[str]) -> None:
    """Run the agent with what is on stdin, and print its answer."""
    text = sys.stdin.buffer.read()
    print(subprocess.run(agent, input=text, stdout=subprocess.PIPE, check=True).stdout.decode())


if __name__ == "__main__":
    app()
