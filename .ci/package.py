"""Lists what is in the released binary: components with versions, licences and checksums (CycloneDX), and their licence texts. See .ci/package."""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tomllib
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "dosmos-cli"
OWN = "MIT OR Apache-2.0"
AUTHORS = "The dosmos authors"
# One line of `cargo tree --prefix depth`: how deep, name, version, and whatever Cargo adds in brackets.
LINE = re.compile(r"(\d+)([A-Za-z0-9_-]+) v(\S+)(?: \(.*\))?")
LICENCE_FILE = re.compile(r"(?i)(licen[cs]e|copying|copyright|notice|unlicense)")
# zstd may be used under either of two licences: here it is the BSD licence, in the file LICENSE beside this one.
NOT_CHOSEN = "zstd/COPYING"


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def tree(text):
    """The packages that `cargo tree --prefix depth` prints, as (name, version), each with what it depends on."""
    graph, above = {}, []
    for line in filter(None, text.splitlines()):
        found = LINE.fullmatch(line)
        if not found:
            raise ValueError(f"cargo tree prints a line of unknown form: {line!r}")
        depth, key = int(found[1]), (found[2], found[3])
        graph.setdefault(key, set())
        del above[depth:]
        if above:
            graph[above[-1]].add(key)
        above.append(key)
    return graph


def edges(kinds, target):
    return tree(cargo("tree", "--locked", "--package", PACKAGE, "--edges", kinds, "--target", target, "--prefix", "depth"))


def described(target):
    """What the manifests say, and the checksums of the lock file, by (name, version)."""
    metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1", "--filter-platform", target))
    packages = {(p["name"], p["version"]): p for p in metadata["packages"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    sums = {(p["name"], p["version"]): p["checksum"] for p in lock["package"] if "checksum" in p}
    return packages, sums


def expression(licence):
    """A licence as SPDX writes it: old manifests have a slash for OR."""
    return re.sub(r"\s*/\s*", " OR ", licence)


def reference(key):
    return " ".join(key)


def component(key, package, checksum, shipped):
    made = {"type": "library", "bom-ref": reference(key), "name": key[0], "version": key[1],
            "scope": "required" if shipped else "excluded"}
    if package["description"]:
        made["description"] = " ".join(package["description"].split())
    if checksum:
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["license"]:
        made["licenses"] = [{"expression": expression(package["license"])}]
    # The project's own crates are in no registry: a package URL would be that of another's crate.
    if package["source"]:
        made["purl"] = f"pkg:cargo/{key[0]}@{key[1].replace('+', '%2B')}"
        if (package["repository"] or "").startswith("https://"):
            made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def contained(name, version, description, licence, purl):
    # No reference that a crate of the same name could have.
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "scope": "required", "description": description,
            "licenses": [{"expression": licence}], "purl": purl}


def compiled_in(graph, rustc):
    """What is in the binary without being a package of Cargo, with the package that brings it: the standard library, zstd."""
    for key in graph:
        zstd = re.search(r"\+zstd\.(.+)$", key[1])
        if key[0] == PACKAGE:
            yield key, contained("rust-std", rustc, "The Rust standard library, without a list of what it contains", OWN,
                                 f"pkg:generic/rust-std@{rustc}")
        elif key[0] == "zstd-sys" and zstd:
            yield key, contained("zstd", zstd[1], "The C library that zstd-sys contains and builds", "BSD-3-Clause",
                                 f"pkg:github/facebook/zstd@v{zstd[1]}")


def sbom(target, commit, binary):
    graph = edges("normal,build", target)
    shipped = edges("normal,no-proc-macro", target)
    packages, sums = described(target)
    tools = {t: subprocess.run([t, "--version"], check=True, capture_output=True, text=True).stdout.split()[1] for t in ("cargo", "rustc")}
    (product,) = [k for k in graph if k[0] == PACKAGE]
    extra = list(compiled_in(graph, tools["rustc"]))
    depends = {reference(k): sorted(map(reference, below)) for k, below in graph.items()}
    for key, made in extra:
        depends[reference(key)] = sorted([*depends[reference(key)], made["bom-ref"]])
        depends[made["bom-ref"]] = []
    main = {"type": "application", "bom-ref": reference(product), "name": "dosmos", "version": product[1],
            "description": "Distributed shared memory with built-in monitoring", "licenses": [{"expression": OWN}],
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(binary.read_bytes()).hexdigest()}]}
    components = [component(k, packages[k], sums.get(k), k in shipped) for k in graph if k != product]
    when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "lifecycles": [{"phase": "build"}],
            "tools": {"components": [{"type": "application", "name": n, "version": v} for n, v in sorted(tools.items())]},
            "authors": [{"name": AUTHORS}],
            "component": main,
            "properties": [{"name": "dosmos:commit", "value": commit}, {"name": "dosmos:target", "value": target}],
        },
        "components": sorted([*components, *(made for _, made in extra)], key=lambda c: c["bom-ref"]),
        "dependencies": [{"ref": ref, "dependsOn": below} for ref, below in sorted(depends.items())],
    }
    # The same content, the same number.
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}"
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def licence_texts(folder):
    """Texts of the licence files of a package, with their paths in it."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).as_posix()
        if path.is_file() and LICENCE_FILE.match(path.name) and inside != NOT_CHOSEN:
            yield inside, path.read_text(errors="replace")


def notices(target):
    """The licences of everything that is in the binary, each text once with the packages that it comes from."""
    packages, _ = described(target)
    others = [k for k in sorted(edges("normal,no-proc-macro", target)) if packages[k]["source"]]
    texts, lines = {}, []
    for key in others:
        package = packages[key]
        folder = pathlib.Path(package["manifest_path"]).parent
        found = list(licence_texts(folder))
        for inside, text in found:
            # Copies often differ in nothing but line breaks.
            _, where = texts.setdefault(" ".join(text.split()), (text, []))
            where.append(f"{reference(key)}: {inside}")
        missing = "" if found else "; the package has no file with the text"
        lines.append(f"  {reference(key)}: {expression(package['license'] or 'not stated')}{missing}")
    parts = [
        "dosmos contains the following packages, and the Rust standard library (MIT OR Apache-2.0, by the Rust project).\n"
        "zstd, in zstd-sys, is used under its BSD licence.\n",
        "\n".join(lines) + "\n",
        *("\n".join([*where, "", text.strip("\n")]) + "\n" for text, where in texts.values()),
    ]
    return ("\n" + "-" * 80 + "\n\n").join(parts)


def copyright():
    """The file copyright of the Debian package."""
    mit = (ROOT / "LICENSE-MIT").read_text().strip().splitlines()
    holder = next(line for line in mit if line.startswith("Copyright"))
    text = "\n".join(f" {line}" if line else " ." for line in mit[mit.index(holder) + 2:])
    return f"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: dosmos
Comment: The licences of what is compiled in are in THIRD-PARTY.gz.

Files: *
Copyright: {holder.removeprefix("Copyright (c) ")}
License: Expat or Apache-2.0

License: Expat
{text}

License: Apache-2.0
 On Debian systems, the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["sbom", "notices", "copyright"])
    parser.add_argument("--target")
    parser.add_argument("--commit")
    parser.add_argument("--binary", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    given = parser.parse_args()
    match given.what:
        case "sbom":
            text = sbom(given.target, given.commit, given.binary)
        case "notices":
            text = notices(given.target)
        case _:
            text = copyright()
    given.output.write_text(text)


if __name__ == "__main__":
    main()
