"""Tables without what differs from run to run."""

import re


def shape(table: str) -> list[str]:
    """Return a table without what differs from run to run:
    pod suffixes, ages, nodes, namespace and widths.
    """
    table = re.sub(r"(launcher)-[a-z0-9]{5}\b", r"\1-xxxxx", table)
    table = re.sub(r"\b\d+[sm]\b", "AGE", table)
    table = re.sub(r"cn-shanghai\.[\d.]+", "NODE", table)
    table = re.sub(r"^Namespace: .*$", "Namespace: NS", table, flags=re.MULTILINE)
    return [re.sub(r"(?<=\S) +", " ", line) for line in table.splitlines()]
