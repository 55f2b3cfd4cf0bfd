"""Pages in a headless Chromium, measured by a script that
looks into them; nothing can be loaded from elsewhere.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium"
)

# A window is at least 500 pixels wide, but a frame in it is as narrow as a phone.
_FRAMES = """<!DOCTYPE html><body><script>
const looks = LOOKS, results = {};
const look = (frame) => new Function("page", "window", SCRIPT)(frame.contentDocument, frame.contentWindow);
for (const [name, [address, width]] of Object.entries(looks)) {
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 900px; border: 0`;
  frame.onload = async () => {
    try { results[name] = await look(frame); } catch (error) { results[name] = {error: String(error)}; }
    if (Object.keys(results).length === Object.keys(looks).length) {
      const shown = document.createElement("output");
      shown.textContent = JSON.stringify(results);
      document.body.replaceChildren(shown);
    }
  };
  frame.src = address;
  document.body.append(frame);
}
</script></body>"""


def painted(address: str, folder: Path, *, width: int) -> bytes:
    """Return the picture of the first 4,000 pixels of a page as PNG."""
    shot = folder / "shot.png"
    chromium(folder, f"--window-size={width},4000", f"--screenshot={shot}", address)
    return shot.read_bytes()


def measured(
    pages: Mapping[str, tuple[Path, int]], script: str, folder: Path, *, dark: bool = False
) -> dict[str, Any]:
    """Return by name what *script* returns for each page at a width; it sees ``page`` and ``window``."""
    looks = {name: (path.as_uri(), width) for name, (path, width) in pages.items()}
    frames = _FRAMES.replace("LOOKS", json.dumps(looks)).replace("SCRIPT", json.dumps(script))
    (folder / "frames.html").write_text(frames, encoding="utf-8")
    printed = chromium(
        folder,
        "--window-size=1600,1000",
        "--allow-file-access-from-files",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        # The clock of the page runs ahead only while nothing is left to do.
        "--virtual-time-budget=60000",
        "--dump-dom",
        (folder / "frames.html").as_uri(),
    )
    found = re.search(r"<output>(.*)</output>", printed, re.DOTALL)
    assert found is not None, printed[-2000:]
    results: dict[str, Any] = json.loads(unescape(found.group(1)))
    return results


def chromium(folder: Path, *arguments: str) -> str:
    """Run a headless Chromium with a profile in *folder*, and return what it prints."""
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={folder / 'profile'}",
        *arguments,
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
