"""``coem serve``: a model that other programs ask over HTTP."""

import gc
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from coem.cli._options import RUN_OR_MODEL, other_encoder_option, talk_options, trust_option
from coem.cli._talk import Talk

EXAMPLE = """\b
Examples:
  coem serve groups
  coem serve groups/model.coem --port 0 --token-file token.txt
  curl -H "Authorization: Bearer TOKEN" http://127.0.0.1:8765/predict \\
       -d '{"row": {"body": "a goal in the last minute"}}'
"""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
SHORTEST, LONGEST = 16, 1_000  # characters of a token
# What requests have in a column, by the kind of its view.
TAKES = {
    "text": ("text",),
    "embed": ("text",),
    "number": ("a number",),
    "vector": ("a list of numbers",),
    "list": ("a list of texts", "text"),
    "inbound": ("a list of texts", "text"),
}
LEFT = 5.0  # seconds that a prediction may still take when the server is stopped


@click.command("serve", epilog=EXAMPLE)
@click.argument("model", metavar="MODEL|RUN", type=RUN_OR_MODEL)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="0 takes a free port, and prints it.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The token that requests must show. [a new one, which is printed]",
)
@other_encoder_option
@trust_option
@talk_options
def command(model: Path, host: str, port: int, token_file: Path | None, **options: Any) -> None:
    """Answer requests for the groups or classes of rows, over HTTP, until Ctrl-C.

    POST /predict takes {"rows": [{"COLUMN": "value"}]} or {"row": {...}} and returns what
    `coem predict` writes; GET /health says what the model is. Requests need the header
    `Authorization: Bearer TOKEN`. A bad request gets an error in JSON that names the field and
    the fix.
    """
    from coem.cli import _models
    from coem.cli._server import Server

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    token = secrets.token_urlsafe(24) if token_file is None else _read_token(token_file)
    trust = options["trust_patterns"]
    saved = _models.load_model(model, options["encoder"], trust_patterns=trust)
    _models.check_encoders(saved)
    columns = columns_of(saved)
    if host not in LOOPBACK:
        talk.note(
            f"note: {host} may be reached from other machines, and requests are not encrypted"
        )
    predict = predictor(saved)
    with suppress(ValueError, TypeError):
        predict([dict.fromkeys(columns, "")])  # what is loaded late is loaded now
    gc.collect()
    gc.freeze()  # the model stays: to look for garbage in it would take milliseconds
    with Server((host, port), token, predict, columns, _health(saved, columns)) as server:
        _announce(server, host, token if token_file is None else None, talk)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            server.at_work.acquire(timeout=LEFT)
            talk.note(f"stopped after {server.n_answered:,} answers")


def columns_of(saved: Any) -> dict[str, tuple[str, ...]]:
    """Return the columns that a model reads, and what they take.

    Raise if it needs vectors from a file.
    """
    if saved.paragraphs is not None:
        return dict.fromkeys(saved.paragraphs["columns"], TAKES["text"])
    for name, spec in saved.reader.views_.items():
        if spec["kind"] == "array":
            raise ValueError(
                f"view {name!r} came from a .npy file, and requests have no such rows; use "
                "coem predict"
            )
    specs = saved.reader.views_.values()
    return {name: TAKES.get(spec["kind"], ()) for spec in specs for name in spec.get("columns", ())}


def predictor(saved: Any) -> Any:
    """Return what answers for rows: a list of what `coem predict` writes of each."""
    from coem.cli import _models

    talk, columns = Talk(quiet=True), columns_of(saved)
    _use_one_thread(saved)

    def predict(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        documents = _models.read_rows(saved, _filled(rows), {}, talk)
        views = _models.views_of(saved, documents, ())
        found: list[dict[str, Any]] = _models.assign(saved, views, documents).to_pylist()
        return [_plain(row) for row in found]

    def _filled(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
        """Return the columns of rows; what a row does not have is null."""
        names = dict.fromkeys([*columns, *(name for row in rows for name in row)])
        return {name: [row.get(name) for row in rows] for name in names}

    return predict


def _use_one_thread(saved: Any) -> None:
    """Let a model use one thread: to hand on a single row takes longer than to answer for it."""
    for part in (saved.reader, saved.model, getattr(saved.model, "mixture_", None)):
        if hasattr(part, "n_jobs"):
            part.n_jobs = 1


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row for JSON, with null for NaN."""
    return {k: None if isinstance(v, float) and v != v else v for k, v in row.items()}


def _health(saved: Any, columns: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return what the server is: its model, the columns that it reads, and its groups."""
    from coem import __version__

    names = [str(name) for name in getattr(saved.model, "classes_", ())] or saved.names
    kind = type(saved.model).__name__
    return {
        "status": "ok",
        "coem": __version__,
        "model": kind,
        "columns": [*columns],
        "names": names,
    }


def _read_token(path: Path) -> str:
    """Return the token of a file."""
    with path.open("rb") as file:
        token = file.read(LONGEST + 2).strip()
    if not (SHORTEST <= len(token) <= LONGEST and all(32 < byte < 127 for byte in token)):
        raise ValueError(
            f"{path} must hold a token of {SHORTEST} to {LONGEST:,} letters, digits or signs in "
            "one line"
        )
    return token.decode("ascii")


def _announce(server: Any, host: str, token: str | None, talk: Talk) -> None:
    """Say where the server is, and its token unless that is in a file."""
    import sys

    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{server.server_port}"
    lines = [f"listening on {url}", *([] if token is None else [f"token {token}"])]
    talk.result("\n".join(lines), {"url": url, "token": token})
    sys.stdout.flush()  # the process that started it waits for the port
