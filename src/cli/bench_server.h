/* The Redis server that a benchmark needs: an empty one, on loopback, without a disk. */
#ifndef CLI_BENCH_SERVER_H
#define CLI_BENCH_SERVER_H

#include "base/error.h"

#include <sys/types.h>

struct bench_server {
    pid_t pid;        /* 0: does not run */
    char address[32]; /* "127.0.0.1:PORT"; stays the same over restarts */
};

/* Starts it, the first time on a free port, and waits until it answers. BATON_ENOENT: there is no
 * redis-server on the PATH; BATON_ETIMEDOUT. */
int bench_server_start(struct bench_server *server, struct baton_error *reterr);
/* Kills it, with all that it knew. */
void bench_server_kill(struct bench_server *server);

#endif
