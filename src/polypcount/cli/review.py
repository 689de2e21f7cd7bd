"""`polypcount review`: look at counts in the browser, and correct them."""

from pathlib import Path
from typing import Annotated

import typer

_HERE = ("127.0.0.1", "localhost", "::1")


def review(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="OUT...", help="Folder that polypcount count wrote, or a folder of recordings."),
    ],
    recording: Annotated[
        Path | None, typer.Option(help="The recording, if it has been moved since it was counted.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page.", show_default="any free one")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    host: Annotated[str, typer.Option(help="Address to listen on. Any other lets other machines in.")] = _HERE[0],
) -> None:
    """Open a page in the browser, on this machine only, to look at a count and correct it.

    Every tracklet can be seen, moved, joined and split, and the count follows. Decisions are kept in the folder of the
    count; the count itself is not changed. Ctrl-C ends it; nothing is lost.
    """
    from polypcount.cli.texts import harmless
    from polypcount.errors import FileError
    from polypcount.review import find_procedures, serve

    procedures = find_procedures(folders, recording)
    if len(procedures) == 1 and procedures[0].is_counted:
        procedures[0].open()  # what is wrong with it is said here rather than in the page
    if recording is not None and not recording.exists():
        raise FileError(f"{recording} does not exist")

    def ready(address: str) -> None:
        if host not in _HERE:
            typer.echo(
                f"Listening on {harmless(host)}: whoever reaches this machine and has the address below sees the "
                "pictures. It is not encrypted.",
                err=True,
            )
        typer.echo(f"review: {address}")
        typer.echo("Ctrl-C ends it. Every decision is saved at once.")
        if browser:
            import webbrowser

            webbrowser.open(address)

    serve(procedures, folders[0].absolute(), host=host, port=port, ready=ready)
