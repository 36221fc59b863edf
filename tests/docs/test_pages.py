"""Pages that are written from the code are what the code says."""

from pathlib import Path

from taxiway.app import pages

DOCS = Path(__file__).parents[2] / "docs"


def test_the_support_page_is_up_to_date():
    assert (DOCS / "support.md").read_text() == pages.support(), "run: .venv/bin/python scripts/pages"


def test_every_rule_has_its_page_and_there_are_no_others():
    pages_now = {p.name: p.read_text() for p in (DOCS / "rules").glob("*.md")}
    assert pages_now == pages.rules(), "run: .venv/bin/python scripts/pages"


def test_the_configuration_page_is_up_to_date():
    assert (DOCS / "configuration.md").read_text() == pages.configuration(), "run: .venv/bin/python scripts/pages"
