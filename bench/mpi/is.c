/* Integer sort by counting. Input: the keys, 32 bits each. Parameters: keys, buckets, iterations. */
#include "common.h"

static void count(const uint32_t *keys, long n, long buckets, uint32_t *counts) {
    static uint32_t *four = NULL;
    if (four == NULL)
        four = allocate(4 * buckets * sizeof(uint32_t));
    memset(four, 0, 4 * buckets * sizeof(uint32_t));
    long i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            four[k * buckets + keys[i + k]]++;
    for (; i < n; i++)
        four[keys[i]]++;
    for (long b = 0; b < buckets; b++)
        counts[b] = four[b] + four[buckets + b] + four[2 * buckets + b] + four[3 * buckets + b];
}

int main(int argc, char **argv) {
    start(&argc, &argv, 3);
    long total = atol(argv[3]), buckets = atol(argv[4]), iterations = atol(argv[5]);
    long n = count_of(total, rank), first = first_of(total, rank);
    uint32_t *keys = allocate(n * sizeof *keys), *ranks = allocate(n * sizeof *ranks);
    uint32_t *counts = allocate(buckets * sizeof *counts), *sums = allocate(buckets * sizeof *sums);
    read_input(argv[2], first * sizeof *keys, keys, n * sizeof *keys);
    /* One-sided: each process has the sums of its part of the buckets. */
    uint32_t *part;
    MPI_Win window;
    MPI_Win_allocate(buckets * sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &window);
    MPI_Barrier(MPI_COMM_WORLD);
    double started = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        long at[2] = {i % total, (i + total / 2) % total}, value = i % buckets;
        uint32_t key[2] = {(uint32_t)value, (uint32_t)(buckets - 1 - value)};
        for (int k = 0; k < 2; k++)
            if (at[k] >= first && at[k] < first + n)
                keys[at[k] - first] = key[k];
        count(keys, n, buckets, counts);
        if (one_sided) {
            memset(part, 0, buckets * sizeof *part);
            MPI_Win_fence(0, window);
            for (int turn = 0; turn < size; turn++) {
                int to = (rank + turn) % size;
                int length = (int)count_of(buckets, to);
                MPI_Accumulate(counts + first_of(buckets, to), length, MPI_UINT32_T, to, 0, length, MPI_UINT32_T, MPI_SUM, window);
            }
            MPI_Win_fence(0, window);
            for (int from = 0; from < size; from++) {
                int length = (int)count_of(buckets, from);
                MPI_Get(sums + first_of(buckets, from), length, MPI_UINT32_T, from, 0, length, MPI_UINT32_T, window);
            }
            MPI_Win_fence(0, window);
        } else {
            MPI_Allreduce(counts, sums, (int)buckets, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
        }
        uint32_t smaller = 0;
        for (long b = 0; b < buckets; b++) {
            uint32_t here = sums[b];
            sums[b] = smaller;
            smaller += here;
        }
        for (long k = 0; k < n; k++)
            ranks[k] = sums[keys[k]];
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - started;
    int *lengths = allocate(size * sizeof(int)), *starts = allocate(size * sizeof(int));
    for (int process = 0; process < size; process++) {
        lengths[process] = (int)count_of(total, process);
        starts[process] = (int)first_of(total, process);
    }
    uint32_t *whole = allocate(rank == 0 ? total * sizeof *whole : 0);
    MPI_Gatherv(ranks, (int)n, MPI_UINT32_T, whole, lengths, starts, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        uint64_t sum = 0xcbf29ce484222325u;
        for (long i = 0; i < total; i++)
            sum = add_to_checksum(sum, whole[i]);
        report(seconds, sum);
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
