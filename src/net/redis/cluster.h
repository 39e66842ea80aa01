/* The nodes of a Redis Cluster: a script goes to the node of its first key's slot.
 *
 *   redis_cluster_run ──▶ the slot's node ──▶ reply
 *                     │  ▲ MOVED, ASK: to the named node, which is connected if necessary
 *                     ▼  │ TRYAGAIN: to the same node, a moment later
 *                  another node
 *
 * The map of slots comes from `home`, the connection that the user made, and from MOVED. A node
 * that fails is forgotten; home then names the new node of its slots. Only on the loop's thread.
 */
#ifndef NET_REDIS_CLUSTER_H
#define NET_REDIS_CLUSTER_H

#include "net/redis/redis.h"

enum { CLUSTER_SLOTS = 16384, CLUSTER_HOSTS_MAX = 64 };

struct redis_cluster; /* opaque */

struct redis_cluster_options {
    struct redis *home; /* outlives the cluster */
    /* Options for the connections to nodes: as home's, except for the host. .callbacks and
     * .userdata are not used; .address outlives the cluster. */
    struct redis_options redis;
    /* Called when a connection to a node is up or has failed. */
    void (*on_node_up)(void *userdata);
    void (*on_node_down)(void *userdata, const struct baton_error *error);
    void *userdata;
};

/* BATON_ENOMEM. */
int redis_cluster_open(struct redis_cluster **ret, const struct redis_cluster_options *options);
/* Answers the requests under way with NULL, then closes. */
void redis_cluster_close(struct redis_cluster *cluster, void (*closed)(void *userdata),
                         void *userdata);
/* Passes the changes at .address on to the connections to nodes, as redis_renew() does. */
void redis_cluster_renew(struct redis_cluster *cluster);
/* Asks home for the map of slots; call this when home is up. */
void redis_cluster_learn(struct redis_cluster *cluster);
/* A known host other than `host`, to try if that one fails. False: none. */
bool redis_cluster_next_host(const struct redis_cluster *cluster, const struct redis_host *host,
                             struct redis_host *ret);

/* As redis_run(). The first argument is the first key, and determines the slot. */
int redis_cluster_run(struct redis_cluster *cluster, const struct redis_script *script,
                      int key_count, int count, const char **arguments, const size_t *lengths,
                      redis_reply_cb on_reply, void *userdata, uint64_t tag);
/* The connection to the key's node. NULL: the node is not known, or its connection is not up. */
struct redis *redis_cluster_node_of(const struct redis_cluster *cluster, const char *key);

/* Fills in the nodes' connections that are up, with home; returns how many, at most `max`. */
int redis_cluster_nodes(const struct redis_cluster *cluster, const struct redis **ret, int max);

/* ---- Pure: cluster_parse.c ------------------------------------------------------------------- */

/* The slot of a key: the hash of its first {…}, if it has one. */
unsigned redis_cluster_slot(const char *key, size_t bytes);
/* Parses "MOVED SLOT HOST:PORT" or "ASK SLOT HOST:PORT". The host may be "": the node that sent it.
 * False: neither of the two. */
bool redis_cluster_parse_redirection(const char *text, size_t bytes, unsigned *ret_slot,
                                     struct redis_host *ret);

/* An element of CLUSTER SLOTS: [first, last, master, replica …]. */
struct cluster_range {
    unsigned first, last; /* first <= last < CLUSTER_SLOTS */
    struct redis_host master;
};
bool redis_cluster_parse_range(struct cluster_range *ret, const redisReply *reply);
/* Parses a master or replica of it: [host, port, …]. The host may be "": the node that was
 * asked. */
bool redis_cluster_parse_host(struct redis_host *ret, const redisReply *reply);

#endif
