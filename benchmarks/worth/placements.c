/* Measures placements of ranks, one after another, within one MPI job that has a rank on every GPU of a network.
 *   placements [--step SECONDS READY:BYTES,...] WORK:NODES...
 * NODES has a letter for each rank: the last one of its node's name, so `aabb` are two ranks on node-a and two on node-b.
 * WORK is a number, the MiB of an all-reduce, with `xTIMES` if it is repeated; `all-to-all-` before it means that, of so
 * many MiB for each rank; or it is `step`: a training step whose computing takes SECONDS and whose gradients, BYTES each,
 * are ready at READY seconds.
 * It prints `measured INDEX SECONDS` for each; ranks that a placement leaves out sleep meanwhile.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const ALL_TO_ALL = "all-to-all-";
enum { MOST_RANKS = 256, MOST_BUCKETS = 256, WARM_UP_FLOATS = 1 << 14, LOOK_MICROSECONDS = 2000 };

static int rank, size;
static char node_of[MOST_RANKS];
static double computing, ready[MOST_BUCKETS];
static int floats_of[MOST_BUCKETS], buckets;
static float *from, *to;

static void read_nodes(void) {
  char name[256] = "?";
  FILE *file = fopen("/run/machine", "r");
  if (!file || !fgets(name, sizeof name, file)) MPI_Abort(MPI_COMM_WORLD, 4);
  fclose(file);
  name[strcspn(name, "\n")] = 0;
  char letter = name[strlen(name) - 1];
  MPI_Allgather(&letter, 1, MPI_CHAR, node_of, 1, MPI_CHAR, MPI_COMM_WORLD);
}

static void read_step(const char *seconds, char *text) {
  computing = atof(seconds);
  for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
    double when;
    long bytes;
    if (buckets == MOST_BUCKETS || sscanf(word, "%lf:%ld", &when, &bytes) != 2) MPI_Abort(MPI_COMM_WORLD, 5);
    ready[buckets] = when;
    floats_of[buckets++] = bytes / sizeof *from;
  }
}

/* The ranks of a placement in its order: each takes the first rank of its node that no other has. */
static int members_of(const char *nodes, int *members) {
  char taken[MOST_RANKS] = {0};
  int count = 0;
  for (; nodes[count]; count++) {
    int one = 0;
    while (one < size && (taken[one] || node_of[one] != nodes[count])) one++;
    if (one == size) MPI_Abort(MPI_COMM_WORLD, 6);
    taken[one] = 1;
    members[count] = one;
  }
  return count;
}

static void all_reduce(MPI_Comm gang, int floats) { MPI_Allreduce(from, to, floats, MPI_FLOAT, MPI_SUM, gang); }

static void all_to_all(MPI_Comm gang, int floats) {
  int ranks;
  MPI_Comm_size(gang, &ranks);
  MPI_Alltoall(from, floats / ranks, MPI_FLOAT, to, floats / ranks, MPI_FLOAT, gang);
}

static void sleep_until(double moment) {
  double left = moment - MPI_Wtime();
  if (left <= 0) return;
  struct timespec span = {(time_t)left, (long)((left - (time_t)left) * 1e9)};
  nanosleep(&span, NULL);
}

/* A GPU computes while its rank sleeps; what is ready is exchanged, one bucket after the other. */
static void step(MPI_Comm gang, double began) {
  for (int i = 0; i < buckets; i++) {
    sleep_until(began + ready[i]);
    all_reduce(gang, floats_of[i]);
  }
  sleep_until(began + computing);
}

/* Seconds of one piece of work, of the rank that took the longest. */
static double measure(MPI_Comm gang, const char *work) {
  int mib = 0, times = 1, is_all_to_all = !strncmp(work, ALL_TO_ALL, strlen(ALL_TO_ALL));
  if (is_all_to_all) work += strlen(ALL_TO_ALL);
  if (*work != 's') sscanf(work, "%dx%d", &mib, &times);
  all_reduce(gang, WARM_UP_FLOATS); /* connections open at their first use */
  if (is_all_to_all) all_to_all(gang, WARM_UP_FLOATS);
  MPI_Barrier(gang);
  double began = MPI_Wtime(), own, longest;
  for (int i = 0; i < times; i++)
    if (is_all_to_all)
      all_to_all(gang, mib << 18);
    else if (mib)
      all_reduce(gang, mib << 18);
    else
      step(gang, MPI_Wtime());
  own = (MPI_Wtime() - began) / times;
  MPI_Allreduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, gang);
  return longest;
}

/* A barrier that leaves the cores to those who still measure: Open MPI's own polls. */
static void meet(void) {
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) usleep(LOOK_MICROSECONDS);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > MOST_RANKS) MPI_Abort(MPI_COMM_WORLD, 3);
  read_nodes();
  from = calloc(64 << 18, sizeof *from);
  to = calloc(64 << 18, sizeof *to);
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int index = 0;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--step") && i + 2 < argc) {
      read_step(argv[i + 1], argv[i + 2]);
      i += 2;
      continue;
    }
    char *nodes = strchr(argv[i], ':');
    if (!nodes) MPI_Abort(MPI_COMM_WORLD, 7);
    int members[MOST_RANKS], count = members_of(nodes + 1, members);
    MPI_Group_incl(world, count, members, &group);
    int own;
    MPI_Group_rank(group, &own);
    if (own != MPI_UNDEFINED) {
      MPI_Comm gang;
      MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &gang);
      double seconds = measure(gang, argv[i]);
      if (!own) {
        printf("measured %d %.6f\n", index, seconds);
        fflush(stdout);
      }
      MPI_Comm_free(&gang);
    }
    MPI_Group_free(&group);
    meet();
    index++;
  }
  MPI_Finalize();
  return 0;
}
