#!/usr/bin/python3
"""Tables of bench/slow_links.sh:  bench/slow_links.py DIR [--steps-ms FILE]

DIR has its results. For each method and link: the milliseconds of a step; the speed, which is the time of a step without
exchange ÷ that with it; and the part of the time that is in the paced steps themselves. The last one does not depend on
what else the machine does meanwhile. FILE gets the milliseconds of a step by model, link and rule, which
bench/local_steps.py --steps-ms reads.
"""
import argparse
import json
import pathlib

LINKS = {"unlimited": "unlimited", "100mbit": "100 Mbit/s, 20 ms", "10mbit": "10 Mbit/s, 100 ms"}
MODELS = ("images", "text")
STEP_MS = 40


def read(directory):
    """{group: {link: {method: row}}}"""
    found = {}
    for file in sorted(pathlib.Path(directory).glob("*.json")):
        group, link, method = file.name.removesuffix(".json").split(".")
        found.setdefault(group, {}).setdefault(link, {})[method] = json.loads(file.read_text())[0]
    return found


def text(row, alone_ms):
    return f"{row['round_ms']:.1f} | {alone_ms / row['round_ms']:.2f} | {row['compute_ms'] / row['round_ms']:.3f}"


def speeds(by_link, alone_ms):
    methods = sorted({method for rows in by_link.values() for method in rows})
    links = [link for link in LINKS if link in by_link]
    print("| method | " + " | ".join(f"{LINKS[link]}: ms | speed | in steps" for link in links) + " |")
    print("|---|" + "---|---|---|" * len(links))
    for method in methods:
        cells = [text(by_link[link][method], alone_ms[link]) if method in by_link[link] else "– | – | –" for link in links]
        print(f"| {method} | " + " | ".join(cells) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--steps-ms", type=pathlib.Path)
    options = parser.parse_args()
    found = read(options.directory)
    alone = {link: rows["none"]["round_ms"] for link, rows in found.get("paced", {}).items() if "none" in rows}
    for group, by_link in found.items():
        print(f"{group}\n")
        speeds(by_link, {link: alone.get(link, STEP_MS) for link in LINKS})
    if options.steps_ms:
        steps = {model: {LINKS[link]: {method: row["round_ms"] for method, row in found[model][link].items()}
                         for link in LINKS if link in found[model]} for model in MODELS if model in found}
        options.steps_ms.write_text(json.dumps(steps, indent=2) + "\n")


if __name__ == "__main__":
    main()
