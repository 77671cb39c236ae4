"""What MkDocs does not do for the site: pages of files outside docs/, and the API from Doxygen's XML.

CONTRIBUTING.md, CHANGELOG.md and the README.md of each study become pages. So does each source that a page links to or names in
backquotes (`lib/worker/worker.cpp`), which becomes a link. Links between these files are rewritten; in
the repository they are relative to the file.
"""
import pathlib
import posixpath
import re
import sys

from mkdocs.structure.files import File, InclusionLevel

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import api  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = {"CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md", "README.md": "index.md"}
STUDIES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "studies").glob("*/README.md"))
PAGES |= {path: path for path in STUDIES}
PICTURES = (".svg", ".png")
FOLDERS = {"tutorial": "Tutorials", "how-to": "How-to", "reference": "Reference", "explanation": "Explanation",
           "extending": "Extend", "studies": "Studies", "": "Project"}
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".h": "c", ".c": "c", ".cu": "cuda", ".py": "python", ".sh": "bash", ".toml": "toml",
             ".txt": "cmake"}
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
NAMED = re.compile(r"(?<!\[)`((?:\.ci|bench|examples|include|lib|scripts|tests|tools|topology)/[\w./-]+)`(?!\])")


def on_config(config):
    reference = api.pages(ROOT / "build/docs/xml", ROOT / "include")
    config.extra["api"] = reference
    config.nav += [{section: pages} for section, pages in sections().items()] + [{"API": list(reference)}]
    return config


def sections():
    """The pages that docs/index.md links to, by their folders."""
    found = {section: [] for section in FOLDERS.values()}
    for title, link in re.findall(r"\[([^\]]+)\]\(([^)#]+)\)", (ROOT / "docs/index.md").read_text()):
        path = PAGES.get(link.removeprefix("../"), link)
        found[FOLDERS["studies" if path in STUDIES else posixpath.dirname(path)]].append({title: path})
    return found


def on_files(files, config):
    files.append(File.generated(config, "site.css", content=(ROOT / "scripts/docs/site.css").read_text()))
    for path in ("CONTRIBUTING.md", "CHANGELOG.md", *STUDIES):
        files.append(File.generated(config, path, content=(ROOT / path).read_text()))
    for picture in sorted(path for path in (ROOT / "studies").rglob("*") if path.suffix in PICTURES):
        files.append(File.generated(config, str(picture.relative_to(ROOT)), content=picture.read_bytes()))
    for path, text in config.extra["api"].items():
        files.append(File.generated(config, path, content=text))
    for path in sorted({path for file in files.documentation_pages() for path in sources_of(file)}):
        page = File.generated(config, page_of_source(path), content=text_of_source(path), inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(page)
    return files


def on_page_markdown(markdown, page, **_):
    uri = page.file.src_uri
    if uri.startswith("sources/"):
        return markdown
    return outside_of_blocks(
        markdown, lambda line: LINK.sub(lambda found: rewritten(found, uri), NAMED.sub(lambda found: linked(found, uri), line)))


def linked(found, page):
    """A source in backquotes as a link, relative to the page in the repository."""
    path = found[1]
    if not is_source(path):
        return found[0]
    return f"[`{path}`]({posixpath.relpath(path, posixpath.dirname(in_repository(page)) or '.')})"


def outside_of_blocks(markdown, change):
    lines, in_block = [], False
    for line in markdown.splitlines(keepends=True):
        in_block ^= line.lstrip().startswith("```")
        lines.append(line if in_block else change(line))
    return "".join(lines)


def in_repository(page):
    """Where a page of the site is in the repository."""
    return page if page in PAGES else "docs/" + page


def target_of(link, page):
    """The path in the repository that a link leads to; None for other links."""
    if "://" in link or link.startswith(("mailto:", "/")) or page.startswith(("api/", "sources/")):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(in_repository(page)), link))


def is_source(path):
    if path is None or path in PAGES or path.startswith(("docs/", "..")) or path.endswith(PICTURES):
        return False
    return (ROOT / path).is_file()


def page_of_source(path):
    return f"sources/{path}.md"


def text_of_source(path):
    language = LANGUAGES.get(pathlib.PurePath(path).suffix, "text")
    return f"---\nsearch: {{exclude: true}}\n---\n# {path}\n\n``````{language} linenums=\"1\"\n{(ROOT / path).read_text()}\n``````\n"


def sources_of(file):
    text = file.content_string
    linked_to = (target_of(link, file.src_uri) for _, link, _, _ in LINK.findall(text))
    return filter(is_source, [*linked_to, *NAMED.findall(text)])


def rewritten(found, page):
    start, link, anchor, end = found.groups()
    path = target_of(link, page)
    if path is None:
        return found[0]
    if is_source(path):
        site_path = page_of_source(path)
        anchor = re.sub(r"#L(\d+).*", r"#__codelineno-0-\1", anchor or "")
    elif path in PAGES:
        site_path = PAGES[path]
    else:
        site_path = path.removeprefix("docs/")
    return start + posixpath.relpath(site_path, posixpath.dirname(page) or ".") + (anchor or "") + end
