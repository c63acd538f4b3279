#!/usr/bin/python3
"""manifests_test: what deploy/ says of the plugin is true of the plugin, and the files agree with each other.

usage: manifests_test.py WORKSPACE

Schemas and the chart's rendering are validate_test's business, which needs tools that are not always there.
"""

import json
import pathlib
import re
import socket
import subprocess
import sys
import unittest

try:
    import yaml
except ImportError:
    print("SKIPPED: no python3-yaml (apt-get install)")
    sys.exit(0)

ROOT = pathlib.Path(sys.argv.pop(1)).resolve().parent
KUBERNETES = ROOT / "deploy/kubernetes"
# NCCL's own, which docs/parameters.md has not, and what is no plugin's business.
FOREIGN = {"NCCL_NET_PLUGIN", "NCCL_NET", "NCCL_DEBUG", "LD_LIBRARY_PATH", "JOB_COMPLETION_INDEX"}


def documents():
    """Yields (file name, document) of every manifest."""
    for path in sorted(KUBERNETES.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            yield path.name, document


def pods(value):
    """Yields every pod's spec inside a document."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for item in value.values():
            yield from pods(item)
    elif isinstance(value, list):
        for item in value:
            yield from pods(item)


def training_pods():
    """Yields (file name, pod's spec, environment of its container) of what uses the plugin."""
    for name, document in documents():
        for pod in pods(document):
            environment = {item["name"]: item.get("value") for item in pod["containers"][0].get("env", [])}
            if "NCCL_NET_PLUGIN" in environment:
                yield name, pod, environment


def version():
    """The release in the source."""
    return re.search(r'kVersion\[\] = "(.*)";', (ROOT / "common/build_info.h").read_text()).group(1)


class ManifestsTest(unittest.TestCase):
    def test_parameters_exist(self):
        known = set(re.findall(r"^### (\w+)$", (ROOT / "docs/parameters.md").read_text(), re.M)) | FOREIGN
        files = set()
        for name, _, environment in training_pods():
            files.add(name)
            self.assertLessEqual(set(environment), known, name)
        self.assertEqual({"job.yaml", "multus.yaml", "pytorchjob.yaml", "trainjob.yaml"}, files)

    def test_the_library_is_where_it_is_looked_for(self):
        for name, pod, environment in training_pods():
            self.assertEqual(("tcpx", "tcpx"), (environment["NCCL_NET_PLUGIN"], environment["NCCL_NET"]), name)
            folder = environment["LD_LIBRARY_PATH"].split(":")[0]
            mounts = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
            volumes = {volume["name"]: volume for volume in pod["volumes"]}
            volume = volumes[mounts[folder]]
            if "hostPath" in volume:
                self.assertEqual("/opt/tcpx", volume["hostPath"]["path"], name)
            else:
                installer = pod["initContainers"][0]
                self.assertEqual([mount["mountPath"] for mount in installer["volumeMounts"]], installer["args"], name)
                self.assertEqual(volume["name"], installer["volumeMounts"][0]["name"], name)

    def test_every_mount_has_a_volume(self):
        for name, document in documents():
            for pod in pods(document):
                volumes = {volume["name"] for volume in pod.get("volumes", [])}
                for container in pod["containers"] + pod.get("initContainers", []):
                    mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
                    self.assertLessEqual(mounted, volumes, name)

    def test_the_secret(self):
        secret = next(document for name, document in documents() if name == "secret.yaml")
        for name, pod, environment in training_pods():
            if "TCPX_SECRET_FILE" not in environment:
                continue
            folder, _, key = environment["TCPX_SECRET_FILE"].rpartition("/")
            mounts = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
            volume = next(item for item in pod["volumes"] if item["name"] == mounts[folder])
            self.assertEqual(secret["metadata"]["name"], volume["secret"]["secretName"], name)
            self.assertIn(key, secret["stringData"], name)
            # Nobody but the owner and the pod's group reads it.
            self.assertEqual(0o440, volume["secret"]["defaultMode"], name)
            self.assertIn("fsGroup", pod["securityContext"], name)

    def test_the_policy_lets_in_what_listens(self):
        policy = next(document for name, document in documents() if name == "networkpolicy.yaml")
        rule = policy["spec"]["ingress"][0]
        ranges = {(port["port"], port.get("endPort", port["port"])) for port in rule["ports"]}
        for name, pod, environment in training_pods():
            if "TCPX_PORT_RANGE" not in environment:
                continue
            self.assertIn(tuple(map(int, environment["TCPX_PORT_RANGE"].split("-"))), ranges, name)
            local = {item["name"]: item["value"] for item in pod["securityContext"]["sysctls"]}
            self.assertIn(tuple(map(int, local["net.ipv4.ip_local_port_range"].split())), ranges, name)
        self.assertEqual(policy["spec"]["podSelector"], rule["from"][0]["podSelector"])

    def test_the_installer_runs_on_gpu_nodes_only(self):
        (pod,) = [pod for name, document in documents() if document["kind"] == "DaemonSet" for pod in pods(document)]
        self.assertEqual({"nvidia.com/gpu.present": "true"}, pod["nodeSelector"])
        values = yaml.safe_load((ROOT / "deploy/chart/tcpx/values.yaml").read_text())
        self.assertEqual(pod["nodeSelector"], values["installer"]["nodeSelector"])
        template = (ROOT / "deploy/chart/tcpx/templates/installer.yaml").read_text()
        self.assertIn("nodeSelector", template)

    def test_the_seccomp_profile(self):
        for name, document in documents():
            for pod in pods(document):
                profile = pod.get("securityContext", {}).get("seccompProfile", {})
                if profile.get("type") == "Localhost":
                    self.assertTrue((ROOT / "deploy/seccomp" / profile["localhostProfile"]).is_file(), name)

    def test_one_version(self):
        for name, document in documents():
            for image in re.findall(r"registry\.example\.com/tcpx:([^\s'\"]+)", json.dumps(document)):
                self.assertEqual(version(), image, name)
        chart = yaml.safe_load((ROOT / "deploy/chart/tcpx/Chart.yaml").read_text())
        self.assertEqual(version(), chart["appVersion"])
        self.assertTrue(chart["version"].startswith(version() + "."))

    def test_values_are_those_of_the_schema(self):
        values = yaml.safe_load((ROOT / "deploy/chart/tcpx/values.yaml").read_text())
        schema = json.loads((ROOT / "deploy/chart/tcpx/values.schema.json").read_text())

        def compare(value, part, path):
            known = part.get("properties")
            if known is None or not isinstance(value, dict):
                return
            self.assertLessEqual(set(value), set(known), path)
            for key, item in value.items():
                compare(item, known[key], path + "." + key)

        compare(values, schema, "values")

    def test_alert_rules_are_about_metrics_that_there_are(self):
        (group,) = yaml.safe_load((ROOT / "deploy/prometheus/tcpx-rules.yml").read_text())["groups"]
        known = (ROOT / "docs/observability.md").read_text()
        self.assertLess(4, len(group["rules"]))
        for rule in group["rules"]:
            self.assertTrue(rule["alert"] and rule["annotations"]["summary"])
            metrics = re.findall(r"\b(?:tcpx|node)_\w+", rule["expr"])
            self.assertTrue(metrics, rule["alert"])
            for metric in metrics:
                self.assertIn(metric, known, rule["alert"])

    def test_jobs_pass_the_restricted_standard(self):
        for name, pod, _ in training_pods():
            security = pod["securityContext"]
            self.assertTrue(security["runAsNonRoot"], name)
            self.assertNotEqual(0, security["runAsUser"], name)
            self.assertIn(security["seccompProfile"]["type"], ("RuntimeDefault", "Localhost"), name)
            for what in ("hostNetwork", "hostPID", "hostIPC"):
                self.assertFalse(pod.get(what), name)
            for volume in pod["volumes"]:
                self.assertFalse(set(volume) - {"name", "emptyDir", "secret", "configMap"}, name)
            for sysctl in security.get("sysctls", []):
                self.assertEqual("net.ipv4.ip_local_port_range", sysctl["name"], name)  # A safe one.
            for container in pod["containers"] + pod.get("initContainers", []):
                own = container["securityContext"]
                self.assertIs(False, own["allowPrivilegeEscalation"], name)
                self.assertEqual({"drop": ["ALL"]}, own["capabilities"], name)
                self.assertFalse(set(own) - {"allowPrivilegeEscalation", "capabilities", "readOnlyRootFilesystem"},
                                 name)

    def test_jobs_encrypt(self):
        for name, _, environment in training_pods():
            if "TCPX_SECRET_FILE" in environment:
                self.assertEqual("1", environment["TCPX_ENCRYPT"], name)

    def test_images_are_pinned(self):
        """By digest, except the user's own."""
        files = [*KUBERNETES.glob("*.yaml"), ROOT / "deploy/chart/tcpx/values.yaml", ROOT / "deploy/Dockerfile",
                 ROOT / ".github/workflows/ci.yml"]
        found = set()
        for path in files:
            found |= set(re.findall(r"^\s*(?:- )?(?:image|pauseImage): *([^\s{]+)|^ARG BASE=(\S+)", path.read_text(),
                                    re.M))
        images = {plain or base for plain, base in found}
        debian = {image.split("@")[0] for image in images if image.startswith("debian")}
        self.assertEqual({"debian:12-slim", "debian:12"}, debian)
        for image in images:
            if not image.startswith("registry.example.com/"):
                self.assertRegex(image, r"@sha256:[0-9a-f]{64}$")

    def test_the_profile_generator(self):
        base = pathlib.Path(
            "/usr/share/gocode/src/github.com/containerd/containerd/contrib/seccomp/seccomp_default.go")
        script = str(ROOT / "deploy/seccomp/make_profile.py")
        wrong = subprocess.run([sys.executable, script], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertEqual(2, wrong.returncode)
        for file in ("/nowhere", __file__):
            missing = subprocess.run([sys.executable, script, file], stderr=subprocess.PIPE, text=True)
            self.assertEqual((1, 1), (missing.returncode, len(missing.stderr.splitlines())))
        if not base.is_file():
            print("SKIPPED: the profile is not compared with the generator's: apt-get install "
                  "golang-github-containerd-containerd-dev", file=sys.stderr)
        else:
            made = subprocess.run([sys.executable, script, str(base)], check=True, stdout=subprocess.PIPE, text=True)
            profile = json.loads(made.stdout)
            self.assertEqual(json.loads((ROOT / "deploy/seccomp/tcpx-io-uring.json").read_text()), profile)

    def test_the_profile_lets_nobody_out(self):
        rules = json.loads((ROOT / "deploy/seccomp/tcpx-io-uring.json").read_text())["syscalls"]
        free = {name for rule in rules if rule["action"] == "SCMP_ACT_ALLOW" and "args" not in rule
                for name in rule["names"]}
        self.assertEqual(set(), free & {
            "add_key", "bpf", "clone", "clone3", "delete_module", "finit_module", "fsmount", "fsopen", "init_module",
            "kexec_load", "keyctl", "mount", "move_mount", "open_by_handle_at", "open_tree", "perf_event_open",
            "pivot_root", "reboot", "setns", "socket", "socketcall", "swapon", "umount", "umount2", "unshare",
            "userfaultfd"})
        families = set()
        for rule in rules:
            if "socket" in rule["names"]:
                (test,) = rule["args"]
                self.assertEqual((0, True), (test["index"], test["op"] in ("SCMP_CMP_LT", "SCMP_CMP_EQ")))
                low = 0 if test["op"] == "SCMP_CMP_LT" else test["value"]
                families |= set(range(low, max(test["value"], low + 1)))
        self.assertEqual(set(range(46)) - {socket.AF_ALG, socket.AF_VSOCK}, families)

if __name__ == "__main__":
    unittest.main()
