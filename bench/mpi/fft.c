/* Fourier transform in six steps, forward and back in turn. Input: the signal, two doubles per point. Parameters: side,
 * iterations. The side has to be a multiple of the number of processes. */
#include "common.h"

#include <math.h>

typedef struct {
    double re, im;
} complex_t;

typedef struct {
    int inverse;
    complex_t *roots, *fine, *coarse;
} transform_t;

static long m, n, bits;
/* Of each position, the one with its bits in the opposite order. */
static long *reversed;
static complex_t *rows, *packed, *arrived;
static MPI_Win window;

static complex_t times(complex_t a, complex_t b) {
    complex_t c = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    return c;
}

static complex_t root(long of, long k, int inverse) {
    double angle = 6.283185307179586 * (double)(k % of) / (double)of;
    complex_t c = {cos(angle), inverse ? sin(angle) : -sin(angle)};
    return c;
}

static transform_t prepare(int inverse) {
    transform_t t = {inverse, allocate(m * sizeof(complex_t)), allocate(m * sizeof(complex_t)), allocate(m * sizeof(complex_t))};
    /* The roots of the step with half rows of `half` points begin at `half`. */
    for (long half = 2; half < m; half *= 2)
        for (long k = 0; k < half; k++)
            t.roots[half + k] = root(2 * half, k, inverse);
    for (long k = 0; k < m; k++) {
        t.fine[k] = root(m * m, k, inverse);
        t.coarse[k] = root(m, k, inverse);
    }
    return t;
}

static void transform_row(const transform_t *t, complex_t *row) {
    for (long i = 0; i < m; i++) {
        long j = reversed[i];
        if (i < j) {
            complex_t swap = row[i];
            row[i] = row[j];
            row[j] = swap;
        }
    }
    for (long i = 0; i + 1 < m; i += 2) {
        complex_t a = row[i], b = row[i + 1];
        row[i] = (complex_t){a.re + b.re, a.im + b.im};
        row[i + 1] = (complex_t){a.re - b.re, a.im - b.im};
    }
    for (long half = 2; half < m; half *= 2) {
        const complex_t *roots = t->roots + half;
        for (complex_t *pair = row; pair < row + m; pair += 2 * half)
            for (long k = 0; k < half; k++) {
                complex_t a = pair[k], b = times(roots[k], pair[half + k]);
                pair[k] = (complex_t){a.re + b.re, a.im + b.im};
                pair[half + k] = (complex_t){a.re - b.re, a.im - b.im};
            }
    }
    if (t->inverse) {
        double scale = 1.0 / (double)m;
        for (long i = 0; i < m; i++) {
            row[i].re *= scale;
            row[i].im *= scale;
        }
    }
}

static void twiddle(const transform_t *t, long i, complex_t *row) {
    for (long j = 0, exponent = 0; j < m; j++, exponent += i)
        row[j] = times(row[j], times(t->coarse[exponent >> bits], t->fine[exponent & (m - 1)]));
}

/* The own rows become those of the transposed matrix. */
static void transpose(void) {
    for (long column = 0; column < m; column += 8)
        for (long i = 0; i < n; i++)
            for (long j = column; j < column + 8 && j < m; j++)
                packed[j * n + i] = rows[i * m + j];
    int block = (int)(2 * n * n);
    if (one_sided) {
        MPI_Win_fence(0, window);
        for (int turn = 0; turn < size; turn++) {
            int to = (rank + turn) % size;
            MPI_Put(packed + to * n * n, block, MPI_DOUBLE, to, rank * n * n, block, MPI_DOUBLE, window);
        }
        MPI_Win_fence(0, window);
    } else {
        MPI_Alltoall(packed, block, MPI_DOUBLE, arrived, block, MPI_DOUBLE, MPI_COMM_WORLD);
    }
    for (int from = 0; from < size; from++)
        for (long j = 0; j < n; j++)
            memcpy(rows + j * m + from * n, arrived + (from * n + j) * n, n * sizeof(complex_t));
}

int main(int argc, char **argv) {
    start(&argc, &argv, 2);
    m = atol(argv[3]);
    long iterations = atol(argv[4]);
    if (m % size != 0)
        fail("the side is not a multiple of the number of processes");
    n = m / size;
    for (bits = 0; 1L << bits < m; bits++)
        ;
    reversed = allocate(m * sizeof *reversed);
    for (long i = 0; i < m; i++)
        for (long b = 0; b < bits; b++)
            reversed[i] |= (i >> b & 1) << (bits - 1 - b);
    rows = allocate(n * m * sizeof(complex_t));
    packed = allocate(n * m * sizeof(complex_t));
    MPI_Win_allocate(n * m * sizeof(complex_t), sizeof(complex_t), MPI_INFO_NULL, MPI_COMM_WORLD, &arrived, &window);
    read_input(argv[2], rank * n * m * sizeof(complex_t), rows, n * m * sizeof(complex_t));
    transform_t transforms[2] = {prepare(0), prepare(1)};
    MPI_Barrier(MPI_COMM_WORLD);
    double started = MPI_Wtime();
    for (long iteration = 0; iteration < iterations; iteration++) {
        const transform_t *t = &transforms[iteration % 2];
        transpose();
        for (long i = 0; i < n; i++) {
            transform_row(t, rows + i * m);
            twiddle(t, rank * n + i, rows + i * m);
        }
        transpose();
        for (long i = 0; i < n; i++)
            transform_row(t, rows + i * m);
        transpose();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - started;
    report_doubles(seconds, &rows->re, m, 2 * m);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
