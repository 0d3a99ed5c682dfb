#!/usr/bin/env python3
"""check.py BIN [--write] - docs/reference/ has every option that there is, and none that there is not.

Held against: the JSON schemas that the programs of BIN print (keys, types, defaults), their --help, and the sources
(defaults in words, variables, paths, names in Kubernetes, fields of CRDs). The documents' examples of fabric.json
are given to railctl. Then a fault of each class is planted into the pages, and has to be found.

--write makes the tables of keys and those of docs/reference/programs.md anew.
exit status: 0, or 1 with what is wrong
"""

import json
import pathlib
import re
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True  # the sources are not the place for it
import keys
import pages
import programs
import sources
from planted import PLANTED

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs/reference"


def same_names(where, listed, there):
    """What one of the two lacks."""
    wrong = [f"{where} lacks `{name}`" for name in sorted(set(there) - set(listed))]
    wrong += [f"{where} has `{name}`, which is not there" for name in sorted(set(listed) - set(there))]
    return wrong + [f"{where} has `{name}` twice" for name in sorted({n for n in listed if listed.count(n) > 1})]


def defaults_wrong(text, source):
    """Those that are in words, because the schema has none."""
    found = {key: source.default(*place) for key, place in sources.DEFAULTS.items()}
    wrong = [f"{sources.DEFAULTS[key][0]}: the default of {key[2]} is not found by {sources.DEFAULTS[key][1]}"
             for key, default in found.items() if not default]
    for (page, section, name), default in found.items():
        rows = [row for row in pages.sections(text[page]).get(section, []) if name in row.names]
        if not rows or not re.search(rf"(?<![\w.]){re.escape(default)}(?![\w.])", rows[0].cells[2]):
            wrong.append(f"{page}, {section}: the default of `{name}` is {default}")
    return wrong


def lists_wrong(text, source, schemas):
    """Tables whose names are those of a list in the sources."""
    def listed(page, section):
        return pages.names(pages.sections(text[page]).get(section, []))

    wrong = []
    of_railhead = set(schemas["network"]["properties"]["runtimeConfig"]["properties"])
    for page, section, there in [("README.md", "Variables of the environment", source.variables()),
                                 ("cni.md", "Variables of the environment", source.cni_variables()),
                                 ("cni.md", "CNI_ARGS", source.cni_args()),
                                 ("cni.md", "`runtimeConfig`", source.runtime_config(of_railhead))]:
        column = [row.names[0] for row in pages.sections(text[page]).get(section, []) if row.names]
        wrong += same_names(f"{page}, {section}", column, there)
    codes = [row.cells[0] for row in pages.sections(text["cni.md"]).get("Error codes", [])]
    wrong += same_names("cni.md, Error codes", codes, source.error_codes())
    for kind, fields in source.crd_fields().items():
        wrong += same_names(f"kubernetes.md, {kind}", listed("kubernetes.md", kind), fields)
    lacking = [name for name in source.kubernetes_names() if f"`{name}`" not in text["kubernetes.md"]]
    return wrong + [f"kubernetes.md lacks `{name}`" for name in sorted(lacking)]


def paths_wrong(text, source):
    """The paths of the sources are in the table of docs/reference/kernel-interfaces.md, and the other way round."""
    rows = pages.sections(text["kernel-interfaces.md"]).get("Interfaces: files, formats, names", [])
    spans = [name for row in rows for cell in row.cells for name in pages.CODE.findall(cell)]
    listed = {re.split(r"[A-Z*{]", name)[0] for name in spans if name.startswith("/")}
    there = source.paths()
    wrong = [f"kernel-interfaces.md lacks `{path}`" for path in sorted(there)
             if not any(name.startswith(path.rstrip("/")) or path.startswith(name) for name in listed)]
    return wrong + [f"kernel-interfaces.md has `{name}`, which is not there" for name in sorted(listed)
                    if not any(name.startswith(path.rstrip("/")) or path.startswith(name) for path in there)]


def examples(files):
    """[(file, fabric)] of the documents' examples."""
    found = []
    for file in files:
        for block in re.findall(r"^ *```json\n(.*?)^ *```", file.read_text(encoding="utf-8"), re.S | re.M):
            if '"rails"' in block and '"version"' in block:
                found.append((file.relative_to(ROOT), json.loads(textwrap.dedent(block))))
    return found


def examples_wrong(run):
    found = examples([ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))])
    wrong = [f"{file}: {message}" for file, fabric in found for message in run.errors(fabric)]
    return wrong if len(found) >= 3 else [*wrong, f"only {len(found)} examples of fabric.json are found"]


def all_wrong(text, source, schemas, generated):
    wrong = keys.wrong(text, schemas) + defaults_wrong(text, source) + lists_wrong(text, source, schemas)
    wrong += paths_wrong(text, source)
    if generated not in text["programs.md"]:
        wrong.append("programs.md is not what --help says: tests/lint/reference/check.py BIN --write")
    return wrong


def not_found(text, *known):
    """The planted faults that nothing was said of."""
    missed = []
    for page, old, new, word in PLANTED:
        faulty = text | {page: text[page].replace(old, new, 1)}
        if faulty[page] == text[page]:
            missed.append(f"planted.py: nothing planted into {page}: there is no '{old}'")
        elif not any(word in said for said in all_wrong(faulty, *known)):
            missed.append(f"planted.py: '{new}' in {page} is not found")
    return missed


def main():
    binaries, write = pathlib.Path(sys.argv[1]).resolve(), "--write" in sys.argv[2:]
    text = {file.name: file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.md"))}
    with tempfile.TemporaryDirectory() as root:
        run = programs.Programs(binaries, root)
        schemas = {name: run.schema(name) for name in ("fabric", "network", "topology")}
        if write:
            text["programs.md"] = programs.rewritten(text["programs.md"], run)
            for page in FOLDER.glob("*.md"):
                page.write_text(keys.rewritten(text[page.name], schemas), encoding="utf-8")
            return 0
        known = sources.Sources(ROOT), schemas, programs.tables(run)
        wrong = examples_wrong(run)
    wrong = wrong or all_wrong(text, *known) or not_found(text, *known)
    print("\n".join(wrong), file=sys.stderr)
    if not wrong:
        print(f"the tables are those of the programs; {len(PLANTED)} planted faults are found")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
