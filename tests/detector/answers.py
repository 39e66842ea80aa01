"""What the tests' HTTP servers have in common: each request is a method get_NAME of a class."""
import base64
import http.server
import os
import ssl
import subprocess
import sys
import threading


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def give(self, name, otherwise):
        """The answer of that name; a client that goes away in the middle is no error."""
        try:
            getattr(self, "get_" + name, otherwise)()
        except OSError:
            self.close_connection = True

    def begin(self, status, body=b"", **headers):
        """An answer of which that body is all, or what comes before the connection ends."""
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, status, body=b"", **headers):
        length = {} if status == 304 else {"Content_Length": len(body)}
        self.begin(status, body, **length, **headers)

    def answer_without_end(self, status, **headers):
        self.begin(status, **headers)
        self.close_connection = True
        while True:
            self.wfile.write(bytes(65536))

    def is_viewer(self):
        """By basic authentication; else the answer asks for it."""
        if self.headers.get("Authorization") == \
                "Basic " + base64.b64encode(b"viewer:canary7").decode():
            return True
        self.answer(401, WWW_Authenticate='Basic realm="tests"')
        return False

    def get_endless(self):
        self.answer_without_end(200)


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that went away


def certified(folder, subject="IP:127.0.0.1"):
    """Signed by itself and kept in folder/ca.pem; what a server needs to show it."""
    key, certificate = folder + "/key.pem", folder + "/ca.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2", "-subj", "/CN=tests", "-addext", "subjectAltName=" + subject],
                   check=True, stderr=subprocess.DEVNULL)
    os.chmod(certificate, 0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def serve(handler, tls=None):
    """Says "ready PORT" and serves until standard input ends."""
    server = Listener(("127.0.0.1", 0), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", server.server_port, flush=True)
    sys.stdin.read()
