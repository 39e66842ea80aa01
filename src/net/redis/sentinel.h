/* Which server is the master of a service, as the Sentinels say: one of them is asked and listened
 * to; when it fails, or insists on a master that does not answer, the next one is.
 *
 *   sentinel_open ─▶ on_master(host, port) whenever it is told ── on_down: none of them answers
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
    /* None answers, or the one that does knows no such service. It goes on asking. */
    void (*on_down)(void *userdata, const struct baton_error *error);
    void *userdata;
};

/* BATON_ENOMEM. */
int sentinel_open(struct sentinel **ret, const struct sentinel_options *options,
                  struct baton_error *reterr);
void sentinel_close(struct sentinel *sentinel, void (*closed)(void *userdata), void *userdata);
/* Whether the master that was told is of no use: it is asked for more often then, at once too. */
void sentinel_set_urgent(struct sentinel *sentinel, bool is_urgent);

/* ---- Pure: sentinel_parse.c ------------------------------------------------------------------ */

/* What is published as +switch-master: "SERVICE OLD-HOST OLD-PORT HOST PORT". False: another
 * service, or something else. */
bool sentinel_parse_switch(const char *service, const char *text, size_t bytes,
                           char ret_host[REDIS_HOST_MAX], int *ret_port);
/* What GET-MASTER-ADDR-BY-NAME answers: a host and a port. */
bool sentinel_parse_master(const redisReply *reply, char ret_host[REDIS_HOST_MAX], int *ret_port);

#endif
