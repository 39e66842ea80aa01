/* A cluster of real processes on this machine's loopback, for the demonstration and the benchmark.
 *
 * Each node is a `baton node` of this program, with its own data directory under one temporary
 * directory, and stamps its leadership in one shared file (cli/act.h). Nodes die with the process
 * that started them, unless they are kept.
 */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H

#include "cli/act.h"
#include "cli/bench_memory.h"
#include "cli/bench_network.h"

#include <jansson.h>
#include <sys/types.h>

enum { CLUSTER_NODES_MAX = 9 };

enum cluster_state { CLUSTER_RUNNING, CLUSTER_DEAD, CLUSTER_STOPPED, CLUSTER_CUT_OFF };

struct cluster_node {
    char name[8];
    char address[32];
    char data[128];
    pid_t pid;
    enum cluster_state state;
};

struct cluster_plan {
    unsigned nodes;
    const char *preset;
    const char *guardian; /* "on" or "off" */
    const char *resident_mb;
    const char *hang;  /* NULL: not set */
    bool is_kept;      /* the nodes outlive this process */
    bool is_contained; /* each is process 1 of a PID namespace of its own; takes CAP_SYS_ADMIN */
    /* A program of another system instead of `baton node`, which stamps through the same file:
     * PROGRAM SLOT NODES ACT-FILE DATA MODE ADDRESS... ; signals go to its process group, and
     * SIGUSR1 asks it to hand leadership over. NULL: none. */
    const char *program;
    const char *mode; /* "default" or "tuned" */
    /* The server that holds the election, if the nodes do not: its URL for `baton node`; for
     * another program its address, in place of the nodes' addresses. */
    const char *server;
    const char *const *servers; /* one for each node, in place of `server`; NULL: that one */
    /* Each node is at a host of its own, and they trust each other by a common key. The network
     * outlives the cluster. NULL: they are on loopback. */
    struct bench_network *network;
    unsigned first_host; /* of the network: the first node's */
    /* Each node is in a memory cgroup of its own, which outlives the cluster. NULL: none is. */
    const struct bench_memory *memory;
};

struct cluster {
    struct cluster_plan plan;
    struct cluster_node nodes[CLUSTER_NODES_MAX];
    char dir[64];
    char act_path[96];
    struct act *act;
};

/* Removes a folder with all that is in it. */
void cluster_remove(const char *folder);

/* A new file with the key that the members of a group share. BATON_EIO. */
int cluster_make_key(const char *path, struct baton_error *reterr);

/* Returns "127.0.0.1:PORT" with a port that is free now. */
int cluster_free_address(char *ret, size_t ret_bytes, struct baton_error *reterr);

int cluster_open(struct cluster *cluster, const struct cluster_plan *plan,
                 struct baton_error *reterr);
enum cluster_rest {
    CLUSTER_NOTHING, /* the nodes end and their files are removed */
    CLUSTER_FILES,   /* the nodes end; their files stay, for the logs */
    CLUSTER_ALL,     /* the nodes go on */
};
void cluster_close(struct cluster *cluster, enum cluster_rest rest);

int cluster_start(struct cluster *cluster, unsigned node, struct baton_error *reterr);
void cluster_kill(struct cluster *cluster, unsigned node); /* and waits for its end */
/* Lets the node's next hang last no longer than its first. */
void cluster_forget_hangs(const struct cluster *cluster, unsigned node);
void cluster_signal(struct cluster *cluster, unsigned node, int number);
/* The process that takes part, where the node is contained: the first child of its process 1. 0: it
 * has none. */
pid_t cluster_elector(const struct cluster *cluster, unsigned node);

/* Sends one request to the node's control socket. `ret_answer` may be NULL. */
int cluster_ask(const struct cluster *cluster, unsigned node, json_t *request_taken, span timeout,
                json_t **ret_answer, struct baton_error *reterr);
int cluster_cut_off(struct cluster *cluster, unsigned node, bool on, struct baton_error *reterr);

/* Returns the node that acted as leader last and has not stamped a loss; -1: none. */
int cluster_leader(const struct cluster *cluster);

/* Waits until a node other than `old` (-1: any) has acquired leadership since `since`. Returns its
 * number, or -1 at the deadline. */
int cluster_wait_leader(const struct cluster *cluster, int old, instant since, instant deadline);
/* The node that leads, now or by the deadline; -1: none. */
int cluster_await_leader(const struct cluster *cluster, instant deadline);

/* Returns how long no node led: from the fault, or from the old leader's stamp if that is later. */
span cluster_gap(const struct cluster *cluster, int old, int heir, instant fault);

#endif
