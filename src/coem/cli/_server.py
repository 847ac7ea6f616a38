"""A small HTTP face of a model, for programs on the same machine."""

import hmac
import json
import math
import reprlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from coem.phrases import first_few

MOST_BYTES = 1_000_000  # of a request
MOST_ROWS = 1_000
MOST_CONNECTIONS = 64
PATIENCE = 30.0  # seconds that a connection may say nothing
HASTE = 2.5  # seconds in which a new connection must show the token: places are few
DRAINED = 16_000_000  # bytes of a refused request that are read and thrown away
METHODS = {"/predict": "POST", "/health": "GET"}
FORM = '{"rows": [{"COLUMN": "value"}]} or {"row": {"COLUMN": "value"}}'


class Refused(Exception):
    """A request that cannot be answered: its status, what is wrong, where, and what to do."""

    def __init__(self, status: int, error: str, *, field: str, fix: str) -> None:
        super().__init__(error)
        self.status = status
        self.answer = {"error": error, "field": field, "fix": fix}


# -- what a request says ---------------------------------------------------------------------------


def read_request(body: bytes, columns: Iterable[str]) -> tuple[list[dict[str, Any]], bool]:
    """Return the rows of a request, and whether it is one row; raise `Refused` with the reason.

    `columns` are those that the model reads, to be named where one is missing.
    """
    content = _parsed(body)
    if not isinstance(content, dict) or ("rows" in content) == ("row" in content):
        raise _bad("the body must be an object with either rows or row", "body", f"send {FORM}")
    extra = sorted(content.keys() - {"rows", "row"})
    if extra:
        raise _bad(f"unknown field {extra[0][:80]!r}", extra[0][:80], f"send {FORM}")
    single = "row" in content
    rows = [content["row"]] if single else content["rows"]
    if not isinstance(rows, list) or not rows:
        raise _bad("rows must be a list of at least one row", "rows", f"send {FORM}")
    if len(rows) > MOST_ROWS:
        few = f"send at most {MOST_ROWS:,} rows at a time"
        raise _bad(f"there are {len(rows):,} rows", "rows", few, 413)
    kinds: dict[str, type | None] = {}
    for i, row in enumerate(rows):
        _check_row(row, "row" if single else f"rows[{i}]", kinds)
    if not any(name in kinds for name in columns):
        names = first_few(columns)
        field = "row" if single else "rows"
        raise _bad("no row has a column that the model reads", field, f"it reads {names}")
    return rows, single


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        wrong = f"the body is not UTF-8 at byte {error.start}"
        raise _bad(wrong, "body", "send JSON in UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise _bad(f"the body is not JSON: {error!s:.200}", "body", f"send {FORM}") from None


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not a number in JSON")


def _check_row(row: Any, place: str, kinds: dict[str, type | None]) -> None:
    """Refuse what is not a row; a column has values of one kind in all rows."""
    if not isinstance(row, dict) or not row:
        fix = 'send an object such as {"COLUMN": "value"}'
        raise _bad(f"{place} must be an object with a value for each column", place, fix)
    for name, value in row.items():
        where, kind = f"{place}.{name:.80}", _kind(value)
        if isinstance(value, str):
            _check_text(value, where)
        if kind is dict:
            fix = "send a text, a number, true or false, a list of texts or of numbers, or null"
            raise _bad(f"a column has no values such as {reprlib.repr(value):.40}", where, fix)
        known = kinds.get(name)
        if kind is not None and known not in (None, kind):
            wrong = f"column {name:.80} has values of different kinds"
            raise _bad(wrong, where, "send texts, numbers or lists in all rows, or null")
        kinds[name] = known or kind


def _check_text(text: str, place: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        fix = "send whole characters"
        raise _bad("the text has half a character (a surrogate)", place, fix) from None


def _kind(value: Any) -> type | None:
    """Return the kind of a value, for which a list stands for all its values; None has none.

    What no column holds is a dict.
    """
    if value is None:
        return None
    if isinstance(value, str | bool):
        return type(value)
    if isinstance(value, int | float):
        return float if abs(value) < 2**63 else dict
    if isinstance(value, list):
        kinds = {dict if isinstance(item, list) else _kind(item) for item in value}
        return list if len(kinds) < 2 and kinds <= {str, float} else dict
    return dict


def _misfit(
    rows: list[dict[str, Any]], single: bool, columns: Mapping[str, Sequence[str]]
) -> Refused | None:
    """Return what is wrong with the first value that is not what its column takes, if any."""
    for i, row in enumerate(rows):
        for name, takes in columns.items():
            value = row.get(name)
            if value is not None and takes and (got := _called(value)) not in takes:
                place = "row" if single else f"rows[{i}]"
                wrong = f"column {name!r} takes {' or '.join(takes)}, and got {got}"
                return _bad(wrong, f"{place}.{name:.80}", f"send {takes[0]}, or null")
    return None


def _called(value: Any) -> str:
    """Return the name of the kind of a value."""
    if isinstance(value, list):
        return "a list of texts" if all(isinstance(v, str) for v in value) else "a list of numbers"
    return {str: "text", bool: "true or false"}.get(type(value), "a number")


def _bad(error: str, field: str, fix: str, status: int = 400) -> Refused:
    return Refused(status, error, field=field, fix=fix)


# -- the server ------------------------------------------------------------------------------------


class Server(ThreadingHTTPServer):
    """Answers requests until it is stopped, one prediction at a time.

    Parameters
    ----------
    address : (str, int)
        Host and port; port 0 takes a free one.
    token : str
        What requests must show: ``Authorization: Bearer TOKEN``.
    predict : callable
        Takes the rows of a request, and returns a list of answers.
    columns : dict of str to sequence of str
        The columns that the model reads, each with what it takes, such as "text".
    health : dict
        The answer to GET /health.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(
        self,
        address: tuple[str, int],
        token: str,
        predict: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
        columns: Mapping[str, Sequence[str]],
        health: dict[str, Any],
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.secret = f"Bearer {token}".encode()
        self.predict, self.columns, self.health = predict, columns, health
        self.n_answered = 0
        self.at_work = threading.Lock()  # one at a time: a row takes milliseconds
        self.places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self.unknown: dict[Any, float] = {}  # connections without a token yet, and since when
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        """Bind to the address, without asking a name server what it is called."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own, or turn it away if there are too many."""
        if not self.places.acquire(blocking=False):
            self._turn_away(request)
            return
        self.unknown[request] = time.monotonic()
        super().process_request(request, client_address)

    def _turn_away(self, request: Any) -> None:
        """Say that all places are taken, and close the connection."""
        fix = "try again in a few seconds, and close connections that are not needed"
        content = {"error": "there are too many connections", "field": "connection", "fix": fix}
        body = json.dumps(content).encode()
        head = (
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nRetry-After: {math.ceil(HASTE)}\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        with suppress(OSError):
            request.settimeout(0.05)  # others wait
            request.sendall(head.encode() + body)
            request.shutdown(socket.SHUT_WR)
            request.recv(1 << 16)  # what is not read would cost the sender the answer
        self.shutdown_request(request)

    def service_actions(self) -> None:
        """Close connections that have not shown the token in time, however slowly they speak."""
        late = time.monotonic() - HASTE
        for request, since in list(self.unknown.items()):
            if since < late and self.unknown.pop(request, None) is not None:
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.unknown.pop(request, None)
            self.places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a broken connection: the client has gone."""

    def answer(self, body: bytes) -> dict[str, Any]:
        """Return the answer to POST /predict."""
        rows, single = read_request(body, self.columns)
        try:
            with self.at_work:
                found = self.predict(rows)
                self.n_answered += 1
        except (ValueError, TypeError) as error:
            wrong = _misfit(rows, single, self.columns)
            if wrong is not None:
                raise wrong from error
            names = first_few(self.columns)
            raise _bad(
                f"{error!s:.500}", "row" if single else "rows", f"it reads {names}"
            ) from error
        return {"row": found[0]} if single and len(found) == 1 else {"rows": found}


class Handler(BaseHTTPRequestHandler):
    """One connection: requests one after the other, and answers in JSON."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "coem", ""
    timeout = HASTE
    wbufsize = 1 << 16  # headers and body in one packet

    def do_GET(self) -> None:
        """Answer GET /health."""
        self._answer({"/health": lambda: self.server.health})

    def do_POST(self) -> None:
        """Answer POST /predict."""
        self._answer({"/predict": lambda: self.server.answer(self._body())})

    def do_PUT(self) -> None:
        """Say which method is right."""
        self._answer({})

    do_HEAD = do_OPTIONS = do_DELETE = do_PATCH = do_TRACE = do_PUT

    def handle_expect_100(self) -> bool:
        """Let the sender of a long body go on; the answer must not wait for the body."""
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def _answer(self, known: dict[str, Callable[[], Any]]) -> None:
        """Send the answer of the path that was asked for, or say what is wrong."""
        if self.command != "POST" and self._has_body():
            self.close_connection = True  # a body here would be read as the next request
        try:
            self._check_token()
            if self.path not in known:
                raise self._no_path()
            self._send(200, known[self.path]())
        except Refused as error:
            self._refuse(error)
        except OSError:
            raise
        except Exception as error:  # a bug: the client gets an answer without details
            self.log_error("%s: %s", type(error).__name__, error)
            wrong = "something went wrong in the server"
            self._send(500, {"error": wrong, "field": "", "fix": "report it"})

    def _has_body(self) -> bool:
        said = self.headers.get("Content-Length", "0") != "0"
        return said or "Transfer-Encoding" in self.headers

    def _no_path(self) -> Refused:
        if self.path in METHODS:
            fix = f"use {METHODS[self.path]}"
            return _bad(f"{self.path} takes no {self.command}", "method", fix, 405)
        fix = "use POST /predict or GET /health"
        return _bad(f"there is no {self.path[:80]!r}", "path", fix, 404)

    def _check_token(self) -> None:
        shown = (self.headers.get("Authorization") or "").encode("utf-8", "replace")
        if not hmac.compare_digest(shown, self.server.secret):
            self.close_connection = True  # its place is for others
            fix = "send the header Authorization: Bearer TOKEN, with the token of coem serve"
            raise _bad("the token is missing or wrong", "Authorization", fix, 401)
        self.server.unknown.pop(self.connection, None)
        self.connection.settimeout(PATIENCE)

    def _body(self) -> bytes:
        """Return the body of a request, which says its length."""
        if "Transfer-Encoding" in self.headers:
            fix = "send the header Content-Length"
            raise _bad("bodies in chunks are not read", "Transfer-Encoding", fix)
        said = self.headers.get("Content-Length") or ""
        if not (said.isascii() and said.isdigit() and len(said) < 20):
            fix = "send the length of the body in bytes"
            raise _bad("the length of the body is not known", "Content-Length", fix)
        if int(said) > MOST_BYTES:
            fix = f"send at most {MOST_BYTES:,} bytes at a time"
            raise _bad(f"the body has {int(said):,} bytes", "Content-Length", fix, 413)
        body = self.rfile.read(int(said))
        self.was_read = True
        if len(body) < int(said):
            self.close_connection = True
            fix = "send as many bytes as Content-Length says"
            raise _bad("the body ended early", "Content-Length", fix)
        return body

    def _refuse(self, error: Refused) -> None:
        """Send what is wrong. A body that was not read ends the connection."""
        rest = self._has_body() and not getattr(self, "was_read", False)
        self.close_connection = self.close_connection or rest
        self._send(error.status, error.answer)
        if rest:
            self._drain()

    def _drain(self) -> None:
        """Throw away what is still sent: closing at once would cost the sender the answer."""
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(1.0)
            left = DRAINED
            while left > 0 and (part := self.connection.recv(1 << 16)):
                left -= len(part)

    def _send(self, status: int, content: Any) -> None:
        self.was_read = False  # of the next request of the connection
        body = json.dumps(content, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", METHODS[self.path])
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer in JSON also if a request is not HTTP, or has an unknown method."""
        self.close_connection = True
        self.command = getattr(self, "command", None) or "GET"
        wrong = str(message or HTTPStatus(code).phrase)[:200]
        self._send(code, {"error": wrong, "field": "request", "fix": "use POST /predict"})

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of requests; rows are private."""

    def log_error(self, format: str, *args: Any) -> None:
        """Say nothing of what others send; of errors of the server, one line."""
        if not format.startswith(("code", "Request timed out")):
            BaseHTTPRequestHandler.log_message(self, format, *args)
