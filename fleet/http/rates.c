#include "fleet/http/rates.h"

#include <string.h>

enum { THOUSAND = 1000, NS_PER_THOUSANDTH = 1000000, IPV6_GROUPS = 4 };

void rates_init(struct rates *rates, uint32_t per_s, uint64_t secret)
{
    *rates = (struct rates){.per_s = per_s, .secret = secret};
}

#define MAPPED "[::ffff:" /* an IPv4 address, as a socket of IPv6 has it */

/* Bytes of what counts as the address: all in front of the port, and of IPv6 four groups. */
static size_t counted(const char *address)
{
    const char *end = strrchr(address, ':');
    unsigned groups = 0;

    if (*address != '[' || strncmp(address, MAPPED, sizeof(MAPPED) - 1) == 0) {
        return end != NULL ? (size_t)(end - address) : strlen(address);
    }
    for (end = address + 1; *end != '\0' && *end != ']'; end++) {
        if (*end == ':' && (++groups == IPV6_GROUPS || end[1] == ':')) {
            break;
        }
    }
    return (size_t)(end - address);
}

/* FNV-1a, from the secret on, and mixed. */
static size_t place_of(const struct rates *rates, const char *address)
{
    uint64_t hash = 14695981039346656037u ^ rates->secret;

    for (size_t i = 0, bytes = counted(address); i < bytes; i++) {
        hash = (hash ^ (unsigned char)address[i]) * 1099511628211u;
    }
    hash ^= rates->secret >> 32;
    hash *= 0xff51afd7ed558ccdu;
    return (size_t)(hash >> 40) % RATES_PLACES;
}

bool rates_take(struct rates *rates, const char *address, instant now)
{
    struct rates_place *place = &rates->places[place_of(rates, address)];
    const uint64_t full = (uint64_t)rates->per_s * 2 * THOUSAND;

    if (rates->per_s == 0) {
        return true;
    }
    if (!place->is_used) {
        *place = (struct rates_place){now, full, true};
    } else if (instant_before(place->at, now)) {
        uint64_t ms = (uint64_t)instant_since(now, place->at).ns / NS_PER_THOUSANDTH;
        uint64_t more = ms > full ? full : ms * rates->per_s;

        if (more > 0) { /* less than a millisecond counts with the next request */
            place->thousandths =
                place->thousandths + more > full ? full : place->thousandths + more;
            place->at = now;
        }
    }
    if (place->thousandths < THOUSAND) {
        return false;
    }
    place->thousandths -= THOUSAND;
    return true;
}
