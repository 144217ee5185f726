/* Pi by an integral whose strips are dealt out to all ranks: `mpicc -O2 -o pi pi.c`.
 *
 * Every rank also says on which worker it runs, so that one sees that they are where the hostfile says.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    const long strips = 10 * 1000 * 1000;
    double part = 0.0, pi = 0.0;
    for (long strip = rank; strip < strips; strip += size) {
        double x = (strip + 0.5) / strips;
        part += 4.0 / (1.0 + x * x) / strips;
    }
    MPI_Allreduce(&part, &pi, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);

    const char *index = getenv("MUSTER_ROLE_INDEX"), *node = getenv("MUSTER_NODE");
    printf("rank %d of %d is on worker %s, node %s\n", rank, size, index ? index : "?", node ? node : "?");
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("pi is about %.9f\n", pi);
    }
    MPI_Finalize();
    return fabs(pi - 3.14159265358979) < 1e-9 ? 0 : 1;
}
