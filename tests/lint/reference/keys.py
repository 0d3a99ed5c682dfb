"""The tables of keys in docs/reference/: key, type and default are those of a JSON schema, `what` is written by hand.

A comment before a table says whose keys it has: <!-- keys of fabric: rails[] -->, a schema of `railctl config schema`
and the way to the object. A name in capitals stands for any. A default that the schema lacks is in words, by hand.
"""

import json
import re

import pages

TABLE = re.compile(r"<!-- keys of (\w+)(?:: (\S+))? -->\n((?:\|.*\n)*)")
HEAD = ["| key | type | default | what |", "|---|---|---|---|"]


def types(schema, s=""):
    """What a value may be, in words, or with `s` what several are. "": it is another program's."""
    if schema is True:
        return ""
    if "anyOf" in schema:
        return " or ".join(filter(None, (types(one, s) for one in schema["anyOf"] if one != {"const": ""})))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{word}`" for word in schema.get("enum", [schema.get("const")]) if word is not None)
    kinds = schema.get("type", "any")
    of = {"array": schema.get("items"), "object": schema.get("additionalProperties")}
    span = f" {schema['minimum']}..{schema['maximum']}" if "maximum" in schema else f" from {schema.get('minimum')}"
    words = {"array": f"list{s}", "boolean": f"bool{s}", "any": "any"}
    return " or ".join(words.get(kind, kind + s) + (f" of {types(of[kind], 's')}" if of.get(kind) else "")
                       + (span if "minimum" in schema and kind in ("integer", "number") else "")
                       for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null")


def default(schema, required):
    """None: the schema does not say."""
    if schema is True:
        return ""
    given = [one["default"] for one in (schema, *schema.get("anyOf", [])) if "default" in one]
    value = [one if isinstance(one, str) else json.dumps(one) for one in given]
    return "required" if required else f"`{value[0]}`" if value else None


def variants(schema):
    """With what holds for its types only."""
    return [schema, *(one["then"] for one in schema.get("allOf", []))] if isinstance(schema, dict) else []


def inner(schema, step):
    for one in variants(schema):
        if step == "[]":
            yield from [one["items"]] if "items" in one else []
        elif step.isupper():
            yield from [*one.get("properties", {}).values(), one.get("additionalProperties")]
        else:
            yield from [one["properties"][step]] if one.get("properties", {}).get(step) else []


def objects(schema, way):
    """Those at `way` that have keys."""
    found = [schema]
    for step in re.findall(r"\w+|\[\]", way or ""):
        found = [there for place in found for there in inner(place, step)]
    return [one for place in found for one in variants(place) if one.get("properties")]


def every_object(schema):
    if isinstance(schema, dict):
        yield from [schema] if schema.get("properties") else []
        for key, of in schema.items():
            yield from every_object(of) if key != "if" else []
    elif isinstance(schema, list):
        for of in schema:
            yield from every_object(of)


def known_keys(places):
    """{key: (type, default)}"""
    found = {}
    for place in places:
        for key, of in place["properties"].items():
            found.setdefault(key, []).append((types(of), default(of, key in place.get("required", []))))
    for key, several in found.items():
        said = list(dict.fromkeys(type for type, _ in several if type not in ("", "any"))) or [several[0][0]]
        defaults = {default for type, default in several if type in said}
        found[key] = " or ".join(said), defaults.pop() if len(defaults) == 1 else None
    return found


def table(known, rows):
    """The rows of these keys: keys that are not there fall away, new ones come last."""
    left, lines = dict(known), list(HEAD)

    def line(names, by_hand, what):
        kind, usual = left[names[0]]
        by_hand = "" if by_hand == "required" else by_hand
        lines.append(f"| {', '.join(f'`{name}`' for name in names)} | {kind} | {by_hand if usual is None else usual} | {what} |"
                     .replace("  ", " "))
        for name in names:
            del left[name]

    for row in rows:
        names = [name for name in dict.fromkeys(row.names) if name in left]
        if names:
            line([name for name in names if left[name] == left[names[0]]], *row.cells[2:4])
    for name in list(left):
        line([name], "", "")
    return lines


def rewritten(text, schemas):
    def again(match):
        of, way, old = match.groups()
        if not objects(schemas[of], way):
            raise RuntimeError(f"the schema {of} has no object {way}")
        rows = [pages.Row.of(line) for line in old.splitlines()]
        return match[0].removesuffix(old) + "\n".join(table(known_keys(objects(schemas[of], way)), rows)) + "\n"

    return TABLE.sub(again, text)


def wrong(text, schemas):
    """Of {page: text}: what is not so, what is not described, and which objects have no table."""
    said, described = [], set()
    for page, there in text.items():
        for (of, way, old), (*_, new) in zip(TABLE.findall(there), TABLE.findall(rewritten(there, schemas)), strict=True):
            described |= {tuple(one["properties"]) for one in objects(schemas[of], way)}
            old, new = old.splitlines(), new.splitlines()
            said += [f"{page} lacks '{line}': tests/lint/reference/check.py BIN --write" for line in new if line not in old]
            said += [f"{page} has '{line}', which the schema says otherwise" for line in old if line not in new]
            for row in map(pages.Row.of, old[2:]):
                said += [f"{page}, {way or of}: {row.cells[0]} lacks its purpose"] if not row.cells[3] else []
                said += [f"{page}, {way or of}: {row.cells[0]} lacks the meaning of its absence"] if row.cells[1] and not row.cells[2] else []
    return said + [f"the schema {name} has an object without a table: {', '.join(one['properties'])}"
                   for name, schema in schemas.items() for one in every_object(schema) if tuple(one["properties"]) not in described]
