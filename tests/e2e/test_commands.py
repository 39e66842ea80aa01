"""Tests without a cluster: help, man pages, the agreement of flags, environment and file."""
import filecmp
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import BATON, DEADLINE_S, baton, clean_environment, main

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def commands():
    text = baton("help").stdout
    found = re.findall(r"^  ([a-z]+) ", text.split("Commands:")[1].split("\n\n")[0], re.M)
    assert {"node", "run", "status", "help"} <= set(found), text
    return found


class Help(unittest.TestCase):
    def test_every_command_explains_itself(self):
        for command in commands():
            done = baton(command, "--help")
            self.assertEqual(done.returncode, 0, command)
            self.assertIn("usage: baton " + command, done.stdout)
            self.assertIn("Exit codes:", done.stdout)
            self.assertEqual(done.stdout, baton("help", command).stdout)

    def test_pages_and_completions_are_those_of_the_tables(self):
        with tempfile.TemporaryDirectory() as fresh:
            subprocess.run([os.path.join(SOURCE, "scripts/docs-cli"), os.path.abspath(BATON),
                            fresh], check=True)
            pages = ["baton.1"] + ["baton-%s.1" % command for command in commands()]
            completions = ["baton.bash", "_baton", "baton.fish"]
            for name in "baton-detector", "baton-fleet":
                if os.path.exists(os.path.join(os.path.dirname(BATON), name)):
                    pages.append(name + ".8")
                    completions += [name + ".bash", "_" + name, name + ".fish"]
            for folder, names in (("docs/man", pages), ("packaging/completions", completions)):
                self.assertEqual(sorted(os.listdir(os.path.join(fresh, folder))), sorted(names))
                for name in names:
                    self.assertTrue(
                        filecmp.cmp(os.path.join(fresh, folder, name),
                                    os.path.join(SOURCE, folder, name), shallow=False),
                        folder + "/" + name + ": run scripts/docs-cli BATON")

    def test_each_example_is_a_line_that_can_be_copied(self):
        for command in commands():
            text = baton("help", command).stdout
            found = re.search(r"^Examples?:\n((?:.+\n)+)", text, re.M).group(1).splitlines()
            self.assertTrue(all(line.startswith("  baton ") for line in found), found)
            page = subprocess.run(["mandoc", "-T", "ascii", "-O", "width=200"],
                                  input=baton("help", "--format", "man", command).stdout.encode(),
                                  stdout=subprocess.PIPE, check=True).stdout.decode()
            for line in found:
                self.assertRegex(page, r"(?m)^ *%s$" % re.escape(line.strip()))

    def test_only_who_answers_by_http_is_asked_by_http(self):
        for command in ("status", "members"):
            self.assertIn("--http ", baton(command, "--help").stdout)
        for command in ("watch", "pass", "cordon", "uncordon", "join", "leave"):
            self.assertNotIn("--http", baton(command, "--help").stdout)
            done = baton(command, "--http", "127.0.0.1:1")
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("--http", done.stderr)

    def test_examples_form_a_group(self):
        """A node on loopback is reached by nobody else, and off it nothing works without a key."""
        for command in ("node", "run", "once"):
            example = baton("help", command).stdout.split("Example")[1].split("\n\n")[0]
            peers = re.findall(r"(?:-p|--peer)\s+\w+=(\S+):", example)
            listens = re.search(r"--listen\s+(\S+):", example)
            self.assertTrue(peers and listens, example)
            hosts = peers + [listens.group(1)]
            self.assertEqual(len({host.startswith("127.") for host in hosts}), 1, example)
            self.assertTrue(hosts[0].startswith("127.") or "--key-file" in example, example)

    def test_hidden_options_stay_hidden(self):
        self.assertNotIn("act-file", baton("node", "--help").stdout)

    def test_the_version_is_told(self):
        self.assertRegex(baton("--version").stdout, r"^baton \d+\.\d+\.\d+\n$")


class Errors(unittest.TestCase):
    def expect(self, code, says, *words, env=None):
        done = baton(*words, env=env)
        self.assertEqual(done.returncode, code, (words, done.stderr))
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_usage_errors_end_with_64_and_name_the_value(self):
        self.expect(64, "frobnicate", "frobnicate")
        self.expect(64, "missing")
        self.expect(64, "--wieght", "node", "--wieght", "3")
        self.expect(64, "'heavy'", "node", "--weight", "heavy")
        self.expect(64, "a value is missing", "node", "--weight")
        self.expect(64, "CMD", "run", "--node", "a")
        self.expect(64, "extra", "status", "extra")
        self.expect(64, "--data", "status")
        self.expect(64, "BATON_LEASE", "explain", env={"BATON_LEASE": "5"})

    def test_a_variable_that_is_nearly_an_option_is_named_with_the_option(self):
        mine = {"BATON_ELECTON_TIMEOUT": "1s", "BATON_KEYFILE": "/x"}
        done = baton("explain", env=mine)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("BATON_ELECTON_TIMEOUT: names no option and is ignored; is "
                      "BATON_ELECTION_TIMEOUT meant?", done.stderr)
        self.assertIn("is BATON_KEY_FILE meant?", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)
        # Of another command, set for CMD, or of another program.
        other = {"BATON_HTTP_TOKEN_FILE": "/x", "BATON_EPOCH": "7", "BATON_RUN": "r", "BATONS": "2",
                 "BATON_X": "1"}
        self.assertEqual(baton("explain", env=other).stderr, "")

    def test_a_wrong_letter_among_others_is_named(self):
        self.expect(64, "baton node: -x: no such flag", "node", "-xyz")
        self.expect(64, "baton node: -y: no such flag", "node", "-hy")
        self.expect(64, "baton node: -d: a value is missing", "node", "-hd")

    def test_the_provider_of_a_benchmark_is_not_that_of_a_node(self):
        url = "redis://:canary@127.0.0.1:1"
        self.expect(64, "'nothing': no such benchmark", "bench", "nothing",
                    env={"BATON_PROVIDER": url})
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("provider: %s\n" % url)
            file.flush()
            self.expect(64, "'nothing': no such benchmark", "bench", "nothing", "--config",
                        file.name)
        self.expect(64, "must be one of", "bench", "failover", "--provider", url)

    def test_files_that_are_not_there_end_with_64(self):
        with tempfile.TemporaryDirectory() as data:
            node = ("node", "--data", data, "--listen", "127.0.0.1:0")
            for flags in (("--key-file", "/nonexistent/file"), ("--peer", "@/nonexistent/file"),
                          ("--tls-cert", "/nonexistent/file", "--tls-key", "/x", "--tls-ca", "/x"),
                          ("--http", "127.0.0.1:0", "--http-token-file", "/nonexistent/file")):
                self.expect(64, "/nonexistent/file", *node, *flags)
        self.expect(64, "/nonexistent/file", "status", "--http", "127.0.0.1:1",
                    "--http-token-file", "/nonexistent/file")

    def test_files_that_are_no_files_of_their_kind_are_named_with_the_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            node = ("node", "--data", folder + "/data", "--listen", "127.0.0.1:0")
            path = Path(folder, "file")
            path.write_text("no certificate\n", encoding="utf-8")
            path.chmod(0o600)
            certificate = ("--tls-cert", str(path), "--tls-key", str(path), "--tls-ca", str(path))
            self.expect(64, "--config %s: Is a directory" % folder, *node, "--config", folder)
            self.expect(64, "cluster key %s: Is a directory" % folder, *node, "--key-file", folder)
            self.expect(64, "TLS certificate %s: " % path, *node, *certificate)
            self.expect(64, "; it must be a PEM file", *node, *certificate)
            self.expect(127, "CMD is an empty word", "run", *node[1:], "--", "")

    def test_only_the_missing_word_is_called_missing(self):
        self.expect(64, "baton run: CMD is missing", "run", "-d", "/nonexistent")
        self.expect(64, "baton once: NAME is missing", "once")
        self.expect(64, "baton once: CMD is missing", "once", "migrate")
        self.expect(64, "baton join: NAME=HOST:PORT[*WEIGHT][^PRIORITY][/KIND] is missing", "join")

    def test_a_directory_that_cannot_be_used_is_named_with_its_flag(self):
        with tempfile.TemporaryDirectory() as folder:
            def expect(code, says, data, *under):
                done = subprocess.run(
                    [*under, BATON, "node", "--data", data, "--listen", "127.0.0.1:0"],
                    stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn("baton node: --data %s: %s" % (data, says), done.stderr)
            expect(64, "the directory above it does not exist; create that one",
                   folder + "/none/data")
            expect(74, "it cannot be made: No such file or directory", "/proc/data")
            Path(folder, "file").touch()
            expect(64, "is no directory", folder + "/file")
            if os.geteuid() == 0:
                os.chmod(folder, 0o755)
                nobody = ("setpriv", "--reuid=65534", "--clear-groups", "--")
                expect(77, "Permission denied; the user of this process (uid 65534) must be able to"
                       " write there", folder, *nobody)
                expect(77, "it cannot be made: Permission denied", folder + "/data", *nobody)

    def test_addresses_and_peers_that_are_wrong_are_named_and_leave_nothing_behind(self):
        with tempfile.TemporaryDirectory() as data, socket.create_server(("127.0.0.1", 0)) as taken:
            node = ("node", "--data", data, "--node", "a", "--insecure")
            port = taken.getsockname()[1]
            self.expect(64, 'listening on "nohost.invalid": give a numeric address of this machine',
                        *node, "--listen", "nohost.invalid:7400")
            loopback = (*node, "--listen", "127.0.0.1:0")
            self.expect(64, 'peer "b=127.0.0.1": address "127.0.0.1": must be HOST:PORT', *loopback,
                        "--peer", "b=127.0.0.1")
            self.expect(64, 'peer "b": must be NAME=HOST:PORT', *loopback, "--peer", "b")
            self.expect(64, 'peer "b=127.0.0.1:2": a peer of this name is given twice', *loopback,
                        "--peer", "b=127.0.0.1:1", "--peer", "b=127.0.0.1:2")
            self.expect(74, "listening on 127.0.0.1:%d: address already in use; another process has"
                        " this port" % port, *node, "--listen", "127.0.0.1:%d" % port)
            self.expect(74, "it must be an address of this machine", *node, "--listen",
                        "192.0.2.1:7400")
            self.assertNotIn("raft.db", os.listdir(data))

    def test_a_flag_that_a_command_lacks_is_not_suggested(self):
        for command in "join", "leave":
            done = baton(command, "d")
            self.assertIn("--data is missing", done.stderr)
            self.assertNotIn("--election", done.stderr)

    def test_a_name_that_cannot_be_sent_is_refused(self):
        """And not left out: `pass` to nobody in particular is another order."""
        for command, *words in (("pass", "--to"), ("join",), ("leave",)):
            done = subprocess.run([BATON.encode(), command.encode(), b"-d", b"/nonexistent",
                                   *map(str.encode, words), b"\xff=127.0.0.1:1"],
                                  stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(b"UTF-8", done.stderr)

    def test_a_name_that_no_answer_can_have_is_refused(self):
        for flag, provider in ((b"--node", b"redis://127.0.0.1:1"),
                               (b"--election", b"redis://127.0.0.1:1")):
            done = subprocess.run([BATON.encode(), b"run", b"--provider", provider, flag, b"\xff",
                                   b"--wait-timeout", b"100ms", b"--", b"true"],
                                  stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(b"UTF-8", done.stderr)

    def test_no_time_is_not_all_the_time(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            self.expect(124, "imeout", "status", "--timeout", "500us", "--http",
                        "127.0.0.1:%d" % silent.getsockname()[1])
        for command in ("status", "members", "pass", "cordon"):
            self.expect(64, "--timeout 0", command, "--data", "/nonexistent", "--timeout", "0")

    def test_a_server_that_is_no_node_is_an_error_with_its_address(self):
        ok = b"HTTP/1.1 200 OK\r\n"
        for says, code, reason in (
                (b"SSH-2.0-OpenSSH_9.2\r\n", 1, "what came is not a response of HTTP"),
                (ok + b"\r\n{}", 1, "its end cannot be seen"),
                (ok + b"Content-Length: 3\r\n\r\n[1]", 1, "the answer is not a baton node's"),
                (ok + b"Content-Length: 9\r\n\r\n{", 69, "before the response was whole"),
                (b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /\r\n\r\n", 1,
                 "refused with status 302: no reason is given"),
                (b"HTTP/1.1 403 No\r\nContent-Length: 13\r\n\r\n{\"error\":\"x\"}", 77,
                 "refused with status 403: x")):
            with socket.socket() as server:
                server.bind(("127.0.0.1", 0))
                server.listen()
                address = "127.0.0.1:%d" % server.getsockname()[1]
                status = subprocess.Popen([BATON, "status", "--http", address],
                                          stderr=subprocess.PIPE, universal_newlines=True)
                with server.accept()[0] as connection:
                    self.assertIn(b"GET /status HTTP/1.1\r\n", connection.recv(4096))
                    connection.sendall(says)
                _, told = status.communicate(timeout=DEADLINE_S)
                self.assertEqual(status.returncode, code, told)
                self.assertIn("http://%s/status: " % address, told)
                self.assertIn(reason, told)

    def test_what_cannot_be_printed_is_an_error(self):
        for words in (("--help",), ("--version",), ("help", "--format", "man", "node"),
                      ("explain", "--json")):
            for closed in ("", "close"):
                with open("/dev/full", "wb") as full:
                    done = subprocess.run(
                        [BATON, *words] if not closed else
                        ["sh", "-c", '"$0" "$@" >&-', BATON, *words], stdout=full,
                        stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False)
                self.assertEqual(done.returncode, 74, (words, closed, done.stderr))
                self.assertIn("standard output: ", done.stderr)

    def test_the_guides_list_the_settings_of_each_provider(self):
        for url, guide in (("raft://127.0.0.1:1", "api.md"), ("redis://127.0.0.1:1", "redis.md"),
                           ("memory:", "api.md"), ("agent:", "api.md")):
            done = baton("node", "--provider", url + "?brilliance=1")
            self.assertEqual(done.returncode, 64, done.stderr)
            keys = re.search(r"has no such setting; it has (.*)", done.stderr).group(1).split(", ")
            with open(os.path.join(SOURCE, "docs", guide), encoding="utf-8") as file:
                told = set(re.findall(r"`([a-z-]+)(?:=[A-Za-z]+)?`", file.read()))
            self.assertEqual(set(keys) - told, set(), guide)

    def test_flags_that_the_provider_does_not_have_are_refused_by_name(self):
        redis = ("node", "--provider", "redis://127.0.0.1:1")
        for flag, value in (("--heartbeat-timeout", "5s"), ("--peer", "b=127.0.0.1:2"),
                            ("--preset", "lan"), ("--key-file", "/k"), ("--proofs", "none"),
                            ("--listen", "127.0.0.1:1")):
            self.expect(64, flag + ": ", *redis, flag, value)
        self.expect(64, "--insecure: the provider redis: has no such option", *redis, "--insecure")
        self.expect(64, "--lease: ", "node", "--provider", "memory:", "--lease", "5s")

    def test_unsafe_settings_end_with_78_and_the_inequality(self):
        self.expect(78, "lease <= heartbeat timeout fails", "explain", "--lease", "9s")

    def test_a_node_that_is_not_there_ends_with_69(self):
        self.expect(69, "/nonexistent/control.sock", "status", "--data", "/nonexistent")
        self.expect(69, "127.0.0.1:1", "status", "--http", "127.0.0.1:1")

    def test_a_configuration_file_is_checked(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("preset: fast\nprest: lan\n")
            file.flush()
            self.expect(64, "prest", "explain", "--config", file.name)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("config: other.yaml\n")
            file.flush()
            self.expect(64, "does not name another", "explain", "--config", file.name)

    def test_a_configuration_file_that_cannot_be_read_ends_every_program_with_64(self):
        detector = os.path.join(os.path.dirname(BATON), "baton-detector")
        for path in ("/nonexistent/baton.yaml", "/"):
            self.expect(64, path, "explain", "--config", path)
            if os.path.exists(detector):
                done = subprocess.run([detector, "--config", path], stdin=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S,
                                      check=False)
                self.assertEqual(done.returncode, 64, done.stderr)
                self.assertIn(path, done.stderr)


class Agreement(unittest.TestCase):
    """The same option gives the same result wherever it stands."""

    OPTIONS = {"preset": "lan", "lease": "1500ms", "heartbeat-interval": "300ms",
               "heartbeat-timeout": "1800ms", "election-timeout": "90ms-180ms",
               "clock-drift-ppm": "20000"}

    def test_flags_environment_and_file_agree(self):
        flags = [word for key, value in self.OPTIONS.items() for word in ("--" + key, value)]
        by_flags = baton("explain", "--json", *flags)
        self.assertEqual(by_flags.returncode, 0, by_flags.stderr)
        variables = {"BATON_" + key.upper().replace("-", "_"): value
                     for key, value in self.OPTIONS.items()}
        by_environment = baton("explain", env=dict(variables, BATON_JSON="yes"))
        self.assertEqual(by_environment.stdout, by_flags.stdout)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("json: yes\nrounds: 3\n")
            file.writelines("%s: %s\n" % pair for pair in self.OPTIONS.items())
            file.flush()
            by_file = baton("explain", "--config", file.name)
            self.assertEqual(by_file.stdout, by_flags.stdout)
            mixed = json.loads(baton("explain", "--config", file.name, "--clock-drift-ppm", "7",
                                     env={"BATON_CLOCK_DRIFT_PPM": "9"}).stdout)
            self.assertEqual(mixed["clock_drift_ppm"], 7)

    def test_explain_counts_the_drift(self):
        bounds = json.loads(baton("explain", "--json", "--clock-drift-ppm", "10000").stdout)
        self.assertAlmostEqual(bounds["lease_effective_ms"],
                               bounds["lease_ms"] * 0.99 / 1.01, places=3)
        self.assertEqual(bounds["failover_resign_ms"], 0)
        self.assertGreaterEqual(bounds["failover_hang_ms"], bounds["heartbeat_timeout_ms"])


if __name__ == "__main__":
    main()
