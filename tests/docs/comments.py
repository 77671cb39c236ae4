#!/usr/bin/env python3
"""Measures the comments of the public headers:  comments.py SOURCE

No sentence may be a fragment that begins with a preposition ("Of a spare.", "In pixels."): such a sentence needs a
verb, and best its subject first. A note behind a member ("// in pixels") is no sentence. The median of the words in a
sentence is at most 12, and 95 % of the sentences have at most 25.
"""
import doctest
import pathlib
import re
import statistics
import sys

MEDIAN, MOST = 12, 25  # words
PREPOSITIONS = """above after against among at before behind below beside besides between beyond by during except for from
in into like next of on out over per through to under until unlike upon via with within without""".split()
# Forms that are hardly ever nouns in these comments. Where a verb is missing here, begin with the subject, or add it.
VERBS = """is are was were has have had can cannot may must shall should will would could do does did need needs adapts
agree agrees allows ask asks becomes begin begins brings call calls combine combines compare compares computes contains
continues counts covers decides depends describes draw draws end ends exists falls fill fills follows get gets give gives
goes hold holds include includes keep keeps knows lasts learn learns leave leaves let lie lies make makes means moves names
pass passes place places publish publishes put puts reach read reads remains renames replaces return returns run runs say
says see sees send sends set sets show shows sleeps stand starts stay stays stop stops store stores take takes tell tells
throw throws train trains try tries wait waits write writes works"""
BEGINS = re.compile(rf"({'|'.join(word.capitalize() for word in PREPOSITIONS)})\b")
VERB = rf"\b({'|'.join(VERBS.split())})\b(?!\()"
RELATIVE = re.compile(rf"(?<!^In )\b(as|if|that|when|where|which|who|whom|whose)\b[^,;:.]*?{VERB}")
SENTENCES = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`*(\"\[])")
NOT_PROSE = re.compile(r"NOLINT|clang-format|-----")


def block_comments(text):
    """(line, text) of /* ... */, and the text without them."""
    found = []

    def take(comment):
        lines = (re.sub(r"^\s*\*?\s?", "", line).strip() for line in comment[1].split("\n"))
        found.append((text.count("\n", 0, comment.start()) + 1, " ".join(lines).strip()))
        return "\n" * comment[0].count("\n")

    return re.sub(r"/\*(.*?)\*/", take, text, flags=re.DOTALL), found


def comments_of(text):
    """(line, text) of comments. A comment of // goes on in the next line, if that has its // in the same column."""
    text, found = block_comments(text)
    column = -1
    for number, line in enumerate(text.split("\n"), 1):
        comment = re.search(r"(?:^|\s)//[/!]?<?\s?(.*)$", line)
        begins = line.find("//") if comment else -1
        if comment and begins == column and line.lstrip().startswith("//"):
            found[-1] = (found[-1][0], f"{found[-1][1]} {comment[1].strip()}")
        elif comment:
            found.append((number, comment[1].strip()))
        column = begins
    return found


def sentences_of(text):
    return [sentence for sentence in SENTENCES.split(text) if not NOT_PROSE.search(sentence)]


def words_of(sentence):
    return re.findall(r"[\w`'-]+", sentence)


def is_fragment(sentence):
    """Whether it begins with a preposition and has no verb, except in relative clauses.

    >>> [is_fragment(text) for text in ("Of a spare.", "In pixels.", "Of rules that publish after the step.")]
    [True, True, True]
    >>> [is_fragment(text) for text in ("With one host, it sends nothing.", "In that case it waits.", "A list of ranks.")]
    [False, False, False]
    """
    return bool(BEGINS.match(sentence)) and not re.search(VERB, RELATIVE.sub("", sentence))


def main(source):
    lengths, faults = [], ["the examples of is_fragment() do not hold"] if doctest.testmod().failed else []
    headers = sorted((pathlib.Path(source) / "include").rglob("*.h*"))
    for header in headers:
        for line, comment in comments_of(header.read_text()):
            for sentence in sentences_of(comment):
                if is_fragment(sentence):
                    faults.append(f"{header}:{line}: begins with a preposition and has no verb: {sentence[:90]}")
                if (count := len(words_of(sentence))) >= 3:
                    lengths.append(count)
    lengths.sort()
    median, most = statistics.median(lengths), lengths[int(0.95 * (len(lengths) - 1))]
    if median > MEDIAN:
        faults.append(f"the median is {median:.0f} words a sentence; {MEDIAN} at most; write shorter sentences")
    if most > MOST:
        faults.append(f"95 % of the sentences have at most {most} words; {MOST} at most; write shorter sentences")
    print("\n".join(faults))
    print(f"{len(headers)} headers, {len(lengths)} sentences of comments, {len(faults)} faults")
    print(f"words in a sentence: median {median:.0f}, 95 % at most {most}")
    return 1 if faults or not headers else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 2 else __doc__)
