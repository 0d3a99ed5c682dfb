"""The programs, and docs/reference/programs.md: its tables, made of what --help prints."""

import json
import os
import pathlib
import re
import subprocess

BEGIN = "<!-- from --help, by `tests/lint/reference/check.py BIN --write` -->"
END = "<!-- end -->"
OPTION = re.compile(r"(?P<name>\S+?)(?: (?P<type>[A-Z]+))??(?::(?P<check>\{[^}]*\}|\w+ in \[[^\]]*\]))?"
                    r"(?:=(?P<default>\S*))?(?P<many> \.\.\.)?(?P<required> REQUIRED)?"
                    r"(?: Needs: (?P<with>\S+))?(?: Excludes: (?P<not>.*))?")
EVERYWHERE = {"-h,--help", "--help-all", "--version"}
COLUMN = 30  # where CLI11 begins descriptions


class Programs:
    """Runs them below a root of its own, so that they see nothing of this machine."""

    def __init__(self, binaries, root):
        self.binaries, self.root = pathlib.Path(binaries), pathlib.Path(root)
        self.environment = {"PATH": os.environ["PATH"], "RAILHEAD_ROOT": str(self.root)}

    def run(self, *command):
        return subprocess.run([self.binaries / command[0], *command[1:]], env=self.environment, capture_output=True,
                              text=True, timeout=60, check=False)

    def schema(self, of):
        return json.loads(self.run("railctl", "config", "schema", of).stdout)

    def errors(self, fabric):
        """What railctl finds wrong with it."""
        (self.root / "fabric.json").write_text(json.dumps(fabric))
        answer = json.loads(self.run("railctl", "config", "check", "/fabric.json", "-o", "json").stdout)
        return [error["message"] for error in answer.get("errors", [])]


COMMANDS = ("Subcommands", "Look", "Act", "Prove", "Set up")  # headings above commands
# What every command may end with; its section has what differs.
STATUSES = {"0": "done", "1": "it failed", "2": "wrong command line"}


def blocks(text):
    """{heading: [(names, description)]} of a --help, and what stands before and after them."""
    found, heading, rest = {}, "", []
    for line in text.splitlines():
        if line.rstrip(":") in ("Options", "Positionals", *COMMANDS) and line.endswith(":"):
            heading = line[:-1]
            found[heading] = []
        elif heading and line.startswith(" " * COLUMN) and found[heading]:
            names, said = found[heading][-1]
            found[heading][-1] = (names, f"{said} {line.strip()}".strip())
        elif heading and line.startswith("  "):
            names, gap, said = line.strip().partition("  ")
            if not gap and line[COLUMN - 1:COLUMN] == " " and not OPTION.fullmatch(names):  # it fills its column
                names, said = line[:COLUMN].strip(), line[COLUMN:]
            found[heading].append((names, said.strip()))
        elif line:
            heading = ""
            rest.append(line)
    return found, rest


def statuses(rest):
    """{status: meaning} of the lines below "Exit status:"."""
    found = []
    for line in rest[rest.index("Exit status:") + 1:] if "Exit status:" in rest else []:
        parts = re.fullmatch(r"  (\d)   (.*)", line)
        if parts:
            found.append([parts[1], parts[2]])
        else:
            found[-1][1] += f" {line.strip()}"
    return dict(found)


def option_row(names, said):
    parts = OPTION.fullmatch(names)
    if not parts:
        raise RuntimeError(f"this option of --help is not understood: {names}")
    value = f"`{parts['type']}`" if parts["type"] else ""
    if parts["check"]:
        span = re.search(r"\[(\S+) - (\S+)\]", parts["check"])
        words = ", ".join(f"`{word}`" for word in parts["check"].strip("{}").split(","))
        value = f"{span[1]}..{span[2]}" if span else words
    if parts["many"]:
        value += ", one or more"
    default = "required" if parts["required"] else f"`{parts['default']}`" if parts["default"] else ""
    said = said.replace("|", "\\|").replace("<", "\\<")
    if parts["with"]:
        said += f"; only with `{parts['with']}`"
    if parts["not"]:
        said += f"; not with {', '.join(f'`{other}`' for other in parts['not'].split())}"
    return f"| `{parts['name']}` | {value} | {default} | {said} |"


def command_section(name, text):
    found, rest = blocks(text)
    usage = next(line for line in rest if line.startswith("Usage: "))
    usage = re.sub(r"^Usage: (\S*/\w+)?", "", usage.replace("[OPTIONS]", "").replace("[SUBCOMMAND]", "")).split()
    command = name.split()
    arguments = [word for word in usage if word not in command]
    said = " ".join(rest[:rest.index(next(line for line in rest if line.startswith("Usage: ")))])
    lines = [f"### {name}", "", f"`{' '.join(command + arguments)}`: {said.removeprefix(name + ': ').rstrip('.')}."]
    options = [option for heading in ("Positionals", "Options") for option in found.get(heading, [])
               if option[0] not in EVERYWHERE]
    if options:
        lines += ["", "| option | value | default | what |", "|---|---|---|---|"]
        lines += [option_row(*option) for option in options]
    own = "; ".join(f"{status} {meaning}" for status, meaning in statuses(rest).items() if STATUSES.get(status) != meaning)
    return lines + (["", f"Exit status: {own}."] if own else [])


def walk(programs, command):
    """The sections of a command, or of those below it."""
    text = programs.run(*command, "--help").stdout
    found = blocks(text)[0]
    inner = [name for heading in COMMANDS for name, _ in found.get(heading, [])]
    # "NAME, ALIAS"
    below = [line for name in inner for line in walk(programs, [*command, re.split("[ ,]", name)[0]])]
    # A command whose subcommands are optional does something itself.
    if inner and "[SUBCOMMAND]" not in text:
        return below
    return [*command_section(" ".join(command), text), "", *below]


def status_table(programs):
    """Of all programs, as railctl --help has them: "MEANING (PROGRAMS)"."""
    rows = ["| status | meaning | of |", "|---|---|---|"]
    for status, meaning in statuses(blocks(programs.run("railctl", "--help").stdout)[1]).items():
        meaning, _, of = meaning.rstrip(")").partition(" (")
        rows.append(f"| {status} | {meaning} | {of or 'all programs'} |")
    return rows


def tables(programs):
    """What stands between BEGIN and END."""
    lines = ["### Exit statuses", "", *status_table(programs), "", *walk(programs, ["railheadd"]), *walk(programs, ["railctl"])]
    return "\n".join(lines).strip()


def rewritten(page, programs):
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables(programs)}\n\n{END}{after}"
