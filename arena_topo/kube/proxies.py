"""Which proxy stands before an API server: the kubeconfig's, or the environment's by Go's rules.

``proxy-url`` of the kubeconfig always applies. ``HTTPS_PROXY`` and ``HTTP_PROXY`` never apply to this machine, nor
to what ``NO_PROXY`` names. Source: ``golang.org/x/net/http/httpproxy``, which kubectl uses.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from arena_topo.kube.kubeconfig import Target


def proxy_of(target: Target, env: Mapping[str, str]) -> str:
    """Return the URL of the proxy between us and the server of *target*, empty if there is none."""
    if proxy := target.cluster.get("proxy-url"):
        return str(proxy)
    proxy = _env_value(env, f"{urlsplit(target.server).scheme}_proxy")
    if not proxy or not _is_proxied(target, _env_value(env, "no_proxy")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _env_value(env: Mapping[str, str], name: str) -> str:
    # Go reads the upper-case name first, and takes an empty value for one that is not set.
    return env.get(name.upper()) or env.get(name) or ""


def _is_proxied(target: Target, exceptions: str) -> bool:
    host, port = target.address
    address = _address(host)
    if host == "localhost" or (address and address.is_loopback):
        return False
    rules = (rule.strip().lower() for rule in exceptions.split(","))
    return not any(_matches(rule, host, address, port) for rule in rules if rule)


def _matches(rule: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    """Whether a rule of ``NO_PROXY`` (``*``, a network, an address or a domain, perhaps with a port) covers a server."""
    if rule == "*":
        return True
    if "/" in rule:
        return address is not None and _in_network(address, rule)
    name, rule_port = _name_and_port(rule)
    if rule_port not in ("", str(port)):
        return False
    if rule_address := _address(name):
        return address == rule_address
    # "example.com" covers the domain and all below it, ".example.com" and "*.example.com" only what is below.
    if name.startswith(("*.", ".")):
        return host.endswith(name.removeprefix("*"))
    return host == name or host.endswith(f".{name}")


def _name_and_port(rule: str) -> tuple[str, str]:
    """Return the name and the port of a rule, which is a lone IPv6 address where it has several colons."""
    if rule.startswith("["):
        name, _, port = rule[1:].partition("]")
        return name, port.removeprefix(":")
    if rule.count(":") > 1:
        return rule, ""
    name, _, port = rule.partition(":")
    return name, port


def _in_network(address: IPv4Address | IPv6Address, network: str) -> bool:
    try:
        return address in ip_network(network, strict=False)
    except ValueError:
        return False


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
