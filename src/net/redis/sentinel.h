/* Finds the master of a service by its Sentinels: asks one of them and subscribes to it. If it
 * fails, or insists on a master that does not answer, the next Sentinel is used.
 *
 *   sentinel_open ─▶ on_master(host, port) at each reply and notice ── on_down: no Sentinel answers
 *
 * The loop's thread only.
 */
#ifndef NET_REDIS_SENTINEL_H
#define NET_REDIS_SENTINEL_H

#include "net/redis/redis.h"

struct sentinel; /* opaque */

struct sentinel_options {
    uv_loop_t *loop;
    struct logger *logger;               /* or NULL */
    const struct redis_address *address; /* has Sentinels; copied */
    const char *name;                    /* for CLIENT SETNAME; or NULL */
    span answer_timeout;
    /* The same again and again is nothing new: redis_move() may be called each time. */
    void (*on_master)(void *userdata, const char *host, int port);
    /* No Sentinel answers, or the one that does has no such service. It goes on asking. */
    void (*on_down)(void *userdata, const struct baton_error *error);
    void *userdata;
};

/* BATON_ENOMEM. */
int sentinel_open(struct sentinel **ret, const struct sentinel_options *options,
                  struct baton_error *reterr);
void sentinel_close(struct sentinel *sentinel, void (*closed)(void *userdata), void *userdata);
/* Whether the master that was named is unusable: then it asks more often, and at once. */
void sentinel_set_urgent(struct sentinel *sentinel, bool is_urgent);

/* ---- Pure: sentinel_parse.c ------------------------------------------------------------------ */

/* The message of +switch-master: "SERVICE OLD-HOST OLD-PORT HOST PORT". False: another service, or
 * another message. */
bool sentinel_parse_switch(const char *service, const char *text, size_t bytes,
                           char ret_host[REDIS_HOST_MAX], int *ret_port);
/* The reply of GET-MASTER-ADDR-BY-NAME: a host and a port. */
bool sentinel_parse_master(const redisReply *reply, char ret_host[REDIS_HOST_MAX], int *ret_port);

#endif
