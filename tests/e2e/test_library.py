"""libbaton as a user gets it: installed, found by pkg-config or CMake, and what it exports."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import DEADLINE_S, ClusterTest, baton, until

BUILD = os.environ["BATON_BUILD"]
SOURCE = os.environ["BATON_SOURCE"]
CC = os.environ.get("CC", "cc")

PROGRAM = r"""
#include <baton.h>
#include <stdio.h>
int main(void)
{
    struct baton *baton;
    struct baton_election *election;
    struct baton_error error;
    if (baton_open(&baton, "memory:", NULL, &error) ||
        baton_campaign(&election, baton, "e", NULL, &error) ||
        baton_wait_leadership(election, BATON_TIMEOUT_DEFAULT, &error)) {
        return fprintf(stderr, "%s\n", error.message), 1;
    }
    printf("%s leads %d %s\n", baton_version(), baton_is_leader(election),
           baton_role_name(baton_role(election)));
    baton_close(baton);
}
"""

# argv: URL, and for how long it says that it is alive.
ALIVE = r"""
#include <baton.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    struct baton *baton;
    struct baton_election *election;
    struct baton_error error;
    if (argc != 3 || baton_open(&baton, argv[1], NULL, &error) ||
        baton_campaign(&election, baton, "e", NULL, &error) ||
        baton_wait_leadership(election, BATON_TIMEOUT_DEFAULT, &error)) {
        return fprintf(stderr, "%s\n", error.message), 1;
    }
    for (int i = 0; i < 100; i++) {
        if (i < atoi(argv[2])) {
            baton_alive(baton);
        }
        nanosleep(&pause, NULL);
    }
    baton_close(baton);
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(stranger C)
find_package(baton 0.1 REQUIRED)
foreach(kind baton static)
    add_executable(with_${kind} program.c)
    target_link_libraries(with_${kind} PRIVATE baton::${kind})
endforeach()
"""


def run(*words, env=None, cwd=None):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd,
                          universal_newlines=True, env={**os.environ, **(env or {})},
                          timeout=DEADLINE_S, check=False)
    if done.returncode != 0:
        raise AssertionError("%s: %d\n%s" % (" ".join(words), done.returncode, done.stdout))
    return done.stdout


def text_of(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


HEADERS = ("baton.h", "baton/error.h", "baton/token.h", "baton/types.h", "baton/work.h")


def declared():
    """The functions that the public headers offer."""
    names = set()
    for header in HEADERS:
        names.update(re.findall(r"^BATON_API [^;(]*?\b(baton_\w+)\(",
                                text_of("include", header), re.M))
    return names


class Library(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="baton-library-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)  # a guardian may end later
        self.prefix = os.path.join(self.dir, "prefix")
        run("cmake", "--install", BUILD, "--prefix", self.prefix)
        for folder, _, files in os.walk(self.prefix):
            if "baton.pc" in files:
                self.lib = os.path.dirname(folder)
        self.env = {"PKG_CONFIG_PATH": os.path.join(self.lib, "pkgconfig"),
                    "LD_LIBRARY_PATH": self.lib}
        self.source = os.path.join(self.dir, "program.c")
        with open(self.source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)

    def flags(self, *words):
        return run("pkg-config", *words, "baton", env=self.env).split()

    def check_runs(self, program):
        self.assertRegex(run(program, env=self.env), r"^0\.1\.0 leads 1 leader$")

    def test_a_program_builds_by_pkg_config_alone(self):
        program = os.path.join(self.dir, "program")
        run(CC, "-Wall", "-Wextra", "-Werror", "-std=c11", "-o", program, self.source,
            *self.flags("--cflags", "--libs"))
        self.assertIn("libbaton.so.0", run("readelf", "-d", program))
        self.check_runs(program)

    def test_a_program_that_no_longer_says_that_it_is_alive_is_killed(self):
        program = os.path.join(self.dir, "alive")
        with open(program + ".c", "w", encoding="utf-8") as file:
            file.write(ALIVE)
        run(CC, "-Wall", "-Wextra", "-Werror", "-std=gnu17", "-o", program, program + ".c",
            *self.flags("--cflags", "--libs"))
        os.symlink(glob.glob(self.prefix + "/**/baton-guardian", recursive=True)[0],
                   os.path.join(self.dir, "baton-guardian"))
        for beats, code in ((0, 0), (100, 0), (1, -signal.SIGKILL)):
            url = "raft://127.0.0.1:0?node=a&hang=500ms&data=%s/data%d" % (self.dir, beats)
            done = subprocess.run([program, url, str(beats)], env={**os.environ, **self.env},
                                  stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
            self.assertEqual(done.returncode, code, (beats, done.stderr))

    def test_the_examples_build_against_what_is_installed(self):
        for name in ("leader", "cameras"):
            program = os.path.join(self.dir, name)
            run(CC, "-Wall", "-Wextra", "-Werror", "-std=gnu17", "-o", program,
                os.path.join(SOURCE, "examples", name + ".c"), *self.flags("--cflags", "--libs"))
            done = subprocess.run([program], env={**os.environ, **self.env}, timeout=DEADLINE_S,
                                  stderr=subprocess.PIPE, universal_newlines=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, "^usage: .*/%s URL" % name)

    def test_the_guides_that_are_referred_to_are_installed(self):
        named = set()
        for folder in ("src", "include", "docs/man"):
            for name in glob.glob(os.path.join(SOURCE, folder, "**", "*.[ch138]"), recursive=True):
                named.update(re.findall(r"\bdocs/[a-z-]+\.md", text_of(name)))
        self.assertIn("docs/redis.md", named)
        here = os.path.join(self.prefix, "share", "doc", "baton")
        self.assertEqual([name for name in sorted(named | {"README.md", "examples/leader.c"})
                          if not os.path.exists(os.path.join(here, name))], [])

    def test_what_names_its_place_names_the_prefix_of_the_installation(self):
        units = os.path.join(self.prefix, "lib", "systemd", "system")
        self.assertIn("baton@.service", os.listdir(units))
        for name in os.listdir(units):
            with open(os.path.join(units, name), encoding="utf-8") as file:
                program = re.search(r"^ExecStart=(\S+)", file.read(), re.M).group(1)
            self.assertTrue(program.startswith(self.prefix) and os.access(program, os.X_OK), name)
        stage = os.path.join(self.dir, "stage")
        run("cmake", "--install", BUILD, "--prefix", "/opt/of-ours", env={"DESTDIR": stage})
        pages = self.env["PKG_CONFIG_PATH"].replace(self.prefix, stage + "/opt/of-ours")
        self.assertEqual(run("pkg-config", "--variable=includedir", "baton",
                             env={"PKG_CONFIG_PATH": pages}).strip(), "/opt/of-ours/include")

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_looks_below_usr_local_where_the_completions_are(self):
        places = run("zsh", "-f", "-c", "print -l $fpath").split()
        self.assertTrue([place for place in places if place.startswith("/usr/local/") and
                         os.path.exists(place.replace("/usr/local", self.prefix) + "/_baton")],
                        places)

    def test_a_program_links_statically(self):
        program = os.path.join(self.dir, "program")
        flags = [os.path.join(self.lib, "libbaton.a") if word == "-lbaton" else word
                 for word in self.flags("--static", "--cflags", "--libs")]
        run(CC, "-o", program, self.source, *flags)
        self.assertNotIn("libbaton.so", run("readelf", "-d", program))
        self.check_runs(program)

    @unittest.skipUnless(shutil.which("dpkg"), "dpkg is not installed")
    def test_the_debian_package_brings_what_linking_statically_needs(self):
        control = text_of("packaging", "debian", "control")
        depends = re.search(r"Package: libbaton-dev\n(?:.*\n)*?Depends: (.*)", control).group(1)
        for word in set(self.flags("--static", "--libs")) - {"-lbaton"}:
            if word.startswith("-l"):
                names = [run(CC, "-print-file-name=lib%s.%s" % (word[2:], kind)).strip()
                         for kind in ("so", "a")]
                path = os.path.normpath([name for name in names if os.path.isabs(name)][0])
                owner = run("dpkg", "-S", path).split(":")[0]
                self.assertIn(owner, depends.split(", ") + ["libc6-dev"], word)

    def test_cmake_finds_the_shared_library_without_pkg_config(self):
        with open(os.path.join(self.dir, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(CMAKE.replace("baton static", "baton"))
        build = os.path.join(self.dir, "build")
        run("cmake", "-S", self.dir, "-B", build, "-DCMAKE_PREFIX_PATH=" + self.prefix,
            "-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON")
        run("cmake", "--build", build)
        self.check_runs(os.path.join(build, "with_baton"))

    def test_cmake_finds_the_package(self):
        with open(os.path.join(self.dir, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(CMAKE)
        build = os.path.join(self.dir, "build")
        run("cmake", "-S", self.dir, "-B", build, "-DCMAKE_PREFIX_PATH=" + self.prefix)
        run("cmake", "--build", build)
        for kind in ("baton", "static"):
            self.check_runs(os.path.join(build, "with_" + kind))

    def test_exactly_the_header_is_exported(self):
        shared = run("nm", "-D", "--defined-only", os.path.join(self.lib, "libbaton.so"))
        static = run("nm", "-g", "--defined-only", os.path.join(self.lib, "libbaton.a"))
        self.assertGreater(len(declared()), 40)
        self.assertEqual(set(re.findall(r" [TDBRVW] (\w+)", shared)), declared())
        self.assertEqual(set(re.findall(r" [TDBRVW] (\w+)", static)), declared())

    def test_the_header_stands_alone_in_c_and_cpp(self):
        for header in HEADERS:
            path = os.path.join(self.prefix, "include", header)
            for language, standard in (("c", "c11"), ("c++", "c++17")):
                if language == "c++" and not shutil.which("c++"):
                    continue
                run("c++" if language == "c++" else CC, "-x", language, "-std=" + standard,
                    "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                    "-I", os.path.join(self.prefix, "include"), "-include", path, "/dev/null")


class Example(unittest.TestCase):
    def test_the_example_leads_drains_and_ends(self):
        program = os.path.join(BUILD, "bin", "example_leader")
        with subprocess.Popen([program, "memory:"], stdout=subprocess.PIPE,
                              universal_newlines=True) as service:
            seen = []
            for line in service.stdout:
                seen.append(line.strip())
                if line.startswith("working"):
                    service.send_signal(signal.SIGTERM)
                    break
            seen += service.stdout.read().split("\n")
            self.assertEqual(service.wait(DEADLINE_S), 0)
        told = [line for line in seen if not line.startswith(("working", "leader:")) and line]
        self.assertEqual(told, ["leading example", "draining", "no longer leading: resigned"])
        self.assertFalse([line for line in seen[seen.index("draining"):]
                          if line.startswith("working")])


MEMBER = r"""
#include <stdlib.h>
/* MEMBER URL OLD: a member of the group, which replaces another one, or itself. */
int main(int argc, char **argv)
{
    struct baton *baton;
    struct baton_election *election;
    struct baton_error error = {0};
    int code;
    if (argc != 3 || baton_open(&baton, argv[1], NULL, &error) ||
        baton_campaign(&election, baton, "default", NULL, &error)) {
        return fprintf(stderr, "%s\n", error.message), 2;
    }
    code = baton_wait(election, BATON_TIMEOUT_DEFAULT, &error);
    code = code ? code : replace(election, argv[2], &error);
    if (code) {
        fprintf(stderr, "%d %s\n", code, error.message);
    }
    print_members(election, &error);
    baton_close(baton);
    return code ? 1 : 0;
}
"""


SURVIVOR = r"""
#include <baton.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static sigjmp_buf before;
static void jump_back(int number)
{
    (void)number;
    siglongjmp(before, 1);
}
/* SURVIVOR URL: leads, crashes, survives by a handler of its own, and says what it sees. */
int main(int argc, char **argv)
{
    struct sigaction own = {.sa_handler = jump_back};
    const struct baton_options options = {.size = sizeof(options), .announces_crashes = true};
    struct baton *baton;
    struct baton_election *election;
    struct baton_error error = {0};
    if (argc != 2 || sigaction(SIGSEGV, &own, NULL) ||
        baton_open(&baton, argv[1], &options, &error) ||
        baton_campaign(&election, baton, "default", NULL, &error) ||
        baton_wait_leadership(election, BATON_TIMEOUT_DEFAULT, &error)) {
        return fprintf(stderr, "%s\n", error.message), 2;
    }
    if (sigsetjmp(before, 1) == 0) {
        *(volatile int *)0 = 1;
    }
    for (;;) {
        printf("%d\n", baton_is_leader(election));
        (void)fflush(stdout);
        (void)usleep(5000);
    }
}
"""


class Survivor(ClusterTest):
    def build(self, cluster):
        source = os.path.join(cluster.dir, "survivor.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(SURVIVOR)
        run(CC, "-Wall", "-Wextra", "-Werror", "-Wno-null-dereference", "-std=gnu11", "-o",
            source[:-2], source, "-I", os.path.join(SOURCE, "include"), "-L",
            os.path.join(BUILD, "lib"), "-lbaton", "-Wl,-rpath," + os.path.join(BUILD, "lib"))
        return source[:-2]

    def begin(self, cluster):
        """As node a, which is preferred; its standard output."""
        others = ",".join("%s=%s" % (name, cluster.address(name)) for name in cluster.names[1:])
        url = "raft://%s?node=a&peers=%s&data=%s&preset=fast&heartbeat-timeout=1500ms&" \
              "lease=1500ms&priority=9" % (cluster.address("a"), others, cluster.data("a"))
        os.mkdir(cluster.data("a"))
        shutil.copy(os.path.join(BUILD, "bin", "baton-guardian"), cluster.dir)  # beside it
        program = subprocess.Popen([self.build(cluster), url], stdout=subprocess.PIPE,
                                   universal_newlines=True)
        cluster.processes["a"] = program
        self.addCleanup(program.stdout.close)
        return program.stdout

    def test_who_jumps_back_from_its_crash_never_leads_again(self):
        cluster = self.cluster(3)
        cluster.suffixes["a"] = "^9"
        for name in ("b", "c"):
            cluster.start(name)
        said = self.begin(cluster)
        self.assertEqual(said.readline(), "0\n")  # by the time it lives on
        follower = cluster.wait_leader(["b", "c"])
        cluster.kill(follower)
        cluster.start(follower)
        cluster.wait_leader(["b", "c"])  # with the vote of a, or not
        for _ in range(400):
            self.assertEqual(said.readline(), "0\n")


class Guide(ClusterTest):
    """What docs/api.md shows, on real nodes."""

    def build(self, four):
        block = next(block for block in re.findall(r"```c\n(.*?)```", text_of("docs", "api.md"),
                                                   re.S) if "int replace(" in block)
        self.assertIn('"10.0.0.4:7001"', block)
        source = os.path.join(four.dir, "member.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(block.replace("10.0.0.4:7001", four.address("d")) + MEMBER)
        run(CC, "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-o", source[:-2], source,
            "-I", os.path.join(SOURCE, "include"), "-L", os.path.join(BUILD, "lib"), "-lbaton",
            "-Wl,-rpath," + os.path.join(BUILD, "lib"))
        return source[:-2]

    def check_replaced(self, old, preferred):
        four = self.cluster(4)
        four.names.remove("d")
        four.suffixes[preferred] = "^9"
        program = self.build(four)
        for name in ("b", "c"):
            four.start(name, "--priority", four.suffixes.get(name, "^0")[1:])
        joins = list(four.names)
        four.names = ["d"]
        four.start("d", "--join")
        four.names = joins
        peers = ",".join("%s=%s%s" % (name, four.address(name), four.suffixes.get(name, ""))
                         for name in joins)
        os.mkdir(four.data("a"))
        url = "raft://%s?node=a&peers=%s&data=%s&preset=fast&heartbeat-timeout=1500ms&" \
              "lease=1500ms" % (four.address("a"), peers.replace("^", "%5E"), four.data("a"))
        done = subprocess.run([program, url, old], stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.PIPE, universal_newlines=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        staying = sorted({"a", "b", "c", "d"} - {old})
        until(lambda: sorted(member["name"] for member in json.loads(
            baton("members", "--data", four.data("b"), "--json").stdout or "[]")) == staying,
              "the group is " + str(staying))
        if old != "a":
            self.assertEqual(sorted(line.split()[0] for line in done.stdout.splitlines()), staying)

    def test_a_member_is_replaced(self):
        for old, preferred in (("c", "a"), ("c", "b"), ("c", "c"), ("a", "a"), ("a", "b")):
            with self.subTest(old=old, preferred=preferred):
                self.check_replaced(old, preferred)


class Documents(unittest.TestCase):
    def test_the_guide_names_every_function(self):
        guide = text_of("docs", "api.md")
        self.assertEqual({name for name in declared() if name not in guide}, set())

    def test_every_function_has_its_comment(self):
        for path, function in (("baton.h", "baton_open"), ("baton/work.h", "baton_work_open")):
            header = text_of("include", path)
            names = re.findall(r"^BATON_API [^;(]*?\b(baton_\w+)\(", header, re.M)
            self.assertIn(function, names)
            for name in names:
                at = header.index("%s(" % name, header.index("#include"))
                before = header[:at].rsplit("\n\n", 1)[-1]
                self.assertIn("/*", before, name)

    def test_every_block_of_the_guide_compiles(self):
        blocks = re.findall(r"```c\n(.*?)```", text_of("docs", "api.md"), re.S)
        self.assertGreater(len(blocks), 6)
        for block in blocks:
            done = subprocess.run([CC, "-x", "c", "-std=gnu11", "-Wall", "-Wextra", "-Werror",
                                   "-fsyntax-only", "-I", os.path.join(SOURCE, "include"), "-"],
                                  input=block, universal_newlines=True, stderr=subprocess.PIPE,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr + block)

    def test_the_readme_s_example_compiles(self):
        block = re.search(r"```c\n#include <baton.h>\n(.*?)```", text_of("README.md"), re.S)
        program = ("#include <baton.h>\nextern bool running;\nvoid work_a_little(uint64_t epoch);\n"
                   "void f(void);\nvoid f(void) {\nstruct baton *baton;\nuint64_t epoch;\n"
                   "struct baton_election *election;\nstruct baton_error error;\n%s}\n"
                   % block.group(1))
        done = subprocess.run([CC, "-x", "c", "-std=gnu11", "-Wall", "-Wextra", "-Werror",
                               "-fsyntax-only", "-I", os.path.join(SOURCE, "include"), "-"],
                              input=program, universal_newlines=True, stderr=subprocess.PIPE,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_url_that_leaves_the_machine_is_protected(self):
        for path in (("README.md",), ("include", "baton.h")):
            urls = re.findall(r'"raft://([^"]*)",[ *\n]*NULL', text_of(*path))
            self.assertTrue(urls, path)
            for url in urls:
                self.assertIn("&key-file=", url)

    def test_the_packages_have_the_version_of_the_project(self):
        version = re.search(r"project\(baton VERSION (\S+)", text_of("CMakeLists.txt")).group(1)
        first = text_of("packaging", "debian", "changelog").split("\n")[0]
        self.assertTrue(first.startswith("baton (%s) " % version), first)

    def test_a_unit_that_runs_a_program_lets_its_death_be_proved(self):
        units = [("packaging", "systemd", "baton-run@.service.in"),
                 ("examples", "cron", "cron-leader.service")]
        for unit in units:
            lines = text_of(*unit).split("\n")
            self.assertTrue([line for line in lines if "baton run " in line], unit)
            for line in ("Type=notify", "NotifyAccess=main", "KillMode=mixed", "Delegate=yes"):
                self.assertIn(line, lines, unit)

    def test_the_manual_page_s_example_survives_a_provider_that_does_not_open(self):
        page = text_of("docs", "man", "libbaton.3")
        example = re.search(r"\.Bd -literal\n(.*?)\.Ed", page, re.S).group(1)
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "example")
            with open(program + ".c", "w", encoding="utf-8") as file:
                file.write("#include <baton.h>\n"
                           "static void work_a_little(uint64_t epoch) { (void)epoch; }\n"
                           "int main(void) { const char *url = \"nothing:\";\n%s return 0; }\n"
                           % example)
            # What was not set is nothing that could pass for a pointer.
            run(CC, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-ftrivial-auto-var-init=pattern",
                "-o", program, program + ".c", "-I", os.path.join(SOURCE, "include"),
                "-L", os.path.join(BUILD, "lib"), "-lbaton",
                "-Wl,-rpath," + os.path.join(BUILD, "lib"))
            run(program)

    def test_the_version_is_one(self):
        version = re.search(r"project\(baton VERSION (\S+)", text_of("CMakeLists.txt")).group(1)
        header = text_of("include", "baton.h")
        parts = [re.search(r"BATON_VERSION_%s (\d+)" % part, header).group(1)
                 for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertEqual(".".join(parts), version)


if __name__ == "__main__":
    unittest.main(verbosity=2)
