/* How many requests an address may send in a second: a bucket of tokens for each address, which
 * fills by `per_s` and holds twice as many.
 *
 * The table has a fixed size. Two addresses that fall into one place share its bucket while both
 * send; so a flood from many addresses costs no memory, and its senders share what one may send.
 * The place depends on a secret number, so nobody can choose whom to share with. An IPv6 host owns
 * 2^64 addresses: the upper half counts as its address. Pure.
 */
#ifndef FLEET_HTTP_RATES_H
#define FLEET_HTTP_RATES_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

enum { RATES_PLACES = 1024 };

struct rates {
    uint32_t per_s; /* 0: no limit */
    uint64_t secret;
    struct rates_place {
        instant at; /* of the latest request */
        uint64_t thousandths;
        bool is_used;
    } places[RATES_PLACES];
};

void rates_init(struct rates *rates, uint32_t per_s, uint64_t secret);

/* Whether a request of this "ADDRESS:PORT" may be answered; then it is counted. */
bool rates_take(struct rates *rates, const char *address, instant now);

#endif
