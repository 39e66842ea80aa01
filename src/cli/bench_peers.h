/* The peers that `make bench` compares with: a three-node etcd, and libraft's own cluster. */
#ifndef CLI_BENCH_PEERS_H
#define CLI_BENCH_PEERS_H

#include "cli/command.h"

struct bench_round {
    span failover; /* from the fault to another who leads and acts */
    span gap;      /* nobody led */
};

/* --provider etcd, libraft, libraft-tuned. BATON_ENOENT: the peer is not installed. */
int bench_peer(const struct invocation *invocation, struct bench_round *rounds, size_t count,
               struct baton_error *reterr);

#endif
