/* What the MPI programs of `dosmos-bench cost` have in common.
 *
 * Each is called with how processes communicate (two-sided or one-sided), the file of its input and its parameters, in the
 * order in which dosmos_examples::input gives them. Process 0 prints the time of the computation and a checksum of the
 * result, as the Rust programs do, so that the results can be compared. */
#ifndef COMMON_H
#define COMMON_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, one_sided;

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void *allocate(size_t bytes) {
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (memory == NULL)
        fail("out of memory");
    return memory;
}

/* Starts; the program needs as many parameters. */
static void start(int *argc, char ***argv, int parameters) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (*argc != parameters + 3)
        fail("usage: PROGRAM two-sided|one-sided INPUT PARAMETERS");
    one_sided = strcmp((*argv)[1], "one-sided") == 0;
}

/* Elements first .. end of `items` belong to a process, as objects of a split variable do. */
static long first_of(long items, int process) {
    long each = items / size, more = items % size;
    return process * each + (process < more ? process : more);
}

static long count_of(long items, int process) {
    return first_of(items, process + 1) - first_of(items, process);
}

/* Reads a part of the input file. */
static inline void read_input(const char *path, long from, void *to, size_t bytes) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, from, SEEK_SET) != 0 || fread(to, 1, bytes, file) != bytes)
        fail("cannot read the input");
    fclose(file);
}

/* FNV-1a over elements of 64 bits. */
static uint64_t add_to_checksum(uint64_t sum, uint64_t element) {
    return (sum ^ element) * 0x100000001b3u;
}

static void report(double seconds, uint64_t checksum) {
    printf("{\"seconds\":%.9f,\"checksum\":%llu}\n", seconds, (unsigned long long)checksum);
}

/* Gathers parts of doubles (`each` per item of `items`) at process 0 and reports. */
static inline void report_doubles(double seconds, const double *part, long items, long each) {
    int *counts = allocate(size * sizeof(int)), *starts = allocate(size * sizeof(int));
    for (int process = 0; process < size; process++) {
        counts[process] = (int)(count_of(items, process) * each);
        starts[process] = (int)(first_of(items, process) * each);
    }
    double *whole = allocate(rank == 0 ? items * each * sizeof(double) : 0);
    MPI_Gatherv(part, counts[rank], MPI_DOUBLE, whole, counts, starts, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        uint64_t sum = 0xcbf29ce484222325u, bits;
        for (long i = 0; i < items * each; i++) {
            memcpy(&bits, &whole[i], sizeof bits);
            sum = add_to_checksum(sum, bits);
        }
        report(seconds, sum);
    }
}

#endif
