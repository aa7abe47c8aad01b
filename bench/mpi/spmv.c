/* Sparse matrix times vector, power method. Input: the columns of all non-zeros, 32 bits each, then their values.
 * Parameters: rows, non-zeros per row, iterations. */
#include "common.h"

#include <math.h>

static double largest(const double *x, long n) {
    double most = 0.0;
    for (long i = 0; i < n; i++)
        most = fabs(x[i]) > most ? fabs(x[i]) : most;
    return most;
}

/* In the order of additions of the Rust programs. */
static double product(const uint32_t *columns, const double *values, long n, const double *x) {
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    long i = 0;
    for (; i + 4 <= n; i += 4) {
        s0 += values[i] * x[columns[i]];
        s1 += values[i + 1] * x[columns[i + 1]];
        s2 += values[i + 2] * x[columns[i + 2]];
        s3 += values[i + 3] * x[columns[i + 3]];
    }
    double sum = (s0 + s1) + (s2 + s3);
    for (; i < n; i++)
        sum += values[i] * x[columns[i]];
    return sum;
}

int main(int argc, char **argv) {
    start(&argc, &argv, 3);
    long total = atol(argv[3]), per_row = atol(argv[4]), iterations = atol(argv[5]);
    long n = count_of(total, rank), first = first_of(total, rank);
    uint32_t *columns = allocate(n * per_row * sizeof *columns);
    double *values = allocate(n * per_row * sizeof *values);
    read_input(argv[2], first * per_row * sizeof *columns, columns, n * per_row * sizeof *columns);
    read_input(argv[2], total * per_row * sizeof *columns + first * per_row * sizeof *values, values, n * per_row * sizeof *values);
    int *counts = allocate(size * sizeof(int)), *starts = allocate(size * sizeof(int));
    for (int process = 0; process < size; process++) {
        counts[process] = (int)count_of(total, process);
        starts[process] = (int)first_of(total, process);
    }
    /* Two vectors, one written while the other is read. */
    double *x, *y = allocate(n * sizeof *y);
    MPI_Win window;
    MPI_Win_allocate(2 * total * sizeof *x, sizeof *x, MPI_INFO_NULL, MPI_COMM_WORLD, &x, &window);
    for (long i = 0; i < total; i++)
        x[i] = 1.0;
    for (long i = 0; i < n; i++)
        y[i] = 1.0;
    MPI_Barrier(MPI_COMM_WORLD);
    double started = MPI_Wtime();
    for (long iteration = 0; iteration < iterations; iteration++) {
        const double *now = x + (iteration % 2) * total;
        long next = (1 - iteration % 2) * total;
        double scale = 1.0 / largest(now, total);
        for (long i = 0; i < n; i++)
            y[i] = scale * product(columns + i * per_row, values + i * per_row, per_row, now);
        if (one_sided) {
            MPI_Win_fence(0, window);
            for (int turn = 0; turn < size; turn++) {
                int to = (rank + turn) % size;
                MPI_Put(y, (int)n, MPI_DOUBLE, to, next + first, (int)n, MPI_DOUBLE, window);
            }
            MPI_Win_fence(0, window);
        } else {
            MPI_Allgatherv(y, (int)n, MPI_DOUBLE, x + next, counts, starts, MPI_DOUBLE, MPI_COMM_WORLD);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - started;
    report_doubles(seconds, y, total, 1);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
