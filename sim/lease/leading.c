/* Which contender leads at this instant, by its own clock. */
#include "sim/lease/leading.h"

bool contender_leads(const struct contest *contest, const struct contender *who)
{
    return who->is_up && who->update.held &&
           drift_local(&who->clock, contest->now).ns < who->update.end.ns;
}

struct contender *contest_leader(struct contest *contest)
{
    for (size_t i = 0; i < contest->profile.contenders; i++) {
        if (contender_leads(contest, &contest->contenders[i])) {
            return &contest->contenders[i];
        }
    }
    return NULL;
}
