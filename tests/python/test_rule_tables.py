"""Each rule is in a table of test_replicas.py, and in the same row of the page."""
import re

import fast_decentralized as fast
from test_replicas import BY_PARTS, ELEMENTWISE, NEEDS_SITES, REFUSED, ROOT


def test_each_rule_is_in_one_of_the_tables():
    names = next(row["names"] for row in fast.options() if row["name"] == "algorithm")
    assert sorted([*ELEMENTWISE, *BY_PARTS, *NEEDS_SITES, *REFUSED]) == sorted(names)
    page = (ROOT / "docs/how-to/fine-tune.md").read_text()
    rows = [set(re.findall("`([a-z0-9_]+)`", row)) & set(names) for row in page.split("### Rules")[1].split("###")[0].splitlines()
            if row.startswith("| `")]
    assert rows == [{*ELEMENTWISE, *NEEDS_SITES}, {*BY_PARTS, "diloco"}, REFUSED]
