#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""options_gen.py OUT.c TOOL=FILE.tsv...: the option tables of the dispatcher as C, sorted by name."""
import sys

KINDS = ("flag", "value", "list", "optional", "attached", "glued")
ROLES = ("-", "arch", "code", "gencode", "file", "paths", "host", "link", "nvvm", "text", "forward", "report")


def rows(path):
    with open(path, encoding="ascii") as f:
        lines = [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]
    head = lines[0]
    for line in lines[1:]:
        row = dict(zip(head, line, strict=True))
        if row["kind"] not in KINDS or row["role"] not in ROLES:
            sys.exit(f"{path}: {row['long']} {row['short']}: unknown kind or role")
        yield row


def names(path):
    out = {}
    for row in rows(path):
        for form in ("long", "short"):
            name = row[form]
            if name == "-":
                continue
            kind = row["kind"]
            if form == "long" and kind in ("attached", "glued"):
                kind = "value"
            role = "NONE" if row["role"] == "-" else row["role"].upper()
            entry = (kind.upper(), role)
            if out.setdefault(name, entry) != entry:
                sys.exit(f"{path}: {name} stands there twice, differently")
    return sorted(out.items())


def main(argv):
    out = ['/* Generated from the option tables by options_gen.py. */', '#include "overlays/dispatch/options.h"', ""]
    for word in argv[1:]:
        tool, path = word.split("=", 1)
        table = names(path)
        out.append(f"static const struct cfs_option {tool}_options[] = {{")
        out += [f'  {{"{n}", CFS_KIND_{kind}, CFS_ROLE_{role}}},' for n, (kind, role) in table]
        out += ["};", f"const struct cfs_option_table cfs_{tool}_options = {{{tool}_options, {len(table)}}};", ""]
    with open(argv[0], "w", encoding="ascii") as f:
        f.write("\n".join(out))


main(sys.argv[1:])
