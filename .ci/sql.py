"""Archives of a recorded run, read by DuckDB, pyarrow and Polars: each must find what `dosmos sql` says of the run.

Usage: sql.py PATH-OF-DOSMOS-SQL
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import duckdb
import polars
import pyarrow.dataset
import pyarrow.parquet

PROGRAM = sys.argv[1]


def run(*words):
    """Runs a command; its standard output."""
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def asked(run_dir, query):
    """The rows of a query, as tuples."""
    answer = json.loads(run("sql", query, "--run-dir", run_dir, "--format", "json"))
    assert answer["complete"], answer["completeness"]
    return sorted(tuple(row.values()) for row in answer["rows"])


def by_duckdb(archive, key):
    files = f"{archive}/*/*/*.parquet"
    columns = f'"{key}", count(*), sum("count"), sum(wait_ns), min(start_ns)'
    query = f"SELECT {columns} FROM read_parquet('{files}', hive_partitioning = true) GROUP BY 1"
    return duckdb.sql(query).fetchall()


def by_pyarrow(archive, key):
    table = pyarrow.dataset.dataset(archive, partitioning="hive").to_table()
    sums = table.group_by(key).aggregate(
        [([], "count_all"), ("count", "sum"), ("wait_ns", "sum"), ("start_ns", "min")]
    )
    return [tuple(row[name] for name in (key, "count_all", "count_sum", "wait_ns_sum", "start_ns_min")) for row in sums.to_pylist()]


def by_polars(archive, key):
    frame = polars.scan_parquet(f"{archive}/*/*/*.parquet", hive_partitioning=True)
    sums = frame.group_by(key).agg(
        polars.len(), polars.col("count").sum(), polars.col("wait_ns").sum(), polars.col("start_ns").min()
    )
    return sums.collect().rows()


READERS = {"DuckDB": by_duckdb, "pyarrow": by_pyarrow, "Polars": by_polars}


def normal(rows):
    """Keys as text, sums as integers: readers differ in the types that they give a key in a name."""
    return sorted((str(key), *(int(n) for n in sums)) for key, *sums in rows)


def check(run_dir, archive, by, key):
    run("archive", "--run-dir", run_dir, "--by", by, "-o", archive)
    sums = f'count(*) AS n, sum("count") AS c, sum(wait_ns) AS w, min(start_ns) AS s FROM records GROUP BY 1'
    expected = normal(asked(run_dir, f"SELECT {key}, {sums}"))
    assert expected, "the run has no records"
    for name, read in READERS.items():
        found = normal(read(archive, by))
        assert found == expected, (name, by, found, expected)
        print(f"{name} reads the archive by {by}: {len(found)} parts, {sum(row[1] for row in found)} records")


def main():
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        run_dir = str(place / "run")
        run("demo", "--headless", "--app", "sor", "--seconds", "1", "--run-dir", run_dir)
        check(run_dir, str(place / "ops"), "op", "op")
        check(run_dir, str(place / "minutes"), "minute", "CAST(floor(at_s / 60) AS BIGINT)")
        parts = list((place / "ops").glob("*/*/*.parquet"))
        for part in parts:
            meta = pyarrow.parquet.read_schema(part).metadata
            assert json.loads(meta[b"dosmos.completeness"])["missing"] == [], part
            assert meta[b"dosmos.run"].decode() in str(part), part
        starts = pyarrow.parquet.read_table(parts[0]).column("start")
        assert str(starts.type) == "timestamp[us, tz=UTC]", starts.type
        # The same run twice would count everything twice.
        again = subprocess.run(
            [PROGRAM, "archive", "--run-dir", run_dir, "-o", str(place / "ops")], capture_output=True, text=True, check=False
        )
        assert again.returncode == 2 and "remove it" in again.stderr, again.stderr
        left = [p.name for p in (place / "ops").iterdir() if p.name.startswith(".")]
        assert left == [], left


main()
