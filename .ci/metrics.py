"""Checks what `dosmos metrics` writes: a real Prometheus scrapes a demo and a cluster with certificates, and answers every query of
the dashboard; the models that Grafana publishes read the dashboard. See .ci/interchange."""

import contextlib
import http
import json
import math
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

DASHBOARD = pathlib.Path("docs/grafana/dosmos.json")
# How long anything may take that is waited for.
LIMIT = 60
WIDTH = 24

SECURED = """
name = "secured"

[defaults]
listen = "127.0.0.1:0"

[tls]
ca = "tls/{name}/ca.pem"
certificate = "tls/{name}/certificate.pem"
key = "tls/{name}/key.pem"

[[group]]
name = "north"

[[emp]]
name = "emp0"

[[mp]]
name = "mp0"
group = "north"
emp = "emp0"

[[ap]]
name = "ap0"
mp = "mp0"
"""


def tried(*args):
    return subprocess.run([sys.argv[1], *map(str, args)], capture_output=True, text=True)


def dosmos(*args):
    done = tried(*args)
    assert done.returncode == 0, f"dosmos {args}: {done.stderr}"
    return done.stdout


def refused(*args):
    done = tried(*args)
    assert done.returncode == 2 and not done.stdout, f"dosmos {args}: {done}"
    return done.stderr


@contextlib.contextmanager
def running(*command):
    """A program that is ended at the end, whatever happens."""
    log = tempfile.TemporaryFile("w+")
    process = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def said():
        log.seek(0)
        return log.read()

    process.said = said
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(what, condition, *processes, instead=lambda: ""):
    """Waits for something, as long as what it depends on is running; otherwise says what there is instead."""
    end = time.monotonic() + LIMIT
    while not condition():
        for process in processes:
            assert process.poll() is None, f"{what}: {process.args} ended: {process.said()}"
        assert time.monotonic() < end, f"{what}: not within {LIMIT} s {instead()}"
        time.sleep(0.1)


class Prometheus:
    """One that runs, asked over HTTP."""

    def __init__(self, port):
        self.at = f"http://127.0.0.1:{port}/api/v1/"

    def ask(self, path, **arguments):
        url = self.at + path + "?" + urllib.parse.urlencode(arguments)
        try:
            with urllib.request.urlopen(url, timeout=LIMIT) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as e:
            if e.code == http.HTTPStatus.SERVICE_UNAVAILABLE:
                return None  # It is starting.
            raise AssertionError(f"{arguments}: {e.read().decode()}") from e
        except OSError:
            return None  # It is starting.

    def up(self, processes):
        """Whether exactly these processes are scraped."""
        found = self.ask("query", query="up == 1") or {"result": []}
        return {s["metric"]["process"] for s in found["result"]} == processes

    def trouble(self):
        """What went wrong in the last scrapes."""
        found = self.ask("targets") or {"activeTargets": []}
        return [t["lastError"] for t in found["activeTargets"]]


@contextlib.contextmanager
def prometheus(config, work, *others):
    """Prometheus with a configuration that scrapes each second."""
    every = "scrape_interval: 5s"
    assert config.count(every) == 1, config
    file = work / "prometheus.yml"
    file.write_text(config.replace(every, "scrape_interval: 1s"))
    check_config(file)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with running("prometheus", f"--config.file={file}", f"--storage.tsdb.path={work}/data", "--log.level=warn",
                 f"--web.listen-address=127.0.0.1:{port}") as process:
        server = Prometheus(port)
        until("Prometheus answers", lambda: server.ask("query", query="1"), process, *others)
        yield server


def check_config(file):
    done = subprocess.run(["promtool", "check", "config", file], capture_output=True, text=True)
    assert done.returncode == 0, f"{file.read_text()}\n{done.stdout}{done.stderr}"


def panels_of(board):
    """All panels but rows, which only have a title."""
    shown = [p for p in board["panels"] if p["type"] != "row"]
    assert all(p["title"] and not p["panels"] for p in board["panels"] if p["type"] == "row")
    return shown


def check_structure(board):
    idents = [p["id"] for p in board["panels"]]
    assert len(set(idents)) == len(idents), "two panels have one number"
    taken = {}
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= WIDTH, panel["title"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                other = taken.setdefault((x, y), panel["title"])
                assert other == panel["title"], f"{other} and {panel['title']} overlap"
    source = {"type": "prometheus", "uid": "${datasource}"}
    titles = set()
    for panel in panels_of(board):
        title = panel["title"]
        assert title and title not in titles, f"{title} is not the name of one panel"
        titles.add(title)
        assert panel["description"] and panel["fieldConfig"]["defaults"]["unit"], title
        assert panel["datasource"] == source and panel["targets"], title
        letters = [t["refId"] for t in panel["targets"]]
        assert len(set(letters)) == len(letters), title
        for target in panel["targets"]:
            assert target["datasource"] == source and 'run=~"$run"' in target["expr"], title
    names = [v["name"] for v in board["templating"]["list"]]
    assert names == ["datasource", "run", "process"], names


def lost(ours, read, path=""):
    """What the models of Grafana do not know of a dashboard."""
    if isinstance(ours, dict):
        for key, value in ours.items():
            if value in (None, [], {}):
                continue
            if not isinstance(read, dict) or key not in read:
                yield f"{path}.{key}"
            else:
                yield from lost(value, read[key], f"{path}.{key}")
    elif isinstance(ours, list):
        if not isinstance(read, list) or len(ours) != len(read):
            yield path
            return
        for i, (a, b) in enumerate(zip(ours, read)):
            yield from lost(a, b, f"{path}[{i}]")
    elif ours != read:
        yield f"{path}: {ours!r} became {read!r}"


def check_models(board):
    """Grafana's models read the dashboard, and write the same again."""
    register_default_plugins()
    read = Dashboard.from_json(board)
    again = json.loads(JSONEncoder().encode(read))
    unknown = list(lost(board, again))
    assert not unknown, unknown


def filled(query):
    """A query as Grafana sends it with everything chosen."""
    query = query.replace("$__rate_interval", "5s").replace("$run", ".*").replace("$process", ".*")
    assert "$" not in query, query
    return query


def queries_of(board):
    for panel in panels_of(board):
        for target in panel["targets"]:
            yield panel["title"], filled(target["expr"])


def check_queries(board, server, run, processes, demo):
    """Every name in a query exists, every query has an answer, and the variables have the values that they should."""
    queries = list(queries_of(board))
    names = set(server.ask("label/__name__/values"))
    for title, query in queries:
        unknown = set(re.findall(r"dosmos_[a-z_]+", query)) - names
        assert not unknown, f"{title}: there is no {unknown}"
    # Rates have data once each process was scraped twice.
    empty = lambda: [f"{title}: {query}" for title, query in queries if not server.ask("query", query=query)["result"]]
    until("all queries have data", lambda: not empty(), demo, instead=empty)
    values = {}
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.*), ([a-z]+)\)", variable["query"]["query"])
            values[variable["name"]] = set(server.ask(f"label/{found[2]}/values", **{"match[]": filled(found[1])}))
    assert values == {"run": {run}, "process": processes}, values
    return len(queries)


def number(server, query):
    result = server.ask("query", query=query)["result"]
    value = float(result[0]["value"][1]) if result else 0.0
    return 0.0 if math.isnan(value) else value


def check_demo(board, work):
    run = work / "watched"
    with running(sys.argv[1], "demo", "--headless", "--seconds", "300", "--app", "sor", "--run-dir", run) as demo:
        # Four memory processes, two link processes, two event managers.
        listed = lambda: tried("metrics", "targets", "--run-dir", run).stdout
        until("the demo runs", lambda: listed().count('"targets"') == 8, demo)
        targets = json.loads(listed())
        processes = {t["labels"]["process"] for t in targets}
        assert len(processes) == 8 and {t["labels"]["run"] for t in targets} == {"watched"}, targets
        roles = sorted(t["labels"]["role"] for t in targets)
        assert roles == ["emp"] * 2 + ["lp"] * 2 + ["mp"] * 4, roles
        config = dosmos("metrics", "prometheus", "--run-dir", run)
        with prometheus(config, work, demo) as server:
            until("all processes are scraped", lambda: server.up(processes), demo, instead=server.trouble)
            accesses = 'sum(rate(dosmos_mp_accesses_total[5s]))'
            until("accesses are counted", lambda: number(server, accesses) > 0, demo)
            asked = check_queries(board, server, "watched", processes, demo)
            # The pages and the targets say the same, so no label is there twice.
            doubled = [l for l in server.ask("labels") if l.startswith("exported_")]
            assert not doubled, doubled
        demo.terminate()
        demo.wait(timeout=LIMIT)
        said = refused("metrics", "targets", "--run-dir", run)
        assert "has ended" in said, said
    return asked, len(processes)


def check_secured(work):
    """Certificates, and a file of targets that Prometheus reads while it runs."""
    cluster, run, listed = work / "cluster.toml", work / "secured", work / "targets.json"
    cluster.write_text(SECURED)
    dosmos("cert", "init", "--cluster", cluster)
    listed.write_text("[]")
    with running(sys.argv[1], "up", "--cluster", cluster, "--run-dir", run, "--", sys.argv[1], "app", "sor", "--seconds",
                 "300") as up:
        until("the cluster runs", lambda: tried("metrics", "targets", "--run-dir", run).stdout.count('"targets"') == 2, up)
        # That it uses certificates is in its file, which is beside its stores when all processes are ready.
        ask = ["metrics", "prometheus", "--run-dir", run]
        until("its file is known", lambda: "name the folder" in tried(*ask).stderr, up)
        ask += ["--tls", work / "tls/observer"]
        (work / "fixed.yml").write_text(dosmos(*ask))
        check_config(work / "fixed.yml")
        config = dosmos(*ask, "--targets", listed)
        with prometheus(config, work, up) as server:
            dosmos("metrics", "targets", "--run-dir", run, "-o", listed)
            until("both processes are scraped", lambda: server.up({"mp0", "emp0"}), up, instead=server.trouble)


def main():
    text = dosmos("metrics", "grafana")
    assert text == DASHBOARD.read_text(), "not the dashboard of the repository"
    board = json.loads(text)
    check_structure(board)
    check_models(board)
    print(f"dashboard: {len(panels_of(board))} panels, read by Grafana's models")
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        print("NOT CHECKED: Prometheus cannot be had here; its configuration and the queries of the dashboard were not tried")
        return
    with tempfile.TemporaryDirectory() as work:
        asked, processes = check_demo(board, pathlib.Path(work))
        print(f"prometheus: {processes} processes scraped; {asked} queries of the dashboard answered")
    with tempfile.TemporaryDirectory() as work:
        check_secured(pathlib.Path(work))
        print("prometheus: a cluster with certificates scraped, from a file of targets")


main()
