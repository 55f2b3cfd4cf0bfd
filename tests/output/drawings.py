"""What the tests of drawings look for in an SVG document."""

import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def tips(svg: str) -> list[str]:
    """Return the tooltips of a drawing, which say what each thing is."""
    return [title.text or "" for title in ET.fromstring(svg).iter(f"{SVG}title")]
