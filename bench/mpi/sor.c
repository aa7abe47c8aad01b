/* Red-black over-relaxation: bands of rows, edges exchanged before each half sweep. Parameters: rows, columns, iterations,
 * omega. */
#include "common.h"

static long total, columns, rows, first_row;
/* The own rows, and one more on each side. */
static double *band;
static MPI_Win window;

static void exchange(void) {
    int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    double *first = band + columns, *last = band + rows * columns;
    int n = (int)columns;
    if (one_sided) {
        MPI_Aint beyond_above = above == MPI_PROC_NULL ? 0 : (count_of(total, above) + 1) * columns;
        MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
        MPI_Put(first, n, MPI_DOUBLE, above, beyond_above, n, MPI_DOUBLE, window);
        MPI_Put(last, n, MPI_DOUBLE, below, 0, n, MPI_DOUBLE, window);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
        return;
    }
    MPI_Request requests[4];
    MPI_Irecv(band, n, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(last + columns, n, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(first, n, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(last, n, MPI_DOUBLE, below, 0, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void sweep(int black, double omega) {
    for (long i = 1; i <= rows; i++) {
        long row = first_row + i - 1;
        if (row == 0 || row == total - 1)
            continue;
        double *here = band + i * columns;
        const double *up = here - columns, *down = here + columns;
        for (long j = 1 + (row + 1 + black) % 2; j < columns - 1; j += 2) {
            double old = here[j];
            double mean = (up[j] + down[j] + here[j - 1] + here[j + 1]) / 4.0;
            here[j] = old + omega * (mean - old);
        }
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv, 4);
    total = atol(argv[3]);
    columns = atol(argv[4]);
    long iterations = atol(argv[5]);
    double omega = atof(argv[6]);
    rows = count_of(total, rank);
    first_row = first_of(total, rank);
    band = allocate((rows + 2) * columns * sizeof(double));
    for (long i = 1; i <= rows; i++) {
        long row = first_row + i - 1;
        for (long j = 0; j < columns; j++)
            band[i * columns + j] = row == 0 ? 100.0 : j == 0 ? 100.0 * (double)(total - 1 - row) / (double)(total - 1) : 0.0;
    }
    if (one_sided)
        MPI_Win_create(band, (rows + 2) * columns * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Barrier(MPI_COMM_WORLD);
    double started = MPI_Wtime();
    for (long half = 0; half < 2 * iterations; half++) {
        exchange();
        sweep(half % 2, omega);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - started;
    report_doubles(seconds, band + columns, total, columns);
    MPI_Finalize();
    return 0;
}
