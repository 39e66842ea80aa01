#include "guardian/hang.h"

#include "guardian/mutants.h"

#ifdef BATON_MUTANTS
enum hang_mutant hang_mutant;
#endif

enum { LOOKS = 8 }; /* within one bound */

void hang_init(struct hang *hang, span bound)
{
    *hang = (struct hang){.bound = bound, .next = INSTANT_NEVER};
}

static bool is_watched(const struct hang *hang, const struct hang_look *look)
{
    return hang->bound.ns > 0 && !hang->has_killed && instant_before(look->now, look->lease);
}

/* The first look after a time without leadership comes late by any measure, too. */
static bool is_late(const struct hang *hang, const struct hang_look *look)
{
    return hang->next.ns == INSTANT_NEVER.ns ||
           instant_since(look->now, hang->next).ns > hang->bound.ns / LOOKS;
}

enum hang_verdict hang_take(struct hang *hang, const struct hang_look *look)
{
    instant limit;

    if (look->is_dead || (HANG_MUTANT(CERTIFIES_UNPROVEN) && hang->has_killed)) {
        return HANG_CERTIFY;
    }
    if (!is_watched(hang, look)) {
        hang->next = INSTANT_NEVER;
        return HANG_WAIT;
    }
    if (look->is_starved && !HANG_MUTANT(KILLS_STARVED)) {
        hang->since = look->now;
    }
    if (is_late(hang, look) && !(HANG_MUTANT(COUNTS_ASLEEP) && hang->since.ns > 0)) {
        hang->since = look->now;
    }
    if (instant_before(hang->since, look->beat)) {
        hang->since = look->beat;
    }
    limit = instant_add(hang->since, hang->bound);
    if (!instant_before(look->now, limit)) {
        hang->has_killed = true;
        hang->next = INSTANT_NEVER;
        return HANG_KILL;
    }
    hang->next = instant_min(limit, instant_add(look->now, SPAN_NS(hang->bound.ns / LOOKS)));
    return HANG_WAIT;
}

span hang_bound(span wanted, unsigned kills, span lease)
{
    span bound = wanted;

    while (kills-- > 0 && bound.ns < lease.ns) {
        bound.ns *= 2;
    }
    return bound.ns < lease.ns ? bound : lease;
}
