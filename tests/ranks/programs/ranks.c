/* A small MPI program that says where each of its ranks is, in words that a test reads.
 *   ranks [--env NAME]... [--exit RANK CODE] [--until FILE] [--allreduce MIB TIMES]
 * Each rank prints one line of NAME=VALUE words. Options that it does not know are printed too if they are of the form
 * --name=value, and else ignored, so that it can stand in for the benchmarks of the guides. --exit ends one rank with a code; --until waits for a file in the first rank's pod.
 */
#include <glob.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

/* The GPUs of the container: the device files that its runtime made. */
static void visible_gpus(char *text, size_t room) {
  glob_t found;
  text[0] = 0;
  if (glob("/dev/nvidia[0-9]*", 0, NULL, &found)) return;
  for (size_t i = 0; i < found.gl_pathc; i++)
    snprintf(text + strlen(text), room - strlen(text), "%s%s", i ? "," : "", found.gl_pathv[i] + strlen("/dev/nvidia"));
  globfree(&found);
}

/* The machine of the container, which the agent has written there. */
static void machine(char *text, int room) {
  FILE *file = fopen("/run/machine", "r");
  if (!file || !fgets(text, room, file)) strcpy(text, "?");
  text[strcspn(text, "\n")] = 0;
  if (file) fclose(file);
}

static void say_where(int argc, char **argv) {
  char line[4096], host[256], node[256], gpus[256];
  const char *names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMIX_LOCAL_RANK"};
  const char *local = NULL;
  gethostname(host, sizeof host);
  machine(node, sizeof node);
  visible_gpus(gpus, sizeof gpus);
  for (int i = 0; i < 3 && !local; i++) local = getenv(names[i]);
  snprintf(line, sizeof line, "rank=%d size=%d host=%s node=%s local=%s gpus=%s", rank, size, host, node,
           local ? local : "?", gpus);
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--env") && i + 1 < argc) {
      const char *value = getenv(argv[i + 1]);
      snprintf(line + strlen(line), sizeof line - strlen(line), " %s=%s", argv[i + 1], value ? value : "<unset>");
    } else if (!strncmp(argv[i], "--", 2) && strchr(argv[i], '='))
      snprintf(line + strlen(line), sizeof line - strlen(line), " %s", argv[i]);
  puts(line);
  fflush(stdout);
}

static void all_reduce(int mib, int times) {
  int count = mib << 18;
  float *from = calloc(count, sizeof *from), *to = calloc(count, sizeof *to);
  MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); /* connections open at their first use */
  MPI_Barrier(MPI_COMM_WORLD);
  double began = MPI_Wtime();
  for (int i = 0; i < times; i++) MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  double seconds = (MPI_Wtime() - began) / times;
  if (!rank) printf("allreduce mib=%d seconds=%.6f\n", mib, seconds);
}

/* On a busy machine MPICH over UCX may hang in MPI_Finalize, when all ranks have said where they are: seen with 4.0.2, one rank
 * waiting for its connections to close and the others for that rank. Its ranks end without it. */
static void leave(void) {
  MPI_Barrier(MPI_COMM_WORLD);
#ifdef MPICH_VERSION
  fflush(stdout);
  _exit(0);
#else
  MPI_Finalize();
#endif
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int own = rank, sum = 0;
  MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  say_where(argc, argv);
  if (sum != size * (size - 1) / 2) return 3;
  for (int i = 1; i + 1 < argc; i++) {
    if (!strcmp(argv[i], "--until")) {
      while (!rank && access(argv[i + 1], F_OK)) usleep(50000);
      MPI_Barrier(MPI_COMM_WORLD);
    }
    if (!strcmp(argv[i], "--exit") && i + 2 < argc && atoi(argv[i + 1]) == rank) exit(atoi(argv[i + 2]));
    if (!strcmp(argv[i], "--allreduce") && i + 2 < argc) all_reduce(atoi(argv[i + 1]), atoi(argv[i + 2]));
  }
  leave();
  return 0;
}
