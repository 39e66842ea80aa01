/* Finds the master of a service: one Sentinel is asked and subscribed to; when it fails, or keeps
 * naming a master that does not answer, the next one follows.
 *
 *   sentinel_open ─▶ on_master(host, port) for each answer or notice ── on_down: none answers
 *
 * Only on the loop's thread.
 */
#ifndef NET_REDIS_SENTINEL_H
#define NET_REDIS_SENTINEL_H

#include "net/redis/redis.h"

struct sentinel; /* opaque */

struct sentinel_options {
    uv_loop_t *loop;
    struct logger *logger;               /* or NULL */
    const struct redis_address *address; /* with Sentinels; copied */
    const char *name;                    /* for CLIENT SETNAME; or NULL */
    span answer_timeout;
    /* May repeat the same master: redis_move() may be called each time. */
    void (*on_master)(void *userdata, const char *host, int port);
    /* No Sentinel answers, or none knows the service. The search goes on. */
    void (*on_down)(void *userdata, const struct baton_error *error);
    void *userdata;
};

/* BATON_ENOMEM. */
int sentinel_open(struct sentinel **ret, const struct sentinel_options *options,
                  struct baton_error *reterr);
void sentinel_close(struct sentinel *sentinel, void (*closed)(void *userdata), void *userdata);
/* Takes the Sentinels' password of `from`, for the next connections. */
void sentinel_renew(struct sentinel *sentinel, const struct redis_address *from);
/* Set this while the known master is unusable: Sentinels are then asked at once, and more often. */
void sentinel_set_urgent(struct sentinel *sentinel, bool is_urgent);

/* ---- Pure: sentinel_parse.c ------------------------------------------------------------------ */

/* Parses a +switch-master: "SERVICE OLD-HOST OLD-PORT HOST PORT". False: another service, or not
 * this format. */
bool sentinel_parse_switch(const char *service, const char *text, size_t bytes,
                           char ret_host[REDIS_HOST_MAX], int *ret_port);
/* Parses the reply to GET-MASTER-ADDR-BY-NAME: a host and a port. */
bool sentinel_parse_master(const redisReply *reply, char ret_host[REDIS_HOST_MAX], int *ret_port);

#endif
