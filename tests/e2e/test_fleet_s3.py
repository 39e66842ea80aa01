"""Signed URLs of models, judged by an S3-compatible server that is not ours: make deps-optional."""
import os
import re
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from fleets import FleetTest, declaration
from harness import main, until

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.environ["BATON_S3"]
KEY, SECRET = "TESTKEY", "a/secret+of=this test"
OBJECT, CONTENT = "cars/us+lpr,v2(ä)=&~.mpta", b"an archive"


def path_of(key):
    return "/models/" + urllib.parse.quote(key)


class Server:
    """The server, with one object."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="baton-s3-")
        self.run = subprocess.Popen(
            ["node", os.path.join(HERE, "s3_server.cjs"), PACKAGE, self.folder.name, KEY, SECRET],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)
        self.url = "http://127.0.0.1:%d" % int(self.run.stdout.readline())
        for key in OBJECT, "other.mpta":
            urllib.request.urlopen(urllib.request.Request(
                self.url + path_of(key), method="PUT", data=CONTENT)).close()

    def set_ahead(self, seconds):
        self.run.stdin.write("ahead %d\n" % seconds)
        self.run.stdin.flush()
        assert self.run.stdout.readline() == "ok\n"

    def close(self):
        self.run.stdin.close()
        self.run.wait()
        self.run.stdout.close()
        self.folder.cleanup()


def fetch(url):
    """(status, content, or the code of S3's error)"""
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, re.search(b"<Code>(.*)</Code>", error.read()).group(1).decode()


class SignedUrls(FleetTest):
    """Of the URL that a worker gets in its list."""

    provider = "memory"

    def setUp(self):
        super().setUp()
        self.s3 = Server()
        self.addCleanup(self.s3.close)

    def sent(self, secret=SECRET):
        path = os.path.join(self.folder, "credentials")
        with open(path, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write("%s\n%s\n" % (KEY, secret))
        workers = self.stand_ins(1)
        self.start_fleet(1, "--s3-endpoint", self.s3.url, "--s3-region", "eu-central-1",
                         "--s3-credentials", path,
                         config=declaration(1, workers.urls(), model="s3://models/" + OBJECT))
        until(lambda: workers.list_of(0), self.logs)
        return workers.commands(0, "setSubscriptionList")[-1]["subscriptions"][0]["modelUrl"]

    def test_the_object_is_fetched_by_the_url(self):
        self.assertEqual(fetch(self.sent()), (200, CONTENT))
        for secret in SECRET, "X-Amz-Signature":
            self.assertNotIn(secret, self.logs())
            self.assertNotIn(secret, str(self.get("/api/models")))

    def test_the_url_is_for_an_hour(self):
        url = self.sent()
        self.s3.set_ahead(59 * 60)
        self.assertEqual(fetch(url), (200, CONTENT))
        self.s3.set_ahead(61 * 60)
        self.assertEqual(fetch(url), (403, "AccessDenied"))

    def test_the_url_is_for_this_object_alone(self):
        url = self.sent()
        other = url.replace(path_of(OBJECT), path_of("other.mpta"))
        self.assertNotEqual(other, url)
        self.assertEqual(fetch(other), (403, "SignatureDoesNotMatch"))

    def test_a_url_with_another_signature_is_refused(self):
        url = self.sent()
        last = "0" if url[-1] != "0" else "1"
        self.assertEqual(fetch(url[:-1] + last), (403, "SignatureDoesNotMatch"))

    def test_a_url_with_a_longer_life_is_refused(self):
        url = self.sent().replace("X-Amz-Expires=3600", "X-Amz-Expires=7200")
        self.assertEqual(fetch(url), (403, "SignatureDoesNotMatch"))

    def test_a_url_signed_with_another_secret_is_refused(self):
        self.assertEqual(fetch(self.sent(SECRET + "x")), (403, "SignatureDoesNotMatch"))


if __name__ == "__main__":
    main()
