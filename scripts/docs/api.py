"""The API reference: a page for each module, from Doxygen's XML and the comment that opens each header."""
import html
import pathlib
import re
from xml.etree import ElementTree

HIDDEN = re.compile(r"\bdetail\b")
INLINE = {"computeroutput": ("`", "`"), "emphasis": ("*", "*"), "bold": ("**", "**")}


def pages(xml, include):
    """Markdown by path; the first is the list of modules."""
    entities = sorted(read(xml), key=lambda entity: (entity.file, entity.line))
    places = {entity.id: f"{module_of(entity.file)}.md#{entity.id}" for entity in entities}
    headers = sorted(path.relative_to(include).as_posix() for path in include.rglob("*.h*"))
    modules = {}
    for header in headers:
        modules.setdefault(module_of(header), []).append(header)
    result = {"api/index.md": index(modules, include)}
    for module, its_headers in modules.items():
        text = [f"# {module}\n"]
        for header in its_headers:
            text.append(header_text(header, include, [e for e in entities if e.file == header], places))
        result[f"api/{module}.md"] = "\n".join(text)
    return result


def module_of(header):
    """fast/worker/worker.hpp belongs to worker, and fast/fast.hpp to fast."""
    parts = header.split("/")
    return parts[1] if len(parts) > 2 else "fast"


class Entity:
    """A class, or a function, an enumeration or a type of a namespace."""

    def __init__(self, element, file, line):
        self.element, self.file, self.line, self.id = element, file, line, element.get("id")


def read(xml):
    for path in sorted(xml.glob("*.xml")):
        for compound in ElementTree.parse(path).getroot().iter("compounddef"):
            kind = compound.get("kind")
            if kind in ("class", "struct") and is_shown(compound, "compoundname"):
                yield located(compound)
            elif kind in ("namespace", "file"):
                for member in compound.iter("memberdef"):
                    if is_shown(member, "qualifiedname") and (kind == "file") == (member.find("qualifiedname") is None):
                        yield located(member)


def is_shown(element, name):
    public = element.get("prot") == "public" and element.get("kind") != "define"
    return public and "@" not in element.findtext(name, "") and not HIDDEN.search(element.findtext(name, ""))


def located(element):
    place = element.find("location")
    return Entity(element, place.get("file").removeprefix("include/"), int(place.get("line")))


def index(modules, include):
    rows = "\n".join(f"| [{module}]({module}.md) | {', '.join(f'`{pathlib.PurePath(h).name}`' for h in headers)} |"
                     for module, headers in modules.items())
    return f"# API\n\n{opening(include / 'fast/fast.hpp')}\n\n| module | headers |\n|---|---|\n{rows}\n"


def opening(header):
    """The comment at the top of a header. Its indented lines are code."""
    lines, code = [], False
    for line in header.read_text().splitlines():
        if not line.startswith("//"):
            break
        text = line[2:].removeprefix(" ")
        if text.startswith("  ") and not code:
            lines += ["", "```cpp"]
            code = True
        elif code and text and not text.startswith("  "):
            lines += ["```", ""]
            code = False
        lines.append(text.removeprefix("  ") if code else escaped(text))
    return "\n".join(lines + ["```"] if code else lines)


def header_text(header, include, entities, places):
    if header.endswith(".h"):  # C: its comments are not Doxygen's
        return f"\n## {header}\n\n```c\n{(include / header).read_text()}```\n"
    parts = [f"\n## {header}\n", opening(include / header), ""]
    in_class = False
    for entity in entities:
        is_class = entity.element.tag == "compounddef"
        if in_class and not is_class:
            parts.append("### Functions and types\n")
        in_class = is_class
        parts.append(class_text(entity, places) if is_class else member_text(entity.element, places, f"{{ #{entity.id} }}"))
    return "\n".join(parts)


def class_text(entity, places):
    element = entity.element
    name = element.findtext("compoundname")
    parts = [f"\n### {element.get('kind')} {escaped(name)} {{ #{entity.id} }}\n"]
    bases = [base.text for base in element.findall("basecompoundref") if base.get("prot") == "public"]
    if bases:
        parts.append("Derives from " + ", ".join(f"`{base}`" for base in bases) + ".\n")
    parts.append(description(element, places) + "\n")
    public = (member for member in element.iter("memberdef") if member.get("prot") == "public")
    members = [member for member in public if member.get("kind") != "friend" and not is_plain(member)]
    members.sort(key=lambda member: int(member.find("location").get("line")))
    return "\n".join(parts + [member_text(member, places) for member in members])


def is_plain(member):
    """What a reader expects without being told: "~Graph() = default"."""
    return member.findtext("argsstring", "").endswith(("=default", "=delete")) and not description(member, {})


def member_text(member, places, anchor=""):
    if member.get("kind") == "enum":
        return enum_text(member, places, anchor)
    text = description(member, places).replace("\n", "\n    ")
    return f"``#!cpp {signature(member)}``{anchor}\n" + (f":   {text}\n" if text else "")


def enum_text(member, places, anchor):
    rows = []
    for value in member.findall("enumvalue"):
        rows.append(f"    - `{value.findtext('name')}`" + (f": {text}" if (text := description(value, places)) else ""))
    text = description(member, places).replace("\n", "\n    ") or "Values:"
    name = member.findtext("qualifiedname", member.findtext("name")).removeprefix("fast::")
    return f"``#!cpp enum class {name}``{anchor}\n:   {text}\n\n" + "\n".join(rows) + "\n"


def signature(member):
    kind = member.get("kind")
    name = member.findtext("qualifiedname", member.findtext("name")) if is_free(member) else member.findtext("name")
    name = name.removeprefix("fast::")
    kind_of_type = plain(member.find("type"))
    if kind == "typedef":
        return f"using {name} = {kind_of_type}"
    template = member.find("templateparamlist")
    start = ""
    if template is not None:
        start = "template <" + ", ".join(" ".join(filter(None, (plain(p.find("type")), p.findtext("declname"))))
                                         for p in template.findall("param")) + "> "
    arguments = member.findtext("argsstring", "") if kind == "function" else ""
    initial = plain(member.find("initializer")) if kind == "variable" else ""
    return tidy(f"{start}{kind_of_type} {name}{arguments} {initial}")


def is_free(member):
    return member.get("id").startswith("namespace")


def tidy(code):
    code = re.sub(r"\s+", " ", code).strip()
    code = re.sub(r"< ", "<", re.sub(r" >", ">", code))
    code = re.sub(r" ([&*]+) ?(?=\w)", r"\1 ", code)
    return re.sub(r"\s*(?<!operator)(?<![<>=!])=(?!=)\s*", " = ", code)


def plain(element):
    return "" if element is None else "".join(element.itertext()).strip()


def description(element, places):
    parts = []
    for tag in ("briefdescription", "detaileddescription"):
        for child in element.find(tag) if element.find(tag) is not None else []:
            if text := paragraph(child, places).strip():
                parts.append(text)
    return "\n\n".join(parts)


def paragraph(element, places):
    """Doxygen's markup as Markdown."""
    if element.tag in ("itemizedlist", "orderedlist"):
        return "\n".join("- " + "".join(paragraph(p, places) for p in item).strip() for item in element)
    if element.tag in ("programlisting", "verbatim"):
        return "\n```cpp\n" + "".join(element.itertext()) + "\n```\n"
    if element.tag == "ref" and element.get("refid") in places:
        return f"[{escaped(plain(element))}]({places[element.get('refid')]})"
    start, end = INLINE.get(element.tag, ("", ""))
    keep = str if start == "`" else escaped
    inner = keep(element.text or "") + "".join(paragraph(child, places) + keep(child.tail or "") for child in element)
    return start + inner + end


def escaped(text):
    return re.sub(r"([\\`*_\[\]])", r"\\\1", html.escape(text, quote=False))
