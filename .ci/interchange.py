"""Checks what dosmos exports with readers that are not its own. See .ci/interchange."""

import base64
import collections
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import urllib.request

import pyarrow.parquet
from google.protobuf.json_format import ParseDict
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pf

SUMS = ["duration_ns", "wait_ns", "service_ns", "bytes", "version", "count"]
KEYS = ["op", "variable", "barrier", "object", "ap", "mp", "owner", "origin", "side"]
FLAGS = ["optimized", "sampled", "failed", "waiting", "pending"]
ACCESS, WAIT, SECTION, SERVED = "access", "wait", "section", "served"


def dosmos(*args):
    done = subprocess.run([sys.argv[1], *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, f"dosmos {args}: {done.stderr}"
    return done.stderr


def check(what, a, b):
    assert a == b, f"{what}: {a} is not {b}"


def tally(rows):
    """Number of rows, sums of the numbers, and how many rows of each kind."""
    sums = dict.fromkeys(SUMS, 0)
    kinds = collections.Counter()
    for row in rows:
        for name in SUMS:
            sums[name] += row[name]
        kinds[tuple(row[k] for k in KEYS) + tuple(row[f] for f in FLAGS)] += 1
    return sum(kinds.values()), sums, kinds


def of_jsonl(path):
    rows, about = [], {}
    for line in open(path):
        line = json.loads(line)
        if line["type"] != "record":
            about[line["type"]] = line
            continue
        pending = line.get("pending", False)
        rows.append({
            "t": line["t_ns"], "duration_ns": line["dur_ns"], "wait_ns": line["wait_ns"],
            "service_ns": line.get("service_ns", 0), "bytes": line["bytes"], "version": line["version"],
            "count": line.get("count", 1),
            "op": line["op"], "variable": line["var"], "barrier": line.get("barrier"), "object": line["object"],
            "ap": line["ap"], "mp": line["mp"], "owner": line["owner"], "origin": line["origin"],
            "side": line.get("side", "requester"), "optimized": line["optimized"],
            "sampled": line.get("sampled", False), "failed": line.get("failed", False),
            "waiting": line.get("waiting", False) or pending, "pending": pending,
            "in_process": line.get("in_process", False),
        })
    return rows, about


def of_csv(path):
    for row in csv.DictReader(open(path, newline="")):
        is_barrier = row["op"] == "barrier"
        yield {
            **{n: int(row[n]) for n in SUMS}, **{k: row[k] for k in KEYS}, "object": int(row["object"]),
            "variable": None if is_barrier else row["variable"], "barrier": row["barrier"] if is_barrier else None,
            **{f: row[f] == "true" for f in FLAGS},
        }


def sections_of(rows):
    """(process, object, begin, end or None) of each section, and the hand-overs between processes."""
    # Of sections that a process held in itself nobody knows how long each was.
    known = [r for r in rows if r["count"] == 1 and not r["in_process"]]
    done = [r for r in known if r["side"] == "requester" and not r["failed"] and not r["waiting"]]
    done.sort(key=lambda r: r["t"])
    open_since, last, sections, hand_overs = {}, {}, [], 0
    for r in done:
        key = (r["ap"], r["variable"], r["object"])
        if r["op"] not in ("acquire", "release"):
            continue
        if key in open_since:
            begin = open_since.pop(key)
            sections.append((*key, begin, max(begin, r["t"])))
            before = last.get(key[1:])
            hand_overs += before is not None and before[0] != r["ap"] and before[1] <= begin
        if r["op"] == "acquire":
            open_since[key] = r["t"] + r["duration_ns"]
        else:
            last[key[1:]] = (r["ap"], r["t"])
    for key, begin in open_since.items():
        sections.append((*key, begin, None))
        before = last.get(key[1:])
        hand_overs += before is not None and before[0] != key[0] and before[1] <= begin
    return sections, hand_overs


def known(message):
    """Fails if the published schema does not know a field."""
    assert len(UnknownFieldSet(message)) == 0, f"unknown fields in {message}"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in [value] if not field.is_repeated else value:
                known(part)


def check_perfetto(path, rows, about):
    trace = pf.Trace()
    trace.ParseFromString(open(path, "rb").read())
    names, categories, tracks, events = {}, {}, {}, []
    for i, packet in enumerate(trace.packet):
        if i < 5000:
            known(packet)
        for name in packet.interned_data.event_names:
            names[name.iid] = name.name
        for name in packet.interned_data.event_categories:
            categories[name.iid] = name.name
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            events.append((packet.timestamp, packet.track_event))
    events.sort(key=lambda e: e[0])
    stacks, slices, counters = collections.defaultdict(list), collections.defaultdict(list), {}
    starts, ends = set(), []
    for at, event in events:
        track = event.track_uuid
        assert track in tracks
        if event.type == pf.TrackEvent.TYPE_SLICE_BEGIN:
            category = categories[event.category_iids[0]] if event.category_iids else "mark"
            name = names[event.name_iid] if event.name_iid else event.name
            stacks[track].append((category, name, at))
            starts.update(event.flow_ids)
            ends += event.terminating_flow_ids
        elif event.type == pf.TrackEvent.TYPE_SLICE_END:
            category, name, begin = stacks[track].pop()
            slices[category].append((name, begin, at))
        elif event.type == pf.TrackEvent.TYPE_COUNTER:
            counters.setdefault(tracks[track].name, []).append((at, event.double_counter_value))
    assert not any(stacks.values()), "slices without end"

    requested = [r for r in rows if r["side"] == "requester" and (r["pending"] or not r["waiting"])]
    served = [r for r in rows if r["side"] == "owner" and not r["waiting"]]
    pending = [r for r in rows if r["pending"]]
    also_owner = [r for r in pending if r["side"] == "owner"]
    check("operations", len(slices[ACCESS]), len(requested) + len(also_owner))
    check("served", len(slices[SERVED]), len(served))
    waits = sorted(r["wait_ns"] for r in requested if r["wait_ns"] and not r["pending"])
    drawn = sorted(end - begin for _, begin, end in slices[WAIT])
    check("waits", len(drawn), len(waits) + len(pending))
    if not pending:
        check("lengths of waits", drawn, waits)
    sections, hand_overs = sections_of(rows)
    check("sections", len(slices[SECTION]), len(sections))
    expected = collections.Counter(f"section {s[1]}[{s[2]}]" for s in sections)
    check("sections by object", collections.Counter(s[0] for s in slices[SECTION]), expected)
    closed = collections.Counter((s[3], s[4]) for s in sections if s[4] is not None)
    drawn = collections.Counter(s[1:] for s in slices[SECTION])
    assert not closed - drawn, f"sections not drawn where they were: {closed - drawn}"
    check("hand-overs", len(ends), hand_overs)
    assert set(ends) <= starts, "an arrow from nowhere"

    accesses = [r for r in rows if r["side"] == "requester" and not r["failed"] and not r["waiting"]]
    for origin, name in [("local", "local"), ("intra", "intra-group"), ("inter", "inter-group")]:
        points = counters[f"{name} accesses"]
        total = sum(v * (b - a) / 1e9 for (a, v), (b, _) in zip(points, points[1:]))
        count = sum(r["count"] for r in accesses if r["origin"] == origin)
        assert abs(total - count) <= 1e-6 * max(count, 1), f"{origin}: {total} is not {count}"
    lacking = about["completeness"]
    reasons = [name for name, _, _ in slices["mark"]]
    if lacking["dropped"]:
        assert any(f"{lacking['dropped']} of {lacking['recorded']} records" in r for r in reasons), reasons
    check("reasons", bool(reasons), bool(lacking["dropped"] or lacking["missing"] or lacking["notes"]
                                         or lacking["corrupt_chunks"] or lacking["sampling"] < 1))
    return len(slices[WAIT]), len(sections), hand_overs


def message(line, kind):
    """A line of OTLP as a message of the published schema, which must know all of it."""
    def as_mapped(value):
        """Identifiers are in hexadecimal digits here, where the mapping of protobuf has base64."""
        if isinstance(value, list):
            return [as_mapped(v) for v in value]
        if not isinstance(value, dict):
            return value
        mapped = {k: as_mapped(v) for k, v in value.items()}
        for name, digits in [("traceId", 32), ("spanId", 16), ("parentSpanId", 16)]:
            if name in value:
                assert len(value[name]) == digits and int(value[name], 16) > 0, value
                mapped[name] = base64.b64encode(bytes.fromhex(value[name])).decode()
        for name in ["startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "observedTimeUnixNano", "intValue"]:
            assert isinstance(value.get(name, ""), str), f"{name} of {value}"
        for name in ["kind", "code", "severityNumber"]:
            assert isinstance(value.get(name, 0), int), f"{name} of {value}"
        return mapped

    return ParseDict(as_mapped(json.loads(line)), kind(), ignore_unknown_fields=False)


def plain(attributes):
    """Attributes as a dictionary."""
    keys = [a.key for a in attributes]
    assert len(set(keys)) == len(keys), f"an attribute twice: {keys}"
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in attributes}


def check_otlp(path, rows, about):
    spans = []
    for line in open(path):
        for of in message(line, ExportTraceServiceRequest).resource_spans:
            resource = plain(of.resource.attributes)
            check("namespace", resource["service.namespace"], about["run"]["name"])
            for scope in of.scope_spans:
                spans += [(resource["service.name"], s, plain(s.attributes)) for s in scope.spans]
    ids = {(s.trace_id, s.span_id) for _, s, _ in spans}
    check("identifiers of spans", len(ids), len(spans))
    whole = spans.pop()
    check("the last span", (whole[0], whole[1].name), ("dosmos", "run"))
    start = whole[1].start_time_unix_nano
    lacking = about["completeness"]
    check("records made", (whole[2]["dosmos.records"], whole[2]["dosmos.records_dropped"]),
          (lacking["recorded"], lacking["dropped"]))
    check("reasons", bool(whole[1].events), bool(lacking["dropped"] or lacking["missing"] or lacking["notes"]
                                                 or lacking["corrupt_chunks"] or lacking["sampling"] < 1))
    operations = [s for s in spans if "dosmos.op" in s[2]]
    asked = [r for r in rows if r["op"] in ("acquire", "release", "barrier")
             and (r["pending"] or r["side"] == "requester" and not r["waiting"])]
    drawn = collections.Counter((ap, a["dosmos.op"], a["dosmos.wait_ns"], a.get("dosmos.variable")) for ap, _, a in operations)
    told = collections.Counter((r["ap"], r["op"], r["wait_ns"], r["variable"]) for r in asked)
    check("operations", drawn, told)
    failed = sum(s.status.code == s.status.STATUS_CODE_ERROR for _, s, _ in spans)
    check("failed operations", failed, sum(r["failed"] for r in asked))
    openings = {s.trace_id for _, s, a in operations if a["dosmos.op"] == "barrier"}
    barriers = [r for r in asked if r["op"] == "barrier"]
    check("openings of barriers", len(openings), len({(r["barrier"], r["object"], r["version"]) for r in barriers}))

    sections, hand_overs = sections_of(rows)
    held = [s for s in spans if "dosmos.op" not in s[2]]
    check("sections", collections.Counter((ap, a["dosmos.variable"], a["dosmos.object"]) for ap, _, a in held),
          collections.Counter(s[:3] for s in sections))
    closed = collections.Counter((s[0], s[3], s[4]) for s in sections if s[4] is not None)
    times = collections.Counter((ap, s.start_time_unix_nano - start, s.end_time_unix_nano - start) for ap, s, _ in held)
    assert not closed - times, f"sections not where they were: {closed - times}"
    check("hand-overs", sum(len(s.links) for _, s, _ in held), hand_overs)
    for _, span, _ in spans:
        assert all((l.trace_id, l.span_id) in ids for l in span.links), f"a link to nowhere: {span}"
        assert not span.parent_span_id or (span.trace_id, span.parent_span_id) in ids, f"no parent: {span}"
    return len(spans), len(barriers)


def check_findings(title, stores):
    """Findings as log records say the same as those in JSON."""
    def ask(form):
        named = [a for s in stores for a in ("--store", s)]
        done = subprocess.run([sys.argv[1], "check", "--format", form, *map(str, named)], capture_output=True, text=True)
        assert done.stdout, f"dosmos check --format {form}: {done.stderr}"
        return done.stdout

    answer = json.loads(ask("json"))
    line, = ask("otlp").splitlines()
    of, = message(line, ExportLogsServiceRequest).resource_logs
    logs = [(r, plain(r.attributes)) for scope in of.scope_logs for r in scope.log_records]
    by_kind = lambda kind: [l for l in logs if l[0].event_name == f"dosmos.{kind}"]
    (verdict, _), = by_kind("verdict")
    check("verdict", verdict.body.string_value, answer["verdict"])
    found = by_kind("finding")
    check("findings", [(a["dosmos.kind"], a.get("dosmos.variable"), a.get("dosmos.predicted_gain")) for _, a in found],
          [(f["kind"], f["variable"], f["predicted_gain"]) for f in answer["findings"]])
    for (record, told), f in zip(found, answer["findings"]):
        assert record.body.string_value.startswith(f["kind"]), record
        level = 2 if f["kind"] == "data-race" or f["severity"] >= 0.2 else int(f["severity"] >= 0.05)
        check("severity", record.severity_number, [9, 13, 17][level])
        check("evidence", {k for k in told if k.startswith("dosmos.evidence.")},
              {f"dosmos.evidence.{k}" for k, v in f["evidence"].items() if v is not None})
    check("withheld", len(by_kind("withheld")), len(answer["withheld"]))
    check("reasons", len(by_kind("incomplete")),
          len(answer["incomplete"]) + len(answer["races"]["undecided"]) + (not answer["races"]["looked"]))
    print(f"{title}: {len(found)} findings as log records")


def check_exports(title, stores, work, *more):
    files = {}
    for kind in ["jsonl", "csv", "parquet", "perfetto", "otlp"]:
        files[kind] = work / f"{title}.{kind}"
        named = [a for s in stores for a in ("--store", s)]
        dosmos("export", *named, "--format", kind, "-o", files[kind], *more)
    rows, about = of_jsonl(files["jsonl"])
    count, sums, kinds = tally(rows)
    for name, other in [("csv", of_csv(files["csv"])), ("parquet", None)]:
        if name == "parquet":
            table = pyarrow.parquet.read_table(files["parquet"])
            check("rows of parquet", table.num_rows, count)
            # Python's own times have no nanoseconds.
            starts = table.column("start").cast("int64").to_pylist()
            since = min(starts, default=0) - min((r["t"] for r in rows), default=0)
            check("starts", sorted(s - since for s in starts), sorted(r["t"] for r in rows))
            other = table.drop_columns(["start"]).to_pylist()
            meta = json.loads(table.schema.metadata[b"dosmos.completeness"])
            said = {k: v for k, v in about["completeness"].items() if k != "type"}
            check("completeness of parquet", meta, said)
        n, s, k = tally(other)
        check(f"rows of {name}", n, count)
        check(f"sums of {name}", s, sums)
        check(f"kinds of rows of {name}", k, kinds)
    waits, sections, hand_overs = check_perfetto(files["perfetto"], rows, about)
    spans, barriers = check_otlp(files["otlp"], rows, about)
    print(f"{title}: {count} records; {waits} waits, {sections} sections, {hand_overs} hand-overs: all there; "
          f"{spans} spans, {barriers} of barriers")
    check_findings(title, stores)
    return rows, about


def generate(path, records, seed):
    """A trace with everything in it: sections that are fought for, copies, barriers, refusals, bad lines."""
    random.seed(seed)
    lines, good = [], []
    say = lambda **line: lines.append(json.dumps(line))
    say(type="run", name='gen "ü"', start="2026-01-01T00:00:00Z")
    for i in range(4):
        say(type="mp", name=f"mp{i}", group=f"/g{i % 2}")
        say(type="ap", name=f"ap {i}", mp=f"mp{i}")
    for i in range(3):
        owners = [f"mp{random.randrange(4)}" for _ in range(4)]
        say(type="variable", name=f"v,{i}", objects=4, owner=owners, bytes=256, policy=["invalidate", "update"][i % 2])
    now, free = [0] * 4, collections.defaultdict(int)
    while len(good) < records:
        ap = min(range(4), key=lambda i: now[i])
        var, obj = f"v,{random.randrange(3)}", random.randrange(4)

        def record(op, length, wait=0, **more):
            line = {"type": "record", "t_ns": now[ap], "dur_ns": length, "wait_ns": wait, "op": op, "var": var,
                    "object": obj, "ap": f"ap {ap}", "bytes": random.randrange(64), **more}
            now[ap] += length + random.randrange(1, 500)
            lines.append(json.dumps(line))
            good.append(line)

        dice = random.random()
        if dice < 0.3:
            wait = max(0, free[var, obj] - now[ap])
            record("acquire", wait + 100, wait)
            record("write", random.randrange(50, 5000), range=[0, 4])
            free[var, obj] = now[ap] + 10
            record("release", 200, random.randrange(100))
        elif dice < 0.35:
            var, obj = None, len(good)
            record("barrier", 1000, random.randrange(900), barrier="b1")
        elif dice < 0.4:
            record("write", 10, failed=True)
        else:
            record("read", random.randrange(50, 500), optimized=random.random() < 0.5)
        if random.random() < 0.001:
            lines.append('{"type":"record","t_ns":12,"op":')
    say(type="completeness", dropped=3, recorded=3)
    path.write_text("\n".join(lines) + "\n")
    bad = sum(line.endswith('"op":') for line in lines)
    return good, bad


def check_metrics(work):
    """Scrapes every process of a running demo, strictly parsed."""
    run = work / "demo"
    demo = subprocess.Popen([sys.argv[1], "demo", "--headless", "--seconds", "3", "--run-dir", str(run)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    scraped = {}
    while demo.poll() is None:
        for file in run.glob("addr/*.metrics"):
            try:
                with urllib.request.urlopen(f"http://{file.read_text().strip()}/metrics", timeout=5) as answer:
                    text = answer.read().decode()
            except OSError:
                continue  # It is ending.
            families = list(text_string_to_metric_families(text))
            scraped[file.stem] = {s.name for f in families for s in f.samples}
            for family in families:
                assert family.documentation and family.name.startswith("dosmos_"), family
    assert demo.returncode == 0, "the demo failed"
    for name, samples in scraped.items():
        role = "emp" if name.startswith("emp") else "mp"
        for figure in ["accesses_total", "records_total", "records_dropped_total", "lock_wait_seconds_bucket"]:
            assert f"dosmos_{role}_{figure}" in samples, (name, figure, samples)
    assert len(scraped) >= 5, scraped.keys()
    print(f"metrics: {len(scraped)} processes scraped")


def main():
    stores = [a for flag, a in zip(sys.argv[2:], sys.argv[3:]) if flag == "--store"]
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        good, bad = generate(work / "generated.jsonl", 20_000, seed=20260101)
        said = dosmos("import", work / "generated.jsonl", "--store", work / "store", "--skip-bad")
        assert f"{bad} bad lines" in said, said
        rows, about = check_exports("generated", [work / "store"], work)
        check("records", len(rows), len(good))
        for name, field in [("duration_ns", "dur_ns"), ("wait_ns", "wait_ns"), ("bytes", "bytes")]:
            check(f"sum of {field}", sum(r[name] for r in rows), sum(g[field] for g in good))
        check("lost", about["completeness"]["dropped"], bad + 3)
        check_metrics(work)
        if stores:
            check_exports("real", stores, work)


main()
