/* The nodes of a Redis Cluster: a script goes to the one that has its first key's slot.
 *
 *   redis_cluster_run ──▶ the slot's node ──▶ answer
 *                     │  ▲ MOVED, ASK: the node that is named, which is connected to if need be
 *                     ▼  │ TRYAGAIN: the same again, a moment later
 *                  another node
 *
 * Which node has which slot is asked of `home`, the connection that the user made, and learned from
 * MOVED. A node that fails is forgotten: home says who has its slots now. The loop's thread only.
 */
#ifndef NET_REDIS_CLUSTER_H
#define NET_REDIS_CLUSTER_H

#include "net/redis/redis.h"

enum { CLUSTER_SLOTS = 16384, CLUSTER_HOSTS_MAX = 64 };

struct redis_cluster; /* opaque */

struct redis_cluster_options {
    struct redis *home; /* outlives the cluster's close */
    /* How a node is connected to: as home is, but for the host. .callbacks and .userdata are not
     * used; .address outlives the cluster. */
    struct redis_options redis;
    /* A connection to a node has come up, or failed. */
    void (*on_node_up)(void *userdata);
    void (*on_node_down)(void *userdata, const struct baton_error *error);
    void *userdata;
};

/* BATON_ENOMEM. */
int redis_cluster_open(struct redis_cluster **ret, const struct redis_cluster_options *options);
/* What is under way is answered with NULL first. */
void redis_cluster_close(struct redis_cluster *cluster, void (*closed)(void *userdata),
                         void *userdata);
/* Home has come up: asks it who has which slot. */
void redis_cluster_learn(struct redis_cluster *cluster);
/* Another host than this one, of those that are known: where to go if it fails. False: none is. */
bool redis_cluster_next_host(const struct redis_cluster *cluster, const struct redis_host *host,
                             struct redis_host *ret);

/* As redis_run(); the first word is the first key. */
int redis_cluster_run(struct redis_cluster *cluster, const struct redis_script *script,
                      int key_count, int count, const char **words, const size_t *lengths,
                      redis_reply_cb on_reply, void *userdata, uint64_t tag);
/* The connection to the node that has this key, if it is up and known; else NULL. */
struct redis *redis_cluster_node_of(const struct redis_cluster *cluster, const char *key);

/* The connections to its nodes that are up, home among them; how many, at most `max`. */
int redis_cluster_nodes(const struct redis_cluster *cluster, const struct redis **ret, int max);

/* ---- Pure: cluster_parse.c ------------------------------------------------------------------- */

/* Which slot a key is in: that of the first {…} in it, if it has one. */
unsigned redis_cluster_slot(const char *key, size_t bytes);
/* "MOVED SLOT HOST:PORT", "ASK SLOT HOST:PORT". The host may be "": whoever said so. False: no such
 * thing. */
bool redis_cluster_parse_redirection(const char *text, size_t bytes, unsigned *ret_slot,
                                     struct redis_host *ret);

/* One of CLUSTER SLOTS: [first, last, master, replica …]. */
struct cluster_range {
    unsigned first, last; /* both below CLUSTER_SLOTS, and in this order */
    struct redis_host master;
};
bool redis_cluster_parse_range(struct cluster_range *ret, const redisReply *reply);
/* A master or replica in it: [host, port, …]. The host may be "": whoever was asked. */
bool redis_cluster_parse_host(struct redis_host *ret, const redisReply *reply);

#endif
