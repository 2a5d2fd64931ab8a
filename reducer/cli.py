"""The commands. Thin: heavy imports happen inside them, so that ``reduce --help`` is quick."""

from __future__ import annotations

import json
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reducer import __version__
from reducer.errors import CaseError, Exit

if TYPE_CHECKING:
    from reducer.case import Settings
    from reducer.outcome import Outcome

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

FailingCmd = Annotated[str | None, typer.Option(help="The command that fails on Paddle and passes under PyTorch.")]
Repo = Annotated[Path, typer.Option(help="The library's checkout.")]
BuildCmd = Annotated[
    str | None, typer.Option(help="How the library is built. Default: found by itself; '' for no build.")
]
ControlCmd = Annotated[
    str | None, typer.Option(help="Another command for the control, when the failing one needs Paddle's own API.")
]
Match = Annotated[
    str | None, typer.Option(help="Regular expression that the failure's output must match to be the same failure.")
]
PaddlePython = Annotated[
    Path | None, typer.Option(help="Interpreter that has Paddle. Default: the python that runs this tool, else python.")
]
TorchPython = Annotated[
    Path | None, typer.Option(help="Interpreter that has PyTorch, for the control. Default: the Paddle interpreter.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object as the result.")]
Out = Annotated[Path, typer.Option(help="Where the MRE is written.")]
Jobs = Annotated[int, typer.Option(min=1, help="Compile jobs of one build, and candidates judged at a time.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Take no answer from an earlier run of the same case.")]
Timeout = Annotated[str, typer.Option(help="Seconds a run may take, or 'auto': from the baseline.")]
Socket = Annotated[Path, typer.Option(help="The Unix socket at which the oracle answers.")]

oracle = typer.Typer(
    rich_markup_mode=None, no_args_is_help=True, help="Let another reducer ask whether a candidate is the same failure."
)
app.add_typer(oracle, name="oracle")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"reduce {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def reduce(
    context: typer.Context,
    failing_cmd: FailingCmd = None,
    repo: Repo = Path(),
    build_cmd: BuildCmd = None,
    paddle_python: PaddlePython = None,
    torch_python: TorchPython = None,
    control_cmd: ControlCmd = None,
    match: Match = None,
    timeout: Timeout = "auto",
    jobs: Jobs = 2,
    out: Out = Path("mre"),
    fresh: Fresh = False,
    json_output: Json = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Reduce a library that fails on Paddle's torch-compat layer to a minimal reproducible example.

    Exit codes: 0 reduced and confirmed; 2 usage; 3 the command does not fail on Paddle; 4 the control fails too;
    5 flaky; 6 environment not usable; 7 stopped early, best so far is written; 130 interrupted, best so far is written.
    """
    if context.invoked_subcommand is not None:
        return
    if failing_cmd is None:
        _fail(
            CaseError(
                Exit.USAGE,
                "No failing command. Give the test that fails on Paddle, for example:\n"
                '  reduce --failing-cmd "pytest tests/test_x.py"\n'
                "or try a shipped example: reduce demo. All options: reduce --help.",
            ),
            json_output,
        )
    assert failing_cmd is not None
    from reducer.case import Settings

    settings = Settings(
        failing_cmd=failing_cmd,
        repo=repo,
        build_cmd=build_cmd,
        paddle_python=paddle_python,
        torch_python=torch_python,
        control_cmd=control_cmd,
        match=match,
        timeout=_seconds(timeout, json_output),
        jobs=jobs,
        out=out,
        fresh=fresh,
    )
    _main_job(settings, json_output)


@app.command()
def demo(
    name: Annotated[str, typer.Argument(help="Which shipped library; 'list' names them.")] = "cxx_build",
    paddle_python: PaddlePython = None,
    torch_python: TorchPython = None,
    jobs: Jobs = 2,
    out: Out = Path("mre"),
    json_output: Json = False,
) -> None:
    """Run the main job on a library shipped with this tool."""
    from reducer.demo import libraries, settings_for

    known = libraries()
    if name == "list":
        for library in known.values():
            print(f"{library.name:12} {library.description}")
        return
    if name not in known:
        _fail(
            CaseError(Exit.USAGE, f"No shipped library {name!r}. There are: {', '.join(known) or 'none'}."), json_output
        )
    _main_job(settings_for(known[name], paddle_python, torch_python, jobs, out), json_output)


@app.command()
def doctor(paddle_python: PaddlePython = None, torch_python: TorchPython = None, json_output: Json = False) -> None:
    """Say what this machine has and lacks for the job, and how to get it. Exit code 6 when the job cannot run."""
    from reducer.doctor import examine
    from reducer.frameworks.interpreters import InterpreterError

    try:
        findings = examine(paddle_python, torch_python)
    except InterpreterError as error:
        _fail(CaseError(Exit.ENVIRONMENT, str(error)), json_output)
        return
    if json_output:
        print(json.dumps([finding.as_dict() for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.mark:8} {finding.what}: {finding.seen}")
            if finding.advice:
                print(f"         -> {finding.advice}")
    if any(finding.blocks for finding in findings):
        raise typer.Exit(Exit.ENVIRONMENT)


@oracle.command("start")
def oracle_start(
    socket: Socket,
    failing_cmd: FailingCmd = None,
    repo: Repo = Path(),
    build_cmd: BuildCmd = None,
    paddle_python: PaddlePython = None,
    torch_python: TorchPython = None,
    control_cmd: ControlCmd = None,
    match: Match = None,
    timeout: Timeout = "auto",
    jobs: Jobs = 2,
    out: Annotated[Path, typer.Option(help="An earlier result in the checkout: no part of the case.")] = Path("mre"),
    json_output: Json = False,
) -> None:
    """Run the case once on both sides, then answer questions about candidates until stopped or interrupted.

    One line on standard output says that it is ready, and the command to ask. Exit codes: those of the main job.
    """
    if failing_cmd is None:
        _fail(CaseError(Exit.USAGE, "--failing-cmd is missing. Give the test that fails on Paddle."), json_output)
        return
    import shlex

    from reducer import oracle_client, oracle_service
    from reducer.case import Settings
    from reducer.console import Console

    settings = Settings(
        failing_cmd=failing_cmd,
        repo=repo,
        build_cmd=build_cmd,
        paddle_python=paddle_python,
        torch_python=torch_python,
        control_cmd=control_cmd,
        match=match,
        timeout=_seconds(timeout, json_output),
        jobs=jobs,
        out=out,
    )

    def ready(failure: str, place: str) -> None:
        command = shlex.join([sys.executable, "-I", "-S", oracle_client.__file__, "--socket", place])
        if json_output:
            print(json.dumps({"failure": failure, "ask": command}, ensure_ascii=False), flush=True)
        else:
            print(f"ready; ask with: {command} [DIRECTORY or FILE]", flush=True)

    console = Console()
    try:
        console.say(oracle_service.run(settings, socket, console.say, ready))
    except CaseError as error:
        _fail(error, json_output)
    except KeyboardInterrupt:
        _fail(CaseError(Exit.INTERRUPTED, "interrupted before it was ready."), json_output)


@oracle.command("ask")
def oracle_ask(
    socket: Socket,
    candidate: Annotated[
        str, typer.Argument(help="The candidate's directory, or one file of the tree. Default: the current directory.")
    ] = "",
    file: Annotated[
        list[str] | None,
        typer.Option(help="Take this file of the tree from there, by its path or its bare name, the rest as frozen."),
    ] = None,
    base: Annotated[str, typer.Option(help="Take what the candidate lacks from this directory.")] = "",
    real: Annotated[bool, typer.Option("--real", help="By the real build and command, with no shortcut.")] = False,
) -> None:
    """Exit code 0: the same failure, and PyTorch passes; 1: not; 2: usage; 125: no oracle there, or no answer."""
    from reducer import oracle_client

    code, text = oracle_client.ask(str(socket), candidate, tuple(file or ()), base, real=real)
    print(text, file=sys.stderr if code not in (oracle_client.SAME, oracle_client.NOT_SAME) else sys.stdout)
    raise typer.Exit(code)


@oracle.command("stop")
def oracle_stop(socket: Socket) -> None:
    """End the oracle and print what it was asked. Exit code 125: there is none."""
    from reducer import oracle_client

    code, text = oracle_client.exchange(str(socket), ["stop"])
    print(text, file=sys.stderr if code else sys.stdout)
    raise typer.Exit(code)


def _main_job(settings: Settings, json_output: bool) -> None:
    from reducer.session import run

    try:
        outcome = run(settings)
    except CaseError as error:
        _fail(error, json_output)
        return
    except OSError as error:
        what = f"{error.strerror}: {error.filename}" if error.filename else str(error)
        advice = "Free some space, or set TMPDIR to a place with room, and run it again."
        _fail(CaseError(Exit.ENVIRONMENT, f"this machine cannot run the job ({what}). {advice}"), json_output)
        return
    except KeyboardInterrupt:
        _fail(CaseError(Exit.INTERRUPTED, "interrupted before there was anything to write."), json_output)
        return
    _report(outcome, json_output)


def _report(outcome: Outcome, json_output: bool) -> None:
    if json_output:
        print(json.dumps(outcome.as_dict(), indent=2, ensure_ascii=False))
    else:
        for line in outcome.summary:
            print(line)
        print(outcome.path)
    raise typer.Exit(outcome.code)


def _seconds(text: str, json_output: bool) -> float | None:
    if text == "auto":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e7:
        _fail(CaseError(Exit.USAGE, f"--timeout {text}: give a number of seconds above 0, or 'auto'."), json_output)
    return seconds


def _fail(error: CaseError, json_output: bool) -> None:
    if json_output:
        print(json.dumps({"exit_code": int(error.code), "error": str(error)}, ensure_ascii=False))
    else:
        print(f"reduce: {error}", file=sys.stderr)
    raise typer.Exit(error.code)


def main() -> None:
    """Entry point of the ``reduce`` command."""
    warnings.simplefilter("ignore", SyntaxWarning)  # the parsed texts are the user's and candidates, not ours
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    app()


def _interrupt(number: int, frame: object) -> None:
    """Asked to end: like Ctrl-C, the best result so far is written first."""
    raise KeyboardInterrupt
