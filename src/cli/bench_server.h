/* The Redis server that a benchmark needs: an empty one, on loopback, without a disk. */
#ifndef CLI_BENCH_SERVER_H
#define CLI_BENCH_SERVER_H

#include "base/error.h"

#include <sys/types.h>

struct bench_server {
    pid_t pid;        /* 0: not running */
    char address[32]; /* "127.0.0.1:PORT"; a restart keeps it */
};

/* Starts the server and waits until it answers. The first start chooses a free port. BATON_ENOENT:
 * there is no redis-server on the PATH; BATON_ETIMEDOUT. */
int bench_server_start(struct bench_server *server, struct baton_error *reterr);
/* Kills the server; its data is lost. */
void bench_server_kill(struct bench_server *server);

#endif
