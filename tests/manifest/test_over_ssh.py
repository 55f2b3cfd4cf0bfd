"""Ranks start in sessions of ssh: what they need to be the ranks that the user asked for."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.pods import words_of
from arena_topo.manifest.render import RenderContext, render
from arena_topo.model.job import JobSpec, MpiOptions, PodOptions
from arena_topo.model.objects import Object
from tests.ranks.agent.environment import expanded

PLAIN = JobSpec(name="vgg16", namespace="ml", image="train:1", command=("mpirun", "t"), workers=2, gpus=1)
HOST_NETWORK = replace(PLAIN, pod=PodOptions(host_network=True))
# The server itself is played by a script, which starts one session as sshd does: with an environment of its
# own, and the forced command run by the user's login shell.
SERVER = """#!/bin/sh
for word in "$@"; do case $word in ForceCommand=*) forced=${word#ForceCommand=};; esac; done
exec env -i SHELL=/bin/sh PATH=/usr/bin:/bin SSH_ORIGINAL_COMMAND='exec env -0' /bin/sh -c "$forced"
"""


def pod_of(job: JobSpec, role: str, version: ApiVersion = ApiVersion.V2BETA1) -> Object:
    """Return the pod of *role* that *job* renders to."""
    spec = render(job, RenderContext(version)).job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    assert isinstance(spec, dict)
    return spec


def env_of(job: JobSpec) -> dict[str, str]:
    """Return the environment of the launcher's container."""
    return {
        variable["name"]: variable["value"] for variable in pod_of(job, "Launcher")["containers"][0]["env"]
    }


def session_env(folder: Path, env: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the environment of a session of a worker whose container has *env*."""
    server = folder / "sshd"
    server.write_text(SERVER)
    server.chmod(0o755)
    command = pod_of(PLAIN, "Worker")["containers"][0]["command"]
    # The kubelet turns $$( into $(.
    script = command[-1].replace("$$(", "$(").replace("/usr/sbin/sshd", str(server))
    output = subprocess.run([*command[:-1], script], env=env, capture_output=True, check=True).stdout
    return dict(entry.split(b"=", 1) for entry in output.split(b"\0") if entry)


VALUES = st.binary(max_size=40).map(lambda value: value.replace(b"\0", b""))


@given(values=st.lists(VALUES, min_size=1, max_size=5))
@settings(max_examples=20)
def test_a_session_has_every_value_of_its_container(
    values: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Byte for byte: quotes, line breaks, dollar signs, and what is no UTF-8."""
    env = {f"V{i}".encode(): value for i, value in enumerate(values)}
    session = session_env(tmp_path_factory.mktemp("ssh"), {**env, b"PATH": os.environb[b"PATH"]})
    assert env == {name: session.get(name) for name in env}


def test_a_session_keeps_what_is_its_own(tmp_path: Path) -> None:
    """Its login shell and its folder are not those of the process that started the server."""
    env = {b"SHELL": b"/bin/false", b"PWD": b"/nowhere", b"PATH": os.environb[b"PATH"]}
    session = session_env(tmp_path, env)
    assert b"/bin/sh" == session[b"SHELL"]
    assert b"/nowhere" != session.get(b"PWD")


def test_open_mpi_5_is_given_its_hosts() -> None:
    """It does not read the variables that the operator sets, and would start all ranks in the launcher."""
    assert "/etc/mpi/hostfile" == env_of(PLAIN)["PRTE_MCA_prte_default_hostfile"]


def test_what_the_user_sets_stays() -> None:
    """A variable of the user's wins over ours."""
    job = replace(PLAIN, pod=PodOptions(env={"PRTE_MCA_plm_ssh_args": "-p 2222"}))
    assert "-p 2222" == env_of(job)["PRTE_MCA_plm_ssh_args"]


@pytest.mark.parametrize("implementation", ["MPICH", "Intel"])
def test_another_mpi_gets_no_variables_of_open_mpi(implementation: str) -> None:
    """The operator is told which one it is, and sets that one's own."""
    job = replace(PLAIN, mpi=MpiOptions(implementation=implementation, ssh_auth_path="/home/mpi/.ssh"))
    spec = render(job, RenderContext()).job["spec"]
    assert {} == {name: value for name, value in env_of(job).items() if name.startswith("PRTE")}
    assert (implementation, "/home/mpi/.ssh") == (spec["mpiImplementation"], spec["sshAuthMountPath"])


NO_SUCH_HOST = """#!/bin/sh
[ -f known ] && exit
touch known
exit 2
"""


def launched(folder: Path, hosts: str) -> subprocess.CompletedProcess[str]:
    """Return what a launcher does whose hostfile is *hosts*,
    where a name resolves when it is asked for the second time.
    """
    job = replace(PLAIN, command=("sh", "-c", 'printf "<%s>" "$@"', "it", "a  b", "$(HOME)", "$$x", "'q\""))
    container = pod_of(job, "Launcher")["containers"][0]
    command = [*container["command"], *container["args"]]
    (folder / "hostfile").write_text(hosts)
    for name, text in (("getent", NO_SUCH_HOST), ("sleep", "#!/bin/sh\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    # The kubelet turns $$( into $(, and $$$ in front of a parenthesis likewise.
    words = [expanded(word, {}).replace("/etc/mpi/hostfile", "hostfile") for word in command]
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run(words, cwd=folder, env={"PATH": path}, capture_output=True, text=True, check=True)


@pytest.mark.parametrize(
    "hosts", ["w-0.w.ml.svc slots=2\nw-1.w.ml.svc slots=2\n", "w-0.w.ml.svc:2\n"], ids=["openmpi", "mpich"]
)
def test_the_launcher_waits_until_its_hosts_resolve(tmp_path: Path, hosts: str) -> None:
    """It says so once, and the user's command runs then, word by word as it was given."""
    done = launched(tmp_path, hosts)
    assert "waiting for w-0.w.ml.svc, whose name does not resolve yet\n" == done.stderr
    assert "<a  b><$(HOME)><$$x><'q\">" == done.stdout


def test_the_launcher_stays_off_the_hosts_network() -> None:
    """In the network of a worker's node mpirun would run that worker's ranks itself."""
    assert "hostNetwork" not in pod_of(HOST_NETWORK, "Launcher")
    assert pod_of(HOST_NETWORK, "Worker")["hostNetwork"]


def test_workers_in_the_hosts_network_declare_their_port() -> None:
    """kube-scheduler then gives each a node of its own; in a network of its own a worker shares nothing."""
    assert [{"name": "ssh", "containerPort": 22}] == pod_of(HOST_NETWORK, "Worker")["containers"][0]["ports"]
    assert "ports" not in pod_of(PLAIN, "Worker")["containers"][0]


def test_workers_without_ssh_need_none_of_it() -> None:
    """The operator of v1 starts the ranks in the containers themselves."""
    assert "command" not in pod_of(PLAIN, "Worker", ApiVersion.V1)["containers"][0]
    assert pod_of(HOST_NETWORK, "Launcher", ApiVersion.V1)["hostNetwork"]


def test_the_users_command_can_be_told_from_the_wait_before_it() -> None:
    """For anyone who shows or simulates what a launcher runs."""
    assert ["mpirun", "t"] == words_of(pod_of(PLAIN, "Launcher")["containers"][0])
    assert ["mpirun", "t"] == words_of(pod_of(PLAIN, "Launcher", ApiVersion.V1)["containers"][0])
    assert ["a", "b"] == words_of({"command": ["a"], "args": ["b"]})
