/* One server of a libraft cluster on its own uv backend, for `baton bench --provider libraft`.
 *
 *   baton-bench-libraft SLOT NODES ACT-FILE DATA default|tuned ADDRESS...
 *
 * It stamps in the act file when its state turned to leader. States change inside the loop, so that
 * a look after each of its turns sees every change at once. "default" leaves libraft's times alone
 * (1000 ms, 100 ms); "tuned" sets 20 ms and 2 ms. SIGUSR1 transfers leadership.
 */
#include "cli/act.h"

#include <errno.h>
#include <raft.h>
#include <raft/uv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct server {
    uv_loop_t loop;
    uv_check_t check;
    uv_signal_t transfer_signal;
    struct raft_uv_transport transport;
    struct raft_io io;
    struct raft_fsm fsm;
    struct raft raft;
    struct raft_transfer transfer;
    struct act *act;
    unsigned slot;
    bool was_leader;
};

static int apply(struct raft_fsm *fsm, const struct raft_buffer *data, void **result)
{
    (void)fsm;
    (void)data;
    *result = NULL;
    return 0;
}

static int snapshot(struct raft_fsm *fsm, struct raft_buffer **pieces, unsigned *count)
{
    (void)fsm;
    *count = 1;
    *pieces = raft_malloc(sizeof(**pieces));
    if (!*pieces) {
        return RAFT_NOMEM;
    }
    (*pieces)[0] = (struct raft_buffer){.base = raft_malloc(8), .len = 8};
    return (*pieces)[0].base ? 0 : RAFT_NOMEM;
}

static int restore(struct raft_fsm *fsm, struct raft_buffer *data)
{
    (void)fsm;
    raft_free(data->base);
    return 0;
}

static void on_turn(uv_check_t *handle)
{
    struct server *server = handle->data;
    bool is_leader = raft_state(&server->raft) == RAFT_LEADER;
    if (is_leader && !server->was_leader) {
        act_stamp_acquired(server->act, server->slot, server->raft.current_term, clock_now());
    } else if (!is_leader && server->was_leader) {
        act_stamp_lost(server->act, server->slot, clock_now());
    }
    server->was_leader = is_leader;
}

static void on_transferred(struct raft_transfer *transfer)
{
    (void)transfer;
}

static void on_transfer_signal(uv_signal_t *handle, int number)
{
    struct server *server = handle->data;
    (void)number;
    (void)raft_transfer(&server->raft, &server->transfer, 0, on_transferred);
}

static void demand(int code, const char *what)
{
    if (code != 0) {
        (void)fprintf(stderr, "%s: error %d\n", what, code);
        exit(1);
    }
}

static void bootstrap(struct server *server, unsigned nodes, char **addresses)
{
    struct raft_configuration configuration;
    raft_configuration_init(&configuration);
    for (unsigned i = 0; i < nodes; i++) {
        demand(raft_configuration_add(&configuration, i + 1, addresses[i], RAFT_VOTER), "add");
    }
    int code = raft_bootstrap(&server->raft, &configuration);
    demand(code == RAFT_CANTBOOTSTRAP ? 0 : code, "bootstrap");
    raft_configuration_close(&configuration);
}

static void watch(struct server *server)
{
    server->check.data = server;
    server->transfer_signal.data = server;
    demand(uv_check_init(&server->loop, &server->check), "check");
    demand(uv_check_start(&server->check, on_turn), "check");
    demand(uv_signal_init(&server->loop, &server->transfer_signal), "signal");
    demand(uv_signal_start(&server->transfer_signal, on_transfer_signal, SIGUSR1), "signal");
}

int main(int argc, char **argv)
{
    static struct server server;
    unsigned nodes = argc > 5 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (nodes == 0 || argc != (int)nodes + 6) {
        (void)fprintf(stderr, "usage: %s SLOT NODES ACT-FILE DATA default|tuned ADDRESS...\n",
                      argv[0]);
        return 64;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* a killed peer's socket must not end us */
    server.slot = (unsigned)strtoul(argv[1], NULL, 10);
    demand(act_open(&server.act, argv[3], NULL), "act file");
    demand(mkdir(argv[4], 0700) != 0 && errno != EEXIST, "mkdir");
    demand(uv_loop_init(&server.loop), "loop");
    demand(raft_uv_tcp_init(&server.transport, &server.loop), "transport");
    demand(raft_uv_init(&server.io, &server.loop, argv[4], &server.transport), "io");
    server.fsm =
        (struct raft_fsm){.version = 1, .apply = apply, .snapshot = snapshot, .restore = restore};
    demand(raft_init(&server.raft, &server.io, &server.fsm, server.slot + 1, argv[6 + server.slot]),
           "init");
    if (strcmp(argv[5], "tuned") == 0) {
        raft_set_election_timeout(&server.raft, 20);
        raft_set_heartbeat_timeout(&server.raft, 2);
    }
    bootstrap(&server, nodes, argv + 6);
    watch(&server);
    demand(raft_start(&server.raft), "start");
    return uv_run(&server.loop, UV_RUN_DEFAULT);
}
