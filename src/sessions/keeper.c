#include "sessions/keeper.h"

#include "sessions/mutants.h"
#include "sessions/sessions_int.h"

/* An end that was ordered may be lost with its leadership or its place in the log: again then. */
#define END_AGAIN SPAN_S(1)

static void set_expiry(struct keeper *keeper, struct session *session, instant expires)
{
    session->expires = expires;
    deadlines_change(&keeper->sessions->deadlines, &session->expiry, expires);
}

static void start_over(struct keeper *keeper, struct session *session, instant now)
{
    session->is_ending = false;
    session->is_dead = false;
    set_expiry(keeper, session,
               instant_add(now, SESSION_MUTANT(ENDS_TOO_EARLY)
                                    ? SPAN_NS(session->lifetime.ns / 10 * 9)
                                    : session->lifetime));
}

void keeper_begin(struct keeper *keeper, struct sessions *sessions, instant now)
{
    *keeper = (struct keeper){.sessions = sessions, .is_keeping = true};
    for (struct session *at = sessions_next(sessions, NULL); at; at = sessions_next(sessions, at)) {
        if (!SESSION_MUTANT(OLD_LIFETIMES_COUNT) || at->expires.ns == INSTANT_NEVER.ns) {
            start_over(keeper, at, now);
        }
    }
}

void keeper_stop(struct keeper *keeper)
{
    keeper->is_keeping = false;
}

void keeper_opened(struct keeper *keeper, uint64_t session, instant now)
{
    struct session *opened = keeper->is_keeping ? sessions_find(keeper->sessions, session) : NULL;

    if (opened && !SESSION_MUTANT(OPENED_NOT_KEPT)) {
        start_over(keeper, opened, now);
    }
}

bool keeper_renew(struct keeper *keeper, uint64_t session, instant now)
{
    struct session *renewed = keeper->is_keeping ? sessions_find(keeper->sessions, session) : NULL;

    if (!renewed ||
        ((renewed->is_ending || renewed->is_dead) && !SESSION_MUTANT(RENEWS_THE_ENDING))) {
        return !renewed && keeper->is_keeping && SESSION_MUTANT(RENEWS_THE_ENDED);
    }
    start_over(keeper, renewed, now);
    return true;
}

static void note_death(struct keeper *keeper, struct session *session, instant now)
{
    session->is_dead = true;
    set_expiry(keeper, session, now);
}

void keeper_prove(struct keeper *keeper, uint64_t node, uint64_t incarnation, instant now)
{
    for (struct session *at = keeper->is_keeping ? sessions_next(keeper->sessions, NULL) : NULL; at;
         at = sessions_next(keeper->sessions, at)) {
        if (at->node == node && !at->is_dead &&
            (at->incarnation != 0 || SESSION_MUTANT(PROOF_OF_ANY_PROCESS)) &&
            (at->incarnation <= incarnation || SESSION_MUTANT(PROOF_OF_ANY_LIFE))) {
            note_death(keeper, at, now);
        }
    }
}

void keeper_prove_host(struct keeper *keeper, uint64_t node, uint64_t index, instant now)
{
    for (struct session *at = keeper->is_keeping ? sessions_next(keeper->sessions, NULL) : NULL; at;
         at = sessions_next(keeper->sessions, at)) {
        if ((at->node == node || SESSION_MUTANT(FENCE_OF_ANY_HOST)) &&
            (at->attached <= index || SESSION_MUTANT(FENCE_OF_ANY_ATTACHMENT)) &&
            !(at->incarnation == 0 && SESSION_MUTANT(FENCE_OF_OWN_PROCESS)) && !at->is_dead) {
            note_death(keeper, at, now);
        }
    }
}

bool keeper_overdue(struct keeper *keeper, instant now, struct session_order *ret)
{
    struct session *session;

    if (instant_before(now, keeper_deadline(keeper))) {
        return false;
    }
    session = DEADLINE_OF(struct session, expiry, deadlines_first(&keeper->sessions->deadlines));
    session->is_ending = true;
    set_expiry(keeper, session,
               SESSION_MUTANT(END_NOT_REPEATED) ? INSTANT_NEVER : instant_add(now, END_AGAIN));
    *ret = (struct session_order){.type = SESSION_END,
                                  .session = session->id,
                                  .epoch = session->attached,
                                  .end = session->is_dead ? SESSION_END_CERTIFIED
                                                          : SESSION_END_EXPIRED};
    return true;
}

void keeper_refused(struct keeper *keeper, instant now)
{
    for (struct session *at = keeper->is_keeping ? sessions_next(keeper->sessions, NULL) : NULL; at;
         at = sessions_next(keeper->sessions, at)) {
        if ((at->is_ending || SESSION_MUTANT(REFUSAL_ENDS_ALL)) &&
            instant_before(now, at->expires)) {
            set_expiry(keeper, at, now);
        }
    }
}

instant keeper_deadline(const struct keeper *keeper)
{
    return keeper->is_keeping ? deadlines_next(&keeper->sessions->deadlines) : INSTANT_NEVER;
}
