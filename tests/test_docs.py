"""The documentation cannot rot: it is generated, or checked, or run."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from arena_topo.cli.app import COMMANDS
from arena_topo.cli.declare import parameters
from arena_topo.cli.options.common import ArenaFlags
from arena_topo.cli.refused import REFUSED
from arena_topo.errors import ExitCode
from arena_topo.model import keys
from arena_topo.sandbox import layouts as sandbox_keys
from benchmarks import predictions
from tests.paths import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def generator(folder: str = "reference") -> ModuleType:
    """Return the script that writes a part of the documentation."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / folder / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_commands_print() -> None:
    """A page for each command, which `make docs` writes, and an index that leads to all of them."""
    folder = ROOT / "docs" / "reference" / "commands"
    pages = generator().pages()

    assert pages == {path.name: path.read_text() for path in folder.iterdir()}
    assert pages.keys() - {"README.md"} == set(re.findall(r"\]\(([\w-]+\.md)\)", pages["README.md"]))


def test_the_reference_of_the_api_is_what_its_docstrings_say() -> None:
    """`make docs` writes it."""
    assert generator().python_page() == (ROOT / "docs" / "reference" / "python.md").read_text()


def test_every_command_is_in_the_reference() -> None:
    """The index names each by its task, once; the other tables of the generator name no others."""
    reference = generator()
    in_index = [command for commands in reference.TASKS.values() for command in commands]

    assert sorted(COMMANDS) == sorted(in_index)
    assert {*reference.EXIT_CODES, *reference.OWN_EXIT_CODES, *reference.EXPLAINED_IN} <= COMMANDS.keys()


@pytest.mark.parametrize(
    ("page", "quoted"),
    [("pending", r"\*([^*]+)\*"), ("why", r"\*([^*]+)\*"), ("controller", r"`([A-Z][A-Za-z]+)`")],
)
def test_states_of_waiting_jobs_are_quoted_as_they_are_printed(page: str, quoted: str) -> None:
    """A user searches for the words on the screen: a state or event that begins a row is the package's."""
    rows = re.findall(rf"^\| {quoted}", (ROOT / "docs" / "how-to" / f"{page}.md").read_text(), re.MULTILINE)
    code = "".join(path.read_text() for path in (ROOT / "arena_topo").rglob("*.py"))

    assert len(rows) > 2
    assert [] == [state for state in rows if (state if " " in state else f'"{state}"') not in code]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """To a file of the project; what stands in a block of code is no link."""
    prose = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)\)", prose)
    inside = [link for link in links if "://" not in link]

    assert [] == [link for link in inside if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_modules_exist(page: Path) -> None:
    """In the project, in the package, or in a room of it: by the end of their path."""
    named = {name for name in re.findall(r"`([\w/]+\.py)`", page.read_text()) if "NAME" not in name}
    folders = ("arena_topo", "tests", "benchmarks", "tools", "docs")
    modules = [f"/{path.relative_to(ROOT)}" for folder in folders for path in (ROOT / folder).rglob("*.py")]

    assert [] == [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in modules)]


def test_the_readme_leads_to_every_page() -> None:
    """Of the documentation; decisions and commands have an index, to which it leads."""
    links = set(re.findall(r"\]\((docs/[^)#\s]+\.md)\)", (ROOT / "README.md").read_text()))
    indexes = {"docs/adr/README.md", "docs/reference/commands/README.md"}
    apart = {ROOT, *((ROOT / index).parent for index in indexes)}
    pages = {str(page.relative_to(ROOT)) for page in PAGES if page.parent not in apart}

    assert pages | indexes == links


def test_every_exit_code_is_documented() -> None:
    """In one table."""
    text = (ROOT / "docs" / "reference" / "exit-codes.md").read_text()

    assert [] == [code for code in ExitCode if f"| {int(code)} |" not in text]


def test_every_key_of_ours_is_documented() -> None:
    """Each label, annotation and gate, and none that is not written."""
    text = (ROOT / "docs" / "reference" / "labels.md").read_text()
    ours = {
        value
        for module in (keys, sandbox_keys)
        for value in vars(module).values()
        if isinstance(value, str) and re.fullmatch(r"(sandbox\.)?arena-topo\.dev/.+", value)
    }

    assert ours == set(re.findall(r"`((?:sandbox\.)?arena-topo\.dev/[\w-]+)`", text))


def test_every_variable_that_is_read_is_documented() -> None:
    """By its name, wherever the environment is asked for it."""
    text = (ROOT / "docs" / "reference" / "environment.md").read_text()
    source = "".join(path.read_text() for path in (ROOT / "arena_topo").rglob("*.py"))
    # Kubernetes itself sets these two in every pod.
    read = set(re.findall(r"\benv(?:iron)?(?:\.get\(|\[)\"([A-Z][A-Z_]+)\"", source)) - {
        "KUBERNETES_SERVICE_HOST",
        "KUBERNETES_SERVICE_PORT",
    }

    assert len(read) > 5
    assert set() == {name for name in read - {"HOME"} if f"`{name}" not in text}


OTHER_PROGRAMS = r"(?:kubectl|uvx?|pipx|python -m|docker|torchrun|horovodrun|mpirun|nvidia-smi|rocm-smi) "


def test_every_flag_that_a_page_names_exists() -> None:
    """Spelled as the commands spell it."""
    known = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", "".join(generator().pages().values())))
    # Arena's own flags, and those that are refused, stand on no help page.
    known |= {name for param in parameters(ArenaFlags) for name in param.opts} | REFUSED.keys()
    others = {"--strict", "--showtopo", "--gang-scheduling"}
    # Of the tests, tools and benchmarks, and of torchrun.
    others |= {"--tier", "--against", "--keep", "--python", "--rdzv-backend", "--node-rank"}
    for page in PAGES:
        pieces = re.findall(rf"`(?!{OTHER_PROGRAMS})([^`\n]+)", page.read_text())
        named = {flag for piece in pieces for flag in re.findall(r"(?<![\w-])--[a-z][\w-]*", piece)}
        assert set() == named - known - others, page.name


def map_of_the_house() -> dict[str, set[str]]:
    """Return the packages that CONTRIBUTING's map names, each with the rooms that it names there."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    drawn = re.search(r"^    arena_topo/\n((?:      .*\n)+)", text, re.MULTILINE)
    assert drawn is not None
    lines = [line.split(maxsplit=1) for line in drawn.group(1).splitlines()]
    return {name.rstrip("/"): set(re.findall(r"\b([a-z_]+)/", story)) for name, story in lines}


def folders(parent: Path) -> set[str]:
    """Return the names of the folders in *parent* that have something in them."""
    return {path.name for path in parent.iterdir() if path.name != "__pycache__" and any(path.glob("[!_]*"))}


def test_the_map_of_the_house_is_complete() -> None:
    """Each package and each room in it stands there, and nothing else does."""
    house = ROOT / "arena_topo"
    drawn = map_of_the_house()

    for module in ("errors.py", "api.py", "mcp_server.py"):
        assert drawn.pop(module) == set()
    assert {package: folders(house / package) for package in folders(house)} == drawn


def test_the_folders_beside_the_house_exist() -> None:
    """As the map names them, below it."""
    named = re.findall(r"^    (\w+)/ ", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)

    assert {"templates", "tests", "benchmarks", "tools", "docs"} == set(named)
    assert [] == [folder for folder in named if not (ROOT / folder).is_dir()]


DECISIONS = sorted((ROOT / "docs" / "adr").glob("0*.md"))


@pytest.mark.parametrize("record", DECISIONS, ids=lambda path: path.stem)
def test_decisions_have_a_status_and_a_date(record: Path) -> None:
    """The index says the same of each."""
    head = r"# (\d+)\. (.+)\n\n- Status: (\w+.*)\n- Date: (\d{4}-\d\d-\d\d)\n\n## Context\n"
    found = re.match(head, record.read_text())
    assert found is not None, "a record begins with its number, title, status, date and context"
    number, name, status, date = found.groups()
    index = (ROOT / "docs" / "adr" / "README.md").read_text()

    assert int(number) == int(record.name[:4])
    assert f"| {number} | [{name}]({record.name}) | {status} | {date} |" in index


def test_pages_install_from_what_exists() -> None:
    """A checkout or the wheel that it builds: no package index has the project."""
    installs = [
        what
        for page in PAGES
        for what in re.findall(
            r"\b(?:pipx? install|uv tool install|uvx --from) (?:--quiet )?([^`\n]+)", page.read_text()
        )
    ]

    assert installs
    # The two variables are a wheel's path or URL, as the lines above them say.
    assert [] == [
        what for what in installs if not re.match(r"['\"]?(\.|dist/|\$\{?WHEEL|\$ARENA_TOPO)", what)
    ]


MAINTAINERS = {"adr", "explanation"}
USERS_PAGES = [
    ROOT / "README.md",
    *(page for page in PAGES if ROOT / "docs" in page.parents and page.parent.name not in MAINTAINERS),
]


@pytest.mark.parametrize("page", USERS_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_for_users_name_no_tests(page: Path) -> None:
    """Neither a file nor a function: those stand on maintainers' pages."""
    assert [] == re.findall(r"\btests/\S+|\btest_\w+", page.read_text())


EXPLANATIONS = sorted((ROOT / "docs" / "explanation").glob("*.md"))


@pytest.mark.parametrize("page", EXPLANATIONS, ids=lambda page: page.stem)
def test_an_explanation_begins_with_its_idea_and_a_picture(page: Path) -> None:
    """Before the first heading: some sentences, and a picture that exists and has words."""
    begins = page.read_text().partition("\n## ")[0]

    assert f"({page.stem}.svg)" in begins
    assert re.search(r"^!\[.{20,}\]\(", begins, re.MULTILINE)
    assert len(re.sub(r"^(#|!\[|```).*", "", begins, flags=re.MULTILINE).split()) > 40


def test_the_pictures_of_explanations_are_what_the_tool_draws() -> None:
    """`make docs` draws them."""
    folder = ROOT / "docs" / "explanation"
    drawn = generator("explanation").pictures()

    assert {name: (folder / f"{name}.svg").read_text() for name in drawn} == drawn
    assert predictions.PICTURE.read_text() == f"{predictions.chart()}\n"


def test_the_gallery_is_what_the_tool_draws() -> None:
    """`make docs` draws it; the page shows every picture, in words too, and none is too large to look at."""
    folder, drawn = ROOT / "docs" / "gallery", dict(generator("gallery").pictures())
    shown = re.findall(r'!\[(.+)\]\((.+)\)|<img src="(.+?)" alt="(.+?)"', (folder / "README.md").read_text())

    assert {path.stem: path.read_text().rstrip() for path in folder.glob("*.svg")} == drawn
    assert {f"{name}.svg" for name in drawn} == {words[1] or words[2] for words in shown}
    assert 300_000 > max(map(len, drawn.values()))
    assert [] == [
        name for name, svg in drawn.items() if not re.search(r"<title>.+</title><desc>.+</desc>", svg)
    ]
