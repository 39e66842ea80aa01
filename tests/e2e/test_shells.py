"""Completions, in the shells that they are for."""
import os
import pty
import select
import shutil
import subprocess
import time
import unittest

from harness import BATON, ClusterTest, DEADLINE_S, main, until

COMPLETIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "../../packaging/completions")
ENVIRONMENT = dict(os.environ, TERM="dumb", PATH="%s:%s" % (
    os.path.dirname(os.path.abspath(BATON)), os.environ["PATH"]))


def needs(shell):
    return unittest.skipUnless(shutil.which(shell), shell + " is not installed")


def told(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, universal_newlines=True, check=True,
                          timeout=DEADLINE_S, env=ENVIRONMENT, cwd=COMPLETIONS).stdout


def bash(*words):
    """What bash offers for the last word."""
    return told("bash", "-c", '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _baton;'
                ' echo ${COMPREPLY[@]}', COMPLETIONS + "/baton.bash", "baton", *words).split()


def fish_lines(program, *words):
    """What fish offers: the word, a tab, and its description."""
    return told("fish", "--no-config", "-c", 'source $argv[1]; complete -C "$argv[2]"',
                "%s/%s.fish" % (COMPLETIONS, program), " ".join([program, *words])).splitlines()


def fish(*words):
    return [line.split("\t")[0] for line in fish_lines("baton", *words)]


class Zsh:
    """A shell at a terminal, since only its line editor completes."""

    def __init__(self, folder):
        ours, theirs = pty.openpty()
        self.terminal, self.text = ours, ""
        self.process = subprocess.Popen(["zsh", "-f", "-i"], stdin=theirs, stdout=theirs,
                                        stderr=theirs, env=dict(ENVIRONMENT, ZDOTDIR=folder),
                                        start_new_session=True)
        os.close(theirs)
        self.type("unsetopt zle_bracketed_paste prompt_sp; fpath=(%s $fpath); "
                  "autoload -Uz compinit; compinit -D -u; PS1=; print ready-$((1 + 1))\n"
                  % COMPLETIONS)
        self.expect("ready-2")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def expect(self, text):
        end = time.monotonic() + DEADLINE_S
        while text not in self.text:
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("no %r in %r" % (text, self.text))
            self.text += os.read(self.terminal, 65536).decode(errors="replace")
        self.text = self.text.split(text, 1)[1]

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


class Syntax(unittest.TestCase):
    def check(self, shell, end):
        for name in sorted(os.listdir(COMPLETIONS)):
            if name.endswith(end) and (end or name.startswith("_")):
                done = subprocess.run([shell, "-n", os.path.join(COMPLETIONS, name)],
                                      capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    def test_bash_reads_them(self):
        self.check("bash", ".bash")

    @needs("zsh")
    def test_zsh_reads_them(self):
        self.check("zsh", "")

    @needs("fish")
    def test_fish_reads_them(self):
        self.check("fish", ".fish")

    @needs("fish")
    def test_fish_shows_variables_by_their_names(self):
        self.assertIn("; $STATE_DIRECTORY if", fish_lines("baton", "node", "--da")[0])
        self.assertIn("; else $CACHE_DIRECTORY", fish_lines("baton-detector", "--model-cache")[0])


class Values(unittest.TestCase):
    def test_bash_offers_values(self):
        self.assertEqual(bash("node", "--preset", ""), ["default", "lan", "wan", "fast"])
        self.assertEqual(bash("run", "--preset", "w"), ["wan"])

    def test_bash_offers_what_a_command_does(self):
        self.assertEqual(bash("cron", "l"), ["ls"])
        self.assertEqual(bash("help", "el"), ["elections"])
        self.assertEqual(bash("work", "submit", "ca"), [])

    @needs("fish")
    def test_fish_offers_what_a_command_does(self):
        self.assertEqual(fish("work", "subm"), ["submit"])
        self.assertEqual(fish("help", "unc"), ["uncordon"])
        self.assertNotIn("cancel", fish("work", "submit", ""))

    @needs("fish")
    def test_fish_offers_values_and_commands(self):
        self.assertEqual(fish("node", "--preset", "w"), ["wan"])
        self.assertEqual(fish("unc"), ["uncordon"])
        self.assertIn("pass", fish(""))
        self.assertNotIn("baton.fish", fish(""))


class Members(ClusterTest):
    def setUp(self):
        self.three = self.cluster(3)
        self.three.start_all()
        leader = self.three.wait_leader()
        dead, self.other = [name for name in self.three.names if name != leader]
        self.data = self.three.data(leader)
        self.three.kill(dead)
        until(lambda: bash("pass", "-d", self.data, "--to", "") == [self.other],
              "the one that is alive and does not lead is offered")

    def test_bash_offers_members(self):
        self.assertLessEqual(set(self.three.names), set(bash("leave", "--data", self.data, "")))

    @needs("fish")
    def test_fish_offers_the_member_that_may_lead(self):
        self.assertEqual(fish("pass", "-d", self.data, "--to", ""), [self.other])
        self.assertLessEqual(set(self.three.names), set(fish("leave", "--data", self.data, "")))

    @needs("zsh")
    def test_zsh_completes_commands_values_and_the_member_that_may_lead(self):
        zsh = Zsh(self.three.dir)
        self.addCleanup(zsh.close)
        zsh.type("baton unc\t")
        zsh.expect("baton uncordon ")
        zsh.type("\x15baton run --preset w\t")
        zsh.expect("--preset wan ")
        zsh.type("\x15baton pass -d %s --to \t" % self.data)
        zsh.expect("--to %s " % self.other)


if __name__ == "__main__":
    main()
