/* Measures `redis-benchmark` on the same server with the same script, for comparison with `baton
 * bench renew`.
 *
 * redis-benchmark runs EVALSHA of the renewing script with as many keys as there are elections. All
 * locks have one holder and one epoch, so that the server grants each call, whichever key it has.
 */
#ifndef CLI_BENCH_YARDSTICK_H
#define CLI_BENCH_YARDSTICK_H

#include "net/redis/redis.h"

struct yardstick {
    struct redisContext *connection;
    struct redis_address address;
    char sha[48]; /* SHA-1 of the renewing script */
    unsigned elections;
};

/* Connects and creates the keys. The keys of our own elections also make the server grant locks at
 * once, as a server does that has run for longer than a lease. */
int yardstick_open(struct yardstick *yardstick, const char *url, unsigned elections,
                   struct baton_error *reterr);
/* Returns why redis-benchmark cannot be used here, or NULL. */
const char *yardstick_obstacle(const struct yardstick *yardstick);
/* Measures renewals per second over one connection, `depth` of them at a time. */
int yardstick_measure(const struct yardstick *yardstick, unsigned depth, double seconds,
                      double *ret_rate, struct baton_error *reterr);
/* Returns the name of our election `number`. */
void yardstick_election(unsigned number, char ret[64]);
/* Removes all keys. */
void yardstick_close(struct yardstick *yardstick);

#endif
