#include "member/candidacy.h"

#include <stdlib.h>

static void on_event(struct observer *observer, const struct baton_event *event)
{
    struct candidacy *candidacy = OBSERVER_OF(struct candidacy, observer);

    candidacy->on_event(candidacy, event);
}

static void discard(struct candidacy *candidacy)
{
    if (candidacy->election) {
        election_fini(candidacy->election);
        free(candidacy->election);
        candidacy->election = NULL;
    }
    candidacy->is_leaving = false;
}

static void on_left(struct departure *departure)
{
    struct candidacy *candidacy =
        (struct candidacy *)((char *)departure - offsetof(struct candidacy, departure));

    discard(candidacy);
    candidacy->left(candidacy);
}

static void leave(struct candidacy *candidacy)
{
    candidacy->departure.left = on_left;
    election_leave(candidacy->election, &candidacy->departure);
}

int candidacy_begin(struct candidacy *candidacy, struct member *member, const char *name,
                    struct lease_watch *lease,
                    void (*handler)(struct candidacy *candidacy, const struct baton_event *event),
                    struct baton_error *reterr)
{
    int code;

    candidacy->election = calloc(1, election_bytes(name));
    if (!candidacy->election || election_init(candidacy->election, name, lease) != BATON_OK) {
        free(candidacy->election);
        candidacy->election = NULL;
        return error_set(reterr, BATON_ENOMEM, "election \"%s\": out of memory", name);
    }
    candidacy->on_event = handler;
    candidacy->observer.on_event = on_event;
    election_observe(candidacy->election, &candidacy->observer);
    candidacy->is_joining = true;
    code = election_join(candidacy->election, member, false, NULL, reterr);
    candidacy->is_joining = false;
    if (code != BATON_OK) {
        discard(candidacy);
    } else if (candidacy->is_leaving) { /* by an event that came meanwhile */
        leave(candidacy);
    }
    return code;
}

void candidacy_leave(struct candidacy *candidacy, void (*left)(struct candidacy *candidacy))
{
    candidacy->left = left;
    if (!candidacy->election) {
        left(candidacy);
    } else if (!candidacy->is_leaving) {
        candidacy->is_leaving = true;
        if (!candidacy->is_joining) {
            leave(candidacy);
        }
    }
}
