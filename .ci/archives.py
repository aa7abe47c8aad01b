"""Lets the library of OTF2 read what dosmos writes, and dosmos read what the library writes. See .ci/interchange.

Usage: archives.py DOSMOS [--store DIR]..."""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import _otf2
import otf2
from otf2.enums import (CollectiveOp, GroupFlag, GroupType, LockType, MappingType, Paradigm, RegionRole, RmaAtomicType,
                        RmaSyncLevel)
from otf2.events import (Enter, Leave, RmaAcquireLock, RmaAtomic, RmaCollectiveEnd, RmaGet, RmaOpCompleteBlocking, RmaPut,
                         RmaReleaseLock, RmaRequestLock)

PREFIX = "dosmos::"
TRACE = """
{"type":"run","name":"generated","start":"2026-01-01T00:00:00Z","end_ns":9000000}
{"type":"mp","name":"mp0","group":"/a"}
{"type":"mp","name":"mp1","group":"/a/b"}
{"type":"ap","name":"ap0","mp":"mp0"}
{"type":"ap","name":"ap1","mp":"mp1"}
{"type":"variable","name":"x y","objects":3,"owner":["mp0","mp1","mp0"],"bytes":96}
""".strip().splitlines()


def dosmos(*args):
    done = subprocess.run([sys.argv[1], *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, f"dosmos {args}: {done.stderr}"
    return done.stdout + done.stderr


def check(what, a, b):
    assert a == b, f"{what}: {a} is not {b}"


def lines_of(stores, work):
    """Records and other lines of the JSONL of stores."""
    file = work / "lines.jsonl"
    dosmos("export", *[a for s in stores for a in ("--store", s)], "--format", "jsonl", "-o", file)
    lines = [json.loads(line) for line in open(file)]
    return [l for l in lines if l["type"] == "record"], [l for l in lines if l["type"] != "record"]


def operations(trace):
    """(process, region, attributes, begin, end) of each operation that has attributes of this project."""
    open_at = {}
    for location, event in trace.events:
        if isinstance(event, Enter):
            said = {a.name.removeprefix(PREFIX): v for a, v in (event.attributes or {}).items()}
            if "owner" in said:
                assert location not in open_at, f"operations overlap at {location.name}"
                open_at[location] = (event.region.name, said, event.time)
        elif isinstance(event, Leave) and location in open_at:
            region, said, begin = open_at.pop(location)
            check("region", event.region.name, region)
            yield location.group.name, region, said, begin, event.time
    assert not open_at, f"operations without an end: {open_at}"


def check_written(stores, work):
    """What the library reads is what JSONL says."""
    archive = work / "written"
    dosmos("export", *[a for s in stores for a in ("--store", s)], "--format", "otf2", "-o", archive)
    records, _ = lines_of(stores, work)
    expected = collections.Counter()
    for r in records:
        owner = r.get("side") == "owner"
        serves = owner and not r.get("waiting") and not r.get("pending")
        of = r["barrier"] if r["op"] == "barrier" else r["var"]
        region = f"{'serve ' if serves else ''}{r['op']} {of}"
        expected[(r["owner"] if serves else r["ap"], region, r["t_ns"], r["dur_ns"], r["object"], r["bytes"], r["version"],
                  r["origin"], r["owner"], r["wait_ns"], r.get("count", 1), r["optimized"], r.get("failed", False))] += 1
    found, kinds = collections.Counter(), collections.Counter()
    with otf2.reader.open(str(archive / "traces.otf2")) as trace:
        for process, region, said, begin, end in operations(trace):
            found[(process, region, begin, said.get("duration_ns", end - begin), said["object"], said.get("bytes", 0),
                   said.get("version", 0), said["origin"], said["owner"].name, said.get("wait_ns", 0), said.get("count", 1),
                   bool(said.get("optimized")), bool(said.get("failed")))] += 1
    check("operations", sum(found.values()), len(records))
    assert found == expected, f"{list((found - expected).items())[:3]} are not {list((expected - found).items())[:3]}"
    # One-sided operations have completions, and go to the rank of the owner.
    under_way = {}
    with otf2.reader.open(str(archive / "traces.otf2")) as trace:
        owner = {}
        for location, event in trace.events:
            kinds[type(event).__name__] += 1
            if isinstance(event, Enter):
                owner[location] = {a.name: v for a, v in (event.attributes or {}).items()}.get(PREFIX + "owner")
            if isinstance(event, (RmaGet, RmaPut, RmaAtomic)):
                check("target", event.win.location(event.remote), owner[location])
                under_way[event.matching_id] = location
            elif isinstance(event, RmaOpCompleteBlocking):
                check("location", under_way.pop(event.matching_id), location)
            elif isinstance(event, (RmaRequestLock, RmaAcquireLock, RmaReleaseLock)):
                check("owner of the lock", event.win.location(event.remote), owner[location])
            elif isinstance(event, RmaCollectiveEnd):
                check("collective operation", event.collective_op, CollectiveOp.BARRIER)
    check("operations without completion", under_way, {})
    accesses = [r for r in records if r.get("side", "requester") == "requester" and not r.get("failed") and not r.get("waiting")
                and not r.get("pending")]
    travels = [r for r in accesses if not r["optimized"] and not r.get("in_process")]
    check("gets", kinds["RmaGet"], sum(r["op"] == "read" for r in travels))
    check("puts", kinds["RmaPut"], sum(r["op"] == "write" and not r.get("atomic") for r in travels))
    check("atomic operations", kinds["RmaAtomic"], sum(bool(r["op"] == "write" and r.get("atomic")) for r in travels))
    check("barriers", kinds["RmaCollectiveEnd"], sum(r["op"] == "barrier" for r in accesses))
    held = [r for r in accesses if r.get("count", 1) == 1 and not r.get("in_process")]
    check("acquired", kinds["RmaAcquireLock"], sum(r["op"] == "acquire" for r in held))
    check("released", kinds["RmaReleaseLock"], sum(r["op"] == "release" for r in held))
    return archive, len(records)


def comparable(records):
    """Records of what processes did, as text, in an order."""
    own = [r for r in records if r.get("side") != "owner" or r.get("pending")]
    return sorted(json.dumps(r, sort_keys=True) for r in own)


def check_rewritten(archive, stores, work):
    """An archive that the library has read and written again is still the same trace."""
    again = work / "again"
    source = _otf2.Reader_Open(str(archive / "traces.otf2"))
    about = _otf2.Reader_GetProperty(source, "DOSMOS::ABOUT")
    _otf2.Reader_Close(source)
    with otf2.reader.open(str(archive / "traces.otf2")) as trace:
        # Chunks of another size, to have many.
        with otf2.writer.open(str(again), definitions=trace.definitions, chunk_size_events=256 * 1024) as copy:
            _otf2.Archive_SetProperty(copy.handle, "DOSMOS::ABOUT", about, True)
            for location, event in trace.events:
                copy.event_writer_from_location(location)(event)
    for name, place in [("written", archive), ("written again", again / "traces.otf2")]:
        store = work / f"store {name}"
        dosmos("import", place, "--store", store)
        check(name, comparable(lines_of([store], work)[0]), comparable(lines_of(stores, work)[0]))


def check_of_others(work):
    """One-sided operations of a program with MPI on two nodes become accesses."""
    place = work / "mpi"
    with otf2.writer.open(str(place), timer_resolution=1_000_000) as trace:
        trace.description = "a program with MPI"
        d = trace.definitions
        root = d.system_tree_node("cluster", class_name="machine")
        nodes = [d.system_tree_node(f"node{i}", class_name="node", parent=root) for i in range(2)]
        groups = [d.location_group(f"MPI Rank {i}", system_tree_parent=nodes[i // 2]) for i in range(4)]
        locations = [d.location("Master thread", group=g) for g in groups]
        d.paradigm(Paradigm.MPI, name="MPI", paradigm_class=otf2.enums.ParadigmClass.PROCESS)
        d.group("ranks", GroupType.COMM_LOCATIONS, Paradigm.MPI, GroupFlag.NONE, locations)
        world = d.comm("MPI_COMM_WORLD", group=d.group("", GroupType.COMM_GROUP, Paradigm.MPI, GroupFlag.NONE, range(4)))
        part = d.comm("halves", group=d.group("part", GroupType.COMM_GROUP, Paradigm.MPI, GroupFlag.NONE, [2, 3]))
        grid, halves = d.rma_win("grid", comm=world), d.rma_win("halves", comm=part)
        regions = [d.region(n, region_role=RegionRole.RMA, paradigm=Paradigm.MPI) for n in ["MPI_Get", "MPI_Send"]]
        writers = [trace.event_writer_from_location(l) for l in locations]
        # Rank 3 counts windows the other way, and its clock is 40 us ahead at first and 20 at the end.
        swapped = _otf2.IdMap_CreateFromUint64Array([1, 0], False)
        _otf2.DefWriter_WriteMappingTable(writers[3]._def_handle, MappingType.RMA_WIN, swapped)
        _otf2.DefWriter_WriteClockOffset(writers[3]._def_handle, 1000, -40, 0.0)
        _otf2.DefWriter_WriteClockOffset(writers[3]._def_handle, 3000, -20, 0.0)
        for rank, w in enumerate(writers):
            window = {3: halves}.get(rank, grid)  # Both are `grid` in the end.
            off = 40 if rank == 3 else 0
            w.enter(1000 + off, regions[0])
            w.rma_get(1000 + off, window, (rank + 1) % 4, 800, 1)
            w.rma_put(1002 + off, window, rank, 80, 2)
            w.rma_op_complete_blocking(1010 + off, window, 1)
            w.rma_op_complete_non_blocking(1012 + off, window, 2)
            w.leave(1012 + off, regions[0])
            w.rma_request_lock(1100 + off, window, 0, 7, LockType.EXCLUSIVE)
            w.rma_acquire_lock(1100 + 10 * rank + off, window, 0, 7, LockType.EXCLUSIVE)
            w.rma_atomic(1101 + 10 * rank + off, window, 0, RmaAtomicType.FETCH_AND_ADD, 8, 8, 3)
            w.rma_op_complete_blocking(1103 + 10 * rank + off, window, 3)
            w.rma_release_lock(1105 + 10 * rank + off, window, 0, 7)
            w.rma_acquire_lock(1200 + off, window, 1, 0, LockType.SHARED)
            w.rma_release_lock(1201 + off, window, 1, 0)
            w.rma_collective_begin(1300 + off)
            w.rma_collective_end(1400 + off, CollectiveOp.BARRIER, RmaSyncLevel.PROCESS, window, 0xFFFFFFFF, 0, 0)
            w.mpi_collective_begin(1500 + off)
            w.mpi_collective_end(1510 + off, CollectiveOp.ALLREDUCE, world, 0xFFFFFFFF, 8, 8)
        writers[2].rma_get(1600, halves, 1, 64, 9)
        writers[2].mpi_send(1601, 1, world, 0, 12)
    said = dosmos("import", place / "traces.otf2", "--store", work / "mpi-store")
    for note in ["4 shared locks", "4 collective operations that are not barriers", "1 messages", "1 operations have no completion",
                 "4 releases of locks that were shared"]:
        assert note in said, f"{note} is not said: {said}"
    records, others = lines_of([work / "mpi-store"], work)
    tally = collections.Counter((r["op"], r["var"], r["object"], r["ap"], r["origin"]) for r in records if r["op"] != "barrier")
    rank = [f"MPI Rank {i}" for i in range(4)]
    origin = lambda a, b: "local" if a == b else "intra" if a // 2 == b // 2 else "inter"
    expected = collections.Counter()
    for i in range(4):
        expected[("read", "grid", (i + 1) % 4, rank[i], origin(i, (i + 1) % 4))] += 1
        expected[("write", "grid", i, rank[i], "local")] += 1
        for op in ["acquire", "write", "release"]:
            expected[(op, "grid", 0, rank[i], origin(i, 0))] += 1
    expected[("read", "halves", 1, rank[2], "intra")] += 1
    check("accesses", tally, expected)
    # The clock of rank 3 loses one in a hundred.
    barriers = [(r["barrier"], r["dur_ns"]) for r in records if r["op"] == "barrier"]
    check("barriers", barriers, [("grid", 100_000)] * 3 + [("grid", 101_000)])
    waits = sorted(r["wait_ns"] for r in records if r["op"] == "acquire")
    check("waits for the lock", waits, [0, 10_000, 20_000, 30_000])
    gets = [r for r in records if r["op"] == "read" and r["var"] == "grid"]
    check("lengths of reads", {r["dur_ns"] for r in gets}, {10_000})
    starts = sorted(r["t_ns"] for r in gets)
    assert starts[-1] - starts[0] <= 1000, f"clocks were not corrected: {starts}"
    run = next(l for l in others if l["type"] == "run")
    check("run", run["name"], "a program with MPI")
    for command in ["check", "verify"]:
        judged = subprocess.run([sys.argv[1], command, "--store", work / "mpi-store"], capture_output=True, text=True)
        # Shared locks are lacking, and versions.
        check(f"exit status of {command}", judged.returncode, 2)
        said = {"check": (judged.stderr, "incomplete: 4 shared locks"), "verify": (judged.stdout, "its releases have no version")}
        assert said[command][1] in said[command][0], (judged.stdout, judged.stderr)
    # Nothing of a program that only sends messages is access to shared memory.
    with otf2.writer.open(str(work / "messages")) as trace:
        d = trace.definitions
        node = d.system_tree_node("node")
        location = d.location("thread", group=d.location_group("process", system_tree_parent=node))
        d.group("ranks", GroupType.COMM_LOCATIONS, Paradigm.MPI, GroupFlag.NONE, [location])
        world = d.comm("world", group=d.group("", GroupType.COMM_GROUP, Paradigm.MPI, GroupFlag.NONE, [0]))
        trace.event_writer_from_location(location).mpi_send(5, 0, world, 0, 12)
    refused = subprocess.run([sys.argv[1], "import", work / "messages", "--store", work / "none"], capture_output=True, text=True)
    check("exit status", refused.returncode, 2)
    assert "no one-sided operations" in refused.stderr and "1 messages" in refused.stderr, refused.stderr
    assert not (work / "none").exists()
    return len(records)


def generated(path):
    """A trace with everything that a record can say."""
    lines, t = list(TRACE), 0

    def say(op, **more):
        nonlocal t
        t += 10
        line = {"type": "record", "t_ns": t, "dur_ns": 50 + t % 7, "op": op, "ap": f"ap{t % 2}", "object": t % 3, **more}
        lines.append(json.dumps(line if op == "barrier" else {"var": "x y", **line}))

    for i in range(3000):
        say("read", bytes=i, version=i, optimized=i % 2 == 0)
        say("write", atomic=i % 3 == 0, range=[0, i % 30 + 1], failed=i % 50 == 0, posted=i % 4 == 0)
        say("acquire", wait_ns=20, in_process=i % 7 == 0)
        say("release", count=1 + i % 2)
        say("read", count=70_000, own_clock=True, in_process=True)
        say("read", ahead=True, service_ns=4, first=i == 0, sampled=i % 9 == 0)
        say("barrier", var=None, barrier="b" if i % 2 else "c d", barrier_group="/a" if i % 4 else None, object=i)
    say("acquire", pending=True)
    path.write_text("\n".join(lines) + "\n")


def main():
    stores = [a for flag, a in zip(sys.argv[2:], sys.argv[3:]) if flag == "--store"]
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        generated(work / "generated.jsonl")
        dosmos("import", work / "generated.jsonl", "--store", work / "store")
        for title, its in [("generated", [work / "store"]), ("real", stores)]:
            if its:
                place = work / title
                place.mkdir()
                archive, count = check_written(its, place)
                check_rewritten(archive, its, place)
                print(f"OTF2, {title}: {count} records, read by its library, and read back as it and the library wrote them")
        print(f"OTF2, of a program with MPI: {check_of_others(work)} accesses")


main()
