/* The option tables. Options that several commands share form a group. */
#ifndef CLI_GROUPS_H
#define CLI_GROUPS_H

#include "options/option.h"

extern const struct option_group group_general;   /* help, config, log */
extern const struct option_group group_election;  /* provider, node, election */
extern const struct option_group group_cluster;   /* node, provider */
extern const struct option_group group_peers;     /* the embedded Raft provider */
extern const struct option_group group_timing;    /* preset and what overrides it */
extern const struct option_group group_serve;     /* status on HTTP */
extern const struct option_group group_agent;     /* the agent's socket */
extern const struct option_group group_ask_agent; /* where to ask it */
extern const struct option_group group_socket;    /* where it listens */
extern const struct option_group group_of_agent;  /* of an election of it, in place of a node */
extern const struct option_group group_change;    /* of a key */
extern const struct option_group group_subscribe;
extern const struct option_group group_client;   /* which node to ask */
extern const struct option_group group_answer;   /* and how long to wait */
extern const struct option_group group_ask_http; /* for queries that a status server answers too */
extern const struct option_group group_output;   /* json */
extern const struct option_group group_run;
extern const struct option_group group_once;
extern const struct option_group group_cron;
extern const struct option_group group_pass;
extern const struct option_group group_join;
extern const struct option_group group_watch;
extern const struct option_group group_demo;
extern const struct option_group group_bench;
extern const struct option_group group_bench_renew;
extern const struct option_group group_bench_state;
extern const struct option_group group_bench_placement;
extern const struct option_group group_bench_work;
extern const struct option_group group_pool;        /* which pool, and where it is */
extern const struct option_group group_worker;      /* of a worker of it */
extern const struct option_group group_pool_leader; /* of a process that may lead it */
extern const struct option_group group_submit;      /* of an item */
extern const struct option_group group_ask_pool;    /* how long to wait */
extern const struct option_group group_fleet;       /* which process of a fleet to ask */
extern const struct option_group group_fleet_apply; /* of some of its verbs */
extern const struct option_group group_help;
extern const struct option_group group_measure; /* hidden: for bench and tests */

#endif
