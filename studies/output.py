"""What the studies write: pictures, and tables. Sets matplotlib up for programs without a screen."""
import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "fast"  # the same picture from the same figures
import matplotlib.pyplot as plt  # noqa: E402


def save(figure, path):
    """As SVG, and beside it as PNG."""
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), bbox_inches="tight", dpi=90)
    plt.close(figure)


def write_table(folder, lines):
    """To table.md, and to the standard output."""
    text = "\n".join(lines) + "\n"
    (folder / "table.md").write_text(text)
    print(text, end="")
