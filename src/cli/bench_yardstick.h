/* What `redis-benchmark` gets out of the same server with the same script: the measure beside which
 * `baton bench renew` puts its own figure.
 *
 * It is handed EVALSHA of the renewing script with as many keys as there are elections, and locks
 * that are all held by one id in one epoch, so that each call is granted whichever key it hits.
 */
#ifndef CLI_BENCH_YARDSTICK_H
#define CLI_BENCH_YARDSTICK_H

#include "net/redis/redis.h"

struct yardstick {
    struct redisContext *connection;
    struct redis_address address;
    char sha[48]; /* of the renewing script */
    unsigned elections;
};

/* Connects, and lays the keys out. With ours: also so that the server gives out our locks at once,
 * as one does that has been running for longer than a lease. */
int yardstick_open(struct yardstick *yardstick, const char *url, unsigned elections,
                   struct baton_error *reterr);
/* NULL, or why redis-benchmark cannot be used here. */
const char *yardstick_obstacle(const struct yardstick *yardstick);
/* Renewals a second, over one connection with `depth` of them under way. */
int yardstick_measure(const struct yardstick *yardstick, unsigned depth, double seconds,
                      double *ret_rate, struct baton_error *reterr);
/* The name of our election `number`. */
void yardstick_election(unsigned number, char ret[64]);
/* Removes the keys, theirs and ours. */
void yardstick_close(struct yardstick *yardstick);

#endif
