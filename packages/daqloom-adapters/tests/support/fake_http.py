"""HTTP server on a loopback port, whose answers a test chooses."""

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Print nothing if a client has disconnected."""


@contextmanager
def serving(page, context=None):
    """Yield the URL of a server. Its answers are `page(path, query, headers)`, which returns a
    text, or a status and a text."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            request = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(request.query).items()}
            answer = page(request.path, query, self.headers)
            status, text = (200, answer) if isinstance(answer, str) else answer
            body = text.encode(errors="surrogateescape")
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status in (301, 302):
                self.send_header("Location", f"{url}/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with _Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield url
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def speaking(talk):
    """Yield the URL of a server that calls `talk(connection, ended)` for a client; `ended` is set
    when the test is over."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                talk(connection, ended)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


def silent(_connection, ended):
    """Leave a request without an answer until the test ends."""
    ended.wait()


def trickling(connection, ended):
    """Answer one byte at a time, without end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    try:
        while not ended.wait(0.02):
            connection.sendall(b"x")
    except OSError:
        pass


def saying(answer):
    """Return a function that sends `answer` to a client and closes the connection."""

    def talk(connection, _ended):
        connection.recv(65536)
        connection.sendall(answer)

    return talk
