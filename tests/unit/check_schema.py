#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The JSON schema and the parser must agree: the examples and the good-* manifests of the fuzz corpus fit the schema,
the bad-shape-* ones do not. (bad-syntax-* are no JSON, bad-meaning-* need more than a schema.)"""
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(os.environ["CUDAFS_SOURCE_ROOT"])


def main():
    try:
        import jsonschema
    except ImportError:
        print("skipped: the Python package jsonschema is not installed")
        return 1 if os.environ.get("CUDAFS_MUST_RUN") == "1" else 77
    schema = json.loads((ROOT / "manifests/schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    corpus = ROOT / "tests/fuzz/corpus/manifest"
    good = sorted((ROOT / "manifests/examples").glob("*.json")) + sorted(corpus.glob("good-*"))
    bad = sorted(corpus.glob("bad-shape-*"))
    failures = 0
    for path, wanted in [(p, True) for p in good] + [(p, False) for p in bad]:
        error = next(validator.iter_errors(json.loads(path.read_text())), None)
        if (error is None) != wanted:
            failures += 1
            print(f"{path.name}: {error.message if error else 'fits the schema, but should not'}")
    print(f"{len(good)} that must fit, {len(bad)} that must not, {failures} wrong")
    return 1 if failures or len(good) < 6 or len(bad) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
