"""The manifests and the image recipes of packaging/: whether they agree with the programs, with
each other and with the Debian packages. test_containers.py runs their command lines."""
import copy
import re
import unittest

import manifests
from harness import main

RECIPES = {"baton": manifests.ROOT / "packaging/oci/Containerfile",
           "baton-fleet": manifests.ROOT / "packaging/oci/Containerfile.fleet"}  # by image
DEBIAN = manifests.ROOT / "packaging/debian"


def names():
    return sorted(path.name for path in manifests.MANIFESTS.glob("*.yaml"))


class Manifests(unittest.TestCase):
    def test_each_agrees_with_baton_and_with_itself(self):
        self.assertTrue(names())
        for name in names():
            with self.subTest(name):
                self.need(name)
                self.assertEqual(list(manifests.faults(manifests.read(name))), [])

    def need(self, name):
        for pod in manifests.pods(manifests.read(name)):
            for program in map(manifests.program_of, pod.containers()):
                if not manifests.is_built(program):  # its wing is left out
                    self.skipTest("%s is not built" % program)

    def test_each_runs_something(self):
        for name in names():
            with self.subTest(name):
                self.assertTrue(manifests.pods(manifests.read(name)))

    def test_all_use_the_images_of_the_recipes_and_their_users(self):
        for name in names():
            for pod in manifests.pods(manifests.read(name)):
                for container in pod.lasting():
                    recipe = RECIPES[container["image"]].read_text("utf-8")
                    tag = re.search(r"build +-t (\S+)", recipe).group(1)
                    user = int(re.search(r"^USER (\d+):\1$", recipe, re.M).group(1))
                    self.assertEqual(container["image"], tag)
                    if pod.spec["securityContext"].get("fsGroup"):  # it has files of its own
                        self.assertEqual(pod.setting(container, "runAsUser"), user)


class Planted(unittest.TestCase):
    """A check that cannot fail shows nothing."""

    def planted(self, change, file="statefulset.yaml"):
        documents = copy.deepcopy(manifests.read(file))
        workload = manifests.of_kind(documents, *manifests.WORKLOADS)[0]
        change(workload, workload["spec"]["template"]["spec"])
        return list(manifests.faults(documents))

    def replaced(self, old, new, file="statefulset.yaml"):
        def change(workload, spec):
            words = spec["containers"][0]["args"]
            spec["containers"][0]["args"] = [word.replace(old, new) for word in words]
        return self.planted(change, file)

    def test_a_flag_that_does_not_exist(self):
        self.assertRegex(self.replaced("--node=", "--nodes=")[0], "no --nodes")

    def test_a_path_without_a_volume(self):
        self.assertRegex(self.replaced("/var/lib/baton/data", "/var/lib/report")[0], "no volume")

    def test_a_volume_that_cannot_be_written(self):
        self.assertRegex(self.replaced("/var/lib/baton/data", "/etc/baton/data")[0], "be written")

    def test_a_port_that_nobody_names(self):
        self.assertTrue(self.replaced("0.0.0.0:7400", "0.0.0.0:7401"))

    def test_a_probe_of_another_port(self):
        found = self.replaced("$(POD_IP):7480", "$(POD_IP):7481")
        self.assertTrue([one for one in found if "Probe" in one])

    def test_a_variable_that_is_not_given(self):
        self.assertRegex(self.replaced("$(POD_NAME)", "$(POD)")[0], "not given")

    def test_a_peer_that_is_no_pod(self):
        self.assertRegex(self.replaced("report-2.report:", "report-3.report:")[0], "peers")

    def test_a_grace_period_that_is_too_short(self):
        self.assertRegex(self.replaced("--stop-timeout=20s", "--stop-timeout=30s")[0], "killed")

    @unittest.skipUnless(manifests.is_built("baton-fleet"), "baton-fleet is not built")
    def test_a_providers_url_that_disagrees(self):
        for old, new, fault in (("fleet-2.fleet:", "fleet-3.fleet:", "peers"),
                                ("/etc/baton/cluster.key", "/etc/cluster.key", "no volume"),
                                ("data=/var/lib/baton", "data=/etc/baton", "be written"),
                                ("0.0.0.0:7400", "0.0.0.0:7401", "listens at")):
            self.assertRegex("\n".join(self.replaced(old, new, "fleet.yaml")), fault)

    def test_more_replicas_than_peers(self):
        self.assertTrue(self.planted(lambda workload, spec: workload["spec"].update(replicas=5)))

    def test_an_update_that_does_not_wait(self):
        self.assertTrue(self.planted(
            lambda workload, spec: workload["spec"].update(minReadySeconds=1)))

    def test_a_key_that_others_may_read(self):
        self.assertTrue(self.planted(
            lambda workload, spec: spec["volumes"][0]["secret"].update(defaultMode=0o444)))

    def test_a_container_that_may_do_more(self):
        for key, value in (("allowPrivilegeEscalation", True), ("readOnlyRootFilesystem", False),
                           ("capabilities", {"drop": ["ALL"], "add": ["SYS_PTRACE"]}),
                           ("capabilities", {}), ("runAsNonRoot", False),
                           ("seccompProfile", {"type": "Unconfined"})):
            self.assertTrue(self.planted(lambda workload, spec, key=key, value=value:
                                         spec["containers"][0]["securityContext"].update(
                                             {key: value})), key)

    def test_a_setting_in_a_file_that_does_not_exist(self):
        documents = manifests.read("agent-daemonset.yaml")
        config = manifests.of_kind(documents, "ConfigMap")[0]
        config["data"]["agent.yaml"] += "sockets: /run/baton\n"
        self.assertRegex(list(manifests.faults(documents))[0], "no --sockets")


class Recipe(unittest.TestCase):
    def each(self):
        for program, path in RECIPES.items():
            with self.subTest(program):
                yield program, path.read_text("utf-8")

    def test_the_package_has_the_manifests_as_they_are(self):
        """debhelper compresses what is larger than 4 KiB, and kubectl reads no .gz."""
        rules = (DEBIAN / "rules").read_text("utf-8")
        self.assertRegex(rules, r"\n\tdh_compress .*-X\.yaml\b")

    def test_its_packages_are_built(self):
        control = (DEBIAN / "control").read_text("utf-8")
        for program, recipe in self.each():
            wanted = re.findall(r"/packages/([\w-]+)_\*\.deb", recipe)
            self.assertEqual(wanted, [program, "baton-guardian"])
            for name in wanted:
                self.assertIn("\nPackage: %s\n" % name, control)

    def test_its_first_program_is_in_them(self):
        for program, recipe in self.each():
            self.assertIn('ENTRYPOINT ["%s"]\n' % program, recipe)
            self.assertIn("usr/bin/%s\n" % program,
                          (DEBIAN / (program + ".install")).read_text("utf-8"))

    def test_it_does_not_run_as_root(self):
        for _, recipe in self.each():
            users = re.findall(r"^USER (\S+)$", recipe, re.M)
            self.assertRegex(users[-1], r"^[1-9]\d*:[1-9]\d*$")


if __name__ == "__main__":
    main()
