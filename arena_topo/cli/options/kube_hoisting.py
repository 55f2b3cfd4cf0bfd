"""The names of kubectl's flags, and how they may stand before a command as Arena's may."""

TEXTS = (
    (("-n", "--namespace"), "namespace", "Namespace of the job."),
    (("--context",), "context", "Context of the kubeconfig to use."),
    (("--kubeconfig", "--config"), "kubeconfig", "Path of the kubeconfig file."),
    (("--cluster",), "cluster", "Cluster of the kubeconfig to use."),
    (("--user",), "user", "User of the kubeconfig to use."),
    (("-s", "--server"), "server", "Address of the API server."),
    (("--token",), "token", "Bearer token for the API server."),
    (("--certificate-authority",), "certificate_authority", "File with the API server's authority."),
    (("--tls-server-name",), "tls_server_name", "Name to check the API server's certificate against."),
    (("--as",), "impersonate", "User to act as."),
    (("--request-timeout",), "request_timeout", "Time for one request, for example 30s; 0 for no limit."),
)
GROUPS = "--as-group"
INSECURE = "--insecure-skip-tls-verify"
_WITH_VALUE = {name for names, _, _ in TEXTS for name in names} | {GROUPS}


def hoist(args: list[str]) -> list[str]:
    """Return *args* with the kubectl flags that stand before the command moved behind it."""
    flags, rest = [], list(args)
    while rest and _is_ours(rest[0]):
        takes_next = rest[0] in _WITH_VALUE and len(rest) > 1
        count = 2 if takes_next else 1
        flags += rest[:count]
        rest = rest[count:]
    if not rest or rest[0].startswith("-"):
        return list(args)
    return [rest[0], *flags, *rest[1:]]


def _is_ours(argument: str) -> bool:
    name = argument.partition("=")[0]
    return name in _WITH_VALUE or argument == INSECURE
