"""The program: its verbs, and how it reports errors."""

import logging
import sys
from typing import Annotated

import typer
from typer.core import TyperGroup

from polypcount.cli import check, count, demo, doctor, embed, importing, reproduce, review, simulate, study, train
from polypcount.cli.start import raise_if_stopped, say_stopped, stoppable
from polypcount.cli.texts import harmless, with_options
from polypcount.cli.verb import Verb
from polypcount.errors import DataErrors, PolypcountError


class _Program(TyperGroup):
    """The verbs. Where one is stopped, typer alone would end the program without a word."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override,unused-ignore]
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise typer.Exit(say_stopped(stop)) from None


app = typer.Typer(
    cls=_Program,
    name="polypcount",
    help="Count the distinct polyps in a colonoscopy recording. Research software, not a medical device.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for name, verb in (
    ("demo", demo.demo),
    ("simulate", simulate.simulate),
    ("import", importing.import_),
    ("merge", importing.merge),
    ("check", check.check),
    ("train", train.train),
    ("embed", embed.embed),
    ("study", study.study),
    ("reproduce", reproduce.reproduce),
    ("count", count.count),
    ("review", review.review),
    ("export", importing.export),
    ("doctor", doctor.doctor),
):
    app.command(name, cls=Verb)(verb)


def _print_version(asked: bool) -> None:
    if asked:
        import polypcount

        typer.echo(f"polypcount {polypcount.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error. Allowed anywhere.")] = False,
) -> None:
    """`main` removes `--debug` from the arguments; it is declared here so that the help shows it."""


def main() -> None:
    """Run the program.

    Exit codes: 0 done, 1 `check` found errors, 2 bad input or usage, 3 a bug in polypcount, 128 + the number of the
    signal that stopped it (Ctrl-C: 130, SIGTERM: 143).
    """
    with stoppable():
        _run(sys.argv[1:])


def _run(arguments: list[str]) -> None:
    debug = "--debug" in arguments
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it warns where its font cache cannot be written
    try:
        app(args=[argument for argument in arguments if argument != "--debug"], prog_name="polypcount")
    except Exception as problem:
        raise_if_stopped()
        if debug:
            raise
        if isinstance(problem, DataErrors):
            _end(*problem.lines, code=2)
        if isinstance(problem, PolypcountError):
            _end(with_options(problem), code=2)
        if isinstance(problem, OSError):
            what = f"{problem.filename}: " if problem.filename else "reading or writing failed: "
            _end(f"{what}{problem.strerror or problem}", code=2)
        _end(f"{type(problem).__name__}: {problem} (a fault in polypcount; --debug shows where)", code=3)


def _end(*messages: str, code: int) -> None:
    for message in messages:
        typer.echo(f"polypcount: {harmless(' '.join(message.split()))}", err=True)
    sys.exit(code)
