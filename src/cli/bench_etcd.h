/* Three etcd servers on loopback, and etcd's own client, beside which `baton bench state` measures.
 *
 * The client is a program in Go (bench/etcd_writes), which is built beside this program when it is
 * first needed.
 */
#ifndef CLI_BENCH_ETCD_H
#define CLI_BENCH_ETCD_H

#include "base/clock.h"
#include "base/error.h"

#include <sys/types.h>

/* What is measured of one group. */
struct bench_writes {
    unsigned clients;
    unsigned bytes; /* of a value */
    span warm_up, length;
    /* Results: */
    double rate; /* writes/s */
    double p50_ms, p99_ms;
    double client_cpu_s; /* processor time of the clients, with the warm-up */
};

enum { BENCH_ETCD_SERVERS = 3 };

struct bench_etcd {
    pid_t pids[BENCH_ETCD_SERVERS]; /* 0: not running */
    char peers[BENCH_ETCD_SERVERS][32];
    char clients[BENCH_ETCD_SERVERS][32];
    char program[4200]; /* the client's */
    char output[96];    /* file for what it prints */
};

/* Starts them, with their files within `folder`. BATON_ENOENT: what is needed is not installed; the
 * error names the packages. BATON_EIO; BATON_ECANCELED: interrupted. */
int bench_etcd_start(struct bench_etcd *etcd, const char *folder, struct baton_error *reterr);
/* BATON_ECANCELED: interrupted. */
int bench_etcd_measure(struct bench_etcd *etcd, struct bench_writes *writes,
                       struct baton_error *reterr);
void bench_etcd_kill(struct bench_etcd *etcd);

#endif
