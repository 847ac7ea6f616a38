"""``coem serve``: rows over HTTP, from this machine."""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, suppress

import pytest

from coem.cli import _models, _server
from coem.cli._server import MOST_BYTES, MOST_ROWS, Server, read_request
from coem.cli.serve import columns_of, predictor

TOKEN = "a-token-that-tests-know"
HEAD = {"Authorization": f"Bearer {TOKEN}"}
ROW = {"id": "new", "title": "ship sail", "body": "captain harbour crew storm"}


@pytest.fixture(scope="module")
def server(finished):
    saved = _models.load_model(finished)
    columns = columns_of(saved)
    health = {"status": "ok", "columns": columns}
    with Server(("127.0.0.1", 0), TOKEN, predictor(saved), columns, health) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join(10)


class Client:
    """Asks over one connection, which it makes again where the server closed it."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)

    def ask(self, method="POST", path="/predict", body=None, headers=HEAD):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        self.connection.request(method, path, data, headers)
        answer = self.connection.getresponse()
        told = json.loads(answer.read())
        assert answer.getheader("Content-Type") == "application/json; charset=utf-8"
        assert answer.getheader("Access-Control-Allow-Origin") is None
        assert "Traceback" not in json.dumps(told)
        return answer.status, told


@pytest.fixture
def client(server):
    found = Client(server.server_port)
    yield found
    found.connection.close()


def test_rows_are_answered_as_predict_writes_them(client, finished, coem, here):
    rows = [ROW, {"id": "x", "title": "judge", "body": None}, {"body": "oven bread butter"}]
    status, told = client.ask(body={"rows": rows})
    assert status == 200
    lines = [json.dumps({"id": str(i), **row}) for i, row in enumerate(rows)]
    (here / "new.jsonl").write_text("\n".join(lines), encoding="utf-8")
    wanted = json.loads(coem("predict", finished, "new.jsonl", "--json").stdout)
    assert len(told["rows"]) == 3
    for found, known in zip(told["rows"], wanted, strict=True):
        assert {**found, "id": None} == {**known, "id": None}
    status, told = client.ask(body={"row": ROW})
    assert (status, told["row"]) == (200, wanted[0])


def test_health(client):
    status, told = client.ask("GET", "/health")
    assert (status, told["status"], sorted(told["columns"])) == (200, "ok", ["body", "title"])


LONG = {"rows": [{"body": "ship"}] * (MOST_ROWS + 1)}
BAD = {
    "no token": ({"headers": {}}, 401, "Authorization"),
    "a wrong token": ({"headers": {"Authorization": "Bearer nonsense"}}, 401, "Authorization"),
    "a token of no letters": ({"headers": {"Authorization": "Bearer \xff"}}, 401, "Authorization"),
    "no token for health": ({"method": "GET", "path": "/health", "headers": {}}, 401, "Auth"),
    "an unknown path": ({"path": "/nothing"}, 404, "path"),
    "a path above": ({"path": "/../etc/passwd", "method": "GET"}, 404, "path"),
    "the wrong method": ({"method": "GET"}, 405, "method"),
    "the other wrong method": ({"path": "/health", "body": {}}, 405, "method"),
    "a method of others": ({"method": "PUT", "body": {"row": ROW}}, 405, "method"),
    "a question of a browser": ({"method": "OPTIONS"}, 405, "method"),
    "an unknown method": ({"method": "FETCH"}, 501, "request"),
    "a number for text": ({"body": {"row": {"body": 5}}}, 400, "row.body"),
    "truth for text": ({"body": {"rows": [{"body": None}, {"body": True}]}}, 400, "rows[1].body"),
    "no body": ({"body": b""}, 400, "body"),
    "no JSON": ({"body": b"{"}, 400, "body"),
    "no UTF-8": ({"body": b'{"row": "\xff"}'}, 400, "body"),
    "no number": ({"body": b'{"row": {"body": NaN}}'}, 400, "body"),
    "depth": ({"body": b"[" * 100_000}, 400, "body"),
    "a list": ({"body": [ROW]}, 400, "body"),
    "rows and row": ({"body": {"rows": [ROW], "row": ROW}}, 400, "body"),
    "an unknown field": ({"body": {"row": ROW, "what": 1}}, 400, "what"),
    "no rows": ({"body": {"rows": []}}, 400, "rows"),
    "rows that are none": ({"body": {"rows": "ship"}}, 400, "rows"),
    "a row that is none": ({"body": {"rows": [ROW, "ship"]}}, 400, "rows[1]"),
    "an empty row": ({"body": {"row": {}}}, 400, "row"),
    "an object in a row": ({"body": {"row": {"body": {"a": 1}}}}, 400, "row.body"),
    "lists in lists": (
        {"body": b'{"row": {"body": ' + b"[" * 900 + b"]" * 900 + b"}}"},
        400,
        "row.body",
    ),
    "a list of lists": ({"body": {"row": {"body": [[1]]}}}, 400, "row.body"),
    "a huge number": ({"body": {"row": {"body": 10**40}}}, 400, "row.body"),
    "half a character": ({"body": b'{"row": {"body": "\\ud800"}}'}, 400, "row.body"),
    "two kinds": ({"body": {"rows": [ROW, {"body": 5}]}}, 400, "rows[1].body"),
    "unknown columns": ({"body": {"row": {"text": "ship"}}}, 400, "row"),
    "too many rows": ({"body": LONG}, 413, "rows"),
    "too many bytes": ({"body": b" " * (MOST_BYTES + 1)}, 413, "Content-Length"),
    "no length": ({"headers": {**HEAD, "Content-Length": "many"}}, 400, "Content-Length"),
    "less than no length": ({"headers": {**HEAD, "Content-Length": "-1"}}, 400, "Content-Length"),
    "chunks": ({"headers": {**HEAD, "Transfer-Encoding": "chunked"}}, 400, "Transfer-Encoding"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_request_is_told_what_to_do(case, client):
    asked, status, field = BAD[case]
    found, told = client.ask(**asked)
    assert found == status, told
    assert set(told) == {"error", "field", "fix"}
    assert told["field"].startswith(field)
    assert told["fix"]
    assert client.ask(body={"row": ROW})[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\xff\x16\x03\x01\r\n\r\n",
        b"POST /predict HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_gets_an_answer_and_no_more(sent, server, client):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as other:
        other.sendall(sent)
        other.shutdown(socket.SHUT_WR)
        answer = b""
        while part := other.recv(65536):
            answer += part
    body = answer.partition(b"\r\n\r\n")[2] or answer
    assert set(json.loads(body)) == {"error", "field", "fix"}
    assert client.ask(body={"row": ROW})[0] == 200


def test_a_body_that_breaks_off(server, client):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as other:
        head = f"POST /predict HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        other.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        other.shutdown(socket.SHUT_WR)
        answer = other.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"ended early" in answer
    assert client.ask(body={"row": ROW})[0] == 200


def test_a_body_of_a_question_is_not_the_next_request(server):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as other:
        inner = f"GET /health HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        other.sendall(f"GET /x HTTP/1.1\r\nContent-Length: {len(inner)}\r\n\r\n".encode() + inner)
        assert other.makefile("rb").read().count(b"HTTP/1.1 ") == 1


@pytest.mark.slow
def test_many_requests_with_bad_ones_among_them(server, client):
    rng = random.Random(0)
    quick = [case for case in BAD if case not in ("depth", "too many rows", "too many bytes")]
    before, n = server.n_answered, 500  # benchmarks/serve.py has 10,000
    cases = [rng.choice(quick) if rng.random() < 0.2 else None for _ in range(n)]
    for case in cases:
        if case is None:
            assert client.ask(body={"row": ROW})[0] == 200
        else:
            asked, status, _ = BAD[case]
            assert client.ask(**asked)[0] == status
    # Unknown columns and the like are refused before the model is asked.
    assert server.n_answered - before == cases.count(None)


def test_what_a_column_takes_is_said_to_who_asks(client):
    told = client.ask(body={"row": {"body": 5}})[1]
    assert told["error"] == "column 'body' takes text, and got a number"
    assert told["fix"] == "send text, or null"
    told = client.ask(body={"rows": [{"title": ["a", "b"]}]})[1]
    assert told["error"] == "column 'title' takes text, and got a list of texts"


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "HEAD", "DELETE", "GET"])
def test_the_method_that_is_right_is_said(method, client):
    client.connection.request(method, "/predict", headers=HEAD)
    answer = client.connection.getresponse()
    assert (answer.status, answer.getheader("Allow")) == (405, "POST")
    assert answer.getheader("Content-Type") == "application/json; charset=utf-8"
    said = answer.read()
    assert (said == b"") == (method == "HEAD")
    assert client.ask("GET", "/health")[0] == 200


def asked_once(server):
    client = Client(server.server_port)
    with closing(client.connection):
        return client.ask("GET", "/health")


def test_connections_without_a_token_soon_make_room(server, client, monkeypatch):
    """Silent ones, and ones that speak slowly; one that has shown the token may take its time."""
    for owner, name in ((_server, "HASTE"), (_server.Handler, "timeout")):
        monkeypatch.setattr(owner, name, 600.0)  # nobody is late while the places are filled
    assert client.ask("GET", "/health")[0] == 200
    address, n = ("127.0.0.1", server.server_port), _server.MOST_CONNECTIONS
    with ExitStack() as stack:
        others = [
            stack.enter_context(socket.create_connection(address, timeout=10)) for _ in range(n)
        ]
        status, told = asked_once(server)
        assert (status, set(told)) == (503, {"error", "field", "fix"})
        with socket.create_connection(address, timeout=10) as last, last.makefile("rb") as file:
            answer = file.read()
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 600\r\n" in answer
        monkeypatch.setattr(_server, "HASTE", 1.0)
        for _ in range(200):  # a byte at a time, until the patience with all of them is at its end
            for other in others[:3]:
                with suppress(OSError):
                    other.send(b"G")
            if asked_once(server)[0] == 200:
                break
            time.sleep(0.1)
        assert asked_once(server)[0] == 200
        for other in others[:3]:
            with suppress(ConnectionResetError):
                assert other.recv(1) == b""
        assert client.ask("GET", "/health")[0] == 200


def test_several_at_once(server):
    found = []

    def ask():
        client = Client(server.server_port)
        found.extend(client.ask(body={"row": ROW})[1]["row"]["probability"] for _ in range(5))
        client.connection.close()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 40
    assert len(set(found)) == 1


def test_a_row_takes_few_milliseconds(finished):
    predict, body = predictor(_models.load_model(finished)), json.dumps({"row": ROW}).encode()
    times = []
    for _ in range(30):
        started = time.thread_time()
        predict(read_request(body, ["title", "body"])[0])
        times.append(time.thread_time() - started)
    assert min(times) < 0.01  # less than half of it where nobody else is at work


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_listens_and_stops(number, finished, tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n", encoding="utf-8")
    known = ["--token-file", str(tmp_path / "token")] if number == signal.SIGTERM else []
    command = [sys.executable, "-m", "coem", "serve", str(finished), "--port", "0", "--json"]
    with subprocess.Popen(
        [*command, *known], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            told = json.loads(process.stdout.readline())
            port = int(told["url"].rpartition(":")[2])
            assert told["url"].startswith("http://127.0.0.1:")
            assert (told["token"] is None) == bool(known)
            token = told["token"] or TOKEN
            client = Client(port)
            headers = {"Authorization": f"Bearer {token}"}
            assert client.ask(body={"row": ROW}, headers=headers)[0] == 200
            status, health = client.ask("GET", "/health", headers=headers)
            assert (status, len(health["names"])) == (200, 3)
            client.connection.close()
            os.kill(process.pid, number)
            out, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert error.splitlines() == ["stopped after 1 answers"]
    assert out == ""


def test_what_cannot_be_served(here, coem, finished):
    (here / "short").write_text("abc", encoding="utf-8")
    said = coem("serve", finished, "--token-file", "short", code=1).stderr
    assert "16 to 1,000" in said
    coem("serve", finished, "--port", "99999", code=2)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "in use" in coem("serve", finished, "--port", port, code=1).stderr
