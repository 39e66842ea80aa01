"""TLS of a process of the fleet, in each of its parts: to workers by wss, to receivers of webhooks,
and for its own API."""
import os
import urllib.request

from fleets import FleetTest, certify, declaration, identifiers
from harness import main, until
from test_fleet_webhooks import Receiver


class Tls(FleetTest):
    provider = "memory"

    def trust(self, certificate):
        """As if it were one of the system's authorities."""
        os.environ["SSL_CERT_FILE"] = certificate
        self.addCleanup(os.environ.pop, "SSL_CERT_FILE", None)

    def fleet(self, workers, *flags, trusted="/dev/null"):
        self.trust(trusted)
        self.start_fleet(1, *flags, config=declaration(2, workers.urls()))

    def certificate(self, name="worker", host="IP:127.0.0.1"):
        return certify(self.folder, name, host)

    def workers(self, certificate, key):
        workers = self.stand_ins(1, "--certificate", certificate, "--key", key)
        workers.scheme = "wss"
        return workers

    def test_a_worker_by_wss_has_its_list_and_shows_its_pictures(self):
        certificate, key = self.certificate()
        workers = self.workers(certificate, key)
        self.fleet(workers, "--worker-ca", certificate)
        self.wait_placed(workers, [0], identifiers(2))
        with urllib.request.urlopen(self.processes["a"].url(
                "/api/cameras/display-0%3Bcam-0/image")) as answer:
            self.assertEqual(answer.headers["Content-Type"], "image/jpeg")

    def test_a_worker_may_have_a_certificate_of_the_systems_authorities(self):
        certificate, key = self.certificate()
        workers = self.workers(certificate, key)
        self.fleet(workers, trusted=certificate)
        self.wait_placed(workers, [0], identifiers(2))

    def expect_stranger(self, workers, *flags, reason):
        self.fleet(workers, *flags)
        log = self.processes["a"].log
        until(lambda: "connection-failed" in log(), log)
        self.assertRegex(log(), reason)
        self.assertEqual(workers.of(0, "connected"), [])

    def test_a_worker_with_a_strange_certificate_gets_nothing(self):
        other, _ = self.certificate("other")
        self.expect_stranger(self.workers(*self.certificate()), "--worker-ca", other,
                             reason="self-signed certificate")

    def test_a_worker_of_another_name_gets_nothing(self):
        certificate, key = self.certificate(host="DNS:elsewhere.example")
        self.expect_stranger(self.workers(certificate, key), "--worker-ca", certificate,
                             reason="mismatch")

    def receiver(self, host):
        certificate, key = self.certificate("receiver", host)
        receiver = Receiver(certificate=(certificate, key))
        self.addCleanup(receiver.close)
        return receiver, certificate

    def test_a_webhook_is_posted_by_https(self):
        receiver, certificate = self.receiver("IP:127.0.0.1")
        self.fleet(self.stand_ins(1), "--webhook", receiver.url, trusted=certificate)
        until(lambda: receiver.events("worker-online"), self.logs)

    def test_a_receiver_with_a_strange_certificate_gets_nothing(self):
        receiver, _ = self.receiver("IP:127.0.0.1")
        self.fleet(self.stand_ins(1), "--webhook", receiver.url)
        log = self.processes["a"].log
        until(lambda: "outlet-failed" in log(), log)
        self.assertIn("self-signed certificate", log())
        self.assertEqual(receiver.posts, [])

    def test_with_a_certificate_the_api_speaks_https_only(self):
        certificate, key = self.certificate("api")
        self.trust(certificate)
        self.start_fleet(1, "--tls-cert", certificate, "--tls-key", key)
        process = self.processes["a"]
        self.assertEqual(process.ask("GET", "/status")[0], 200)
        process.scheme = "http"
        self.assertEqual(process.ask("GET", "/healthz")[0], 0)


if __name__ == "__main__":
    main()
