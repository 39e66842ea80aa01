/* Orders in one line each, and what they changed as text, for tests. */
#ifndef TESTS_SESSIONS_STORY_H
#define TESTS_SESSIONS_STORY_H

#include "sessions/sessions.h"

#include <stdio.h>
#include <string.h>

struct story {
    struct sessions *sessions;
    uint64_t index; /* of the last order */
    int code;       /* its outcome */
    char changes[4096];
};

static void story_note(void *userdata, const struct session_change *change)
{
    static const char *const verbs[] = {"opened", "ended", "entered", "left",
                                        "holds",  "freed", "asked"};
    struct story *story = userdata;
    size_t used = strlen(story->changes);

    (void)snprintf(story->changes + used, sizeof(story->changes) - used, "%s%llu %s%s%s",
                   used ? ", " : "", (unsigned long long)change->session, verbs[change->type],
                   change->election ? " " : "", change->election ? change->election : "");
    if (change->type == SESSION_HELD) {
        used = strlen(story->changes);
        (void)snprintf(story->changes + used, sizeof(story->changes) - used, " in %llu",
                       (unsigned long long)change->epoch);
    }
}

/* The changes of the order, which gets the next index. */
static inline const char *tell(struct story *story, struct session_order order, const char *name)
{
    (void)snprintf(order.name, sizeof(order.name), "%s", name);
    story->changes[0] = '\0';
    story->code = sessions_carry_out(story->sessions, &order, ++story->index);
    return story->changes;
}

#define OPEN(story)                                                                                \
    tell(story, (struct session_order){.type = SESSION_OPEN, .lifetime = SPAN_S(30)}, "p")
#define END(story, s)                                                                              \
    tell(story,                                                                                    \
         (struct session_order){                                                                   \
             .type = SESSION_END, .session = (s), .epoch = (s), .end = SESSION_END_LEFT},          \
         "")
#define ENTER_AS(story, s, election, rank, yes)                                                    \
    tell(story,                                                                                    \
         (struct session_order){                                                                   \
             .type = SESSION_ENTER, .session = (s), .priority = (rank), .is_eligible = (yes)},     \
         election)
#define ENTER(story, s, election)   ENTER_AS(story, s, election, 0, true)
#define OBSERVE(story, s, election) ENTER_AS(story, s, election, 0, false)
#define WITHDRAW(story, s, election, e)                                                            \
    tell(story, (struct session_order){.type = SESSION_WITHDRAW, .session = (s), .epoch = (e)},    \
         election)
#define RESIGN(story, s, election, e, heir)                                                        \
    tell(story,                                                                                    \
         (struct session_order){                                                                   \
             .type = SESSION_RESIGN, .session = (s), .epoch = (e), .to = (heir)},                  \
         election)
#define PASS(story, election, heir)                                                                \
    tell(story, (struct session_order){.type = SESSION_PASS, .to = (heir)}, election)
#define ELIGIBLE(story, s, election, yes)                                                          \
    tell(story,                                                                                    \
         (struct session_order){.type = SESSION_ELIGIBLE, .session = (s), .is_eligible = (yes)},   \
         election)

static inline void story_begin(struct story *story)
{
    *story = (struct story){0};
    story->sessions = sessions_new(story_note, story);
}

static inline void story_end(struct story *story)
{
    sessions_free(story->sessions);
}

#endif
