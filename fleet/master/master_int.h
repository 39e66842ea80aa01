/* The master's state, for the files that work on it; not for others. From above:
 *
 *   master.c     the election, the times; what is planned when
 *   propose.c    one plan, and the writes that it asks for
 *   survey.c     the workers as a plan sees them
 *   catalog.c    the subscriptions as a plan sees them
 *   moves.c      what would come of a move
 *   processes.c  the processes, and which one owns which worker
 *   find.c       workers that discovery finds
 *   round.c      writes, in two steps
 */
#ifndef FLEET_MASTER_MASTER_INT_H
#define FLEET_MASTER_MASTER_INT_H

#include "fleet/master/master.h"
#include "fleet/plan/load.h"
#include "member/candidacy.h"

struct round;      /* round.c */
struct find;       /* find.c */
struct asked_list; /* processes.c */

/* A worker that is registered. */
struct tracked {
    instant since;         /* known here */
    instant leaving_since; /* INSTANT_NEVER: nothing leaves it */
    instant marked_since;  /* by its owner, as online; INSTANT_NEVER: it is not */
    bool is_overdue;       /* and does not let go */
    struct load load;
    char id[FLEET_WORKER_ID_MAX + 1];
};

/* Where a subscription goes once another worker has let it go. Texts are owned. */
struct heading {
    char *subscription, *worker;
};

/* What is to be planned, in the order of ids; made anew after an object has changed. */
struct catalog {
    bool is_made;
    size_t count;
    struct plan_subscription *subscriptions;
    struct fleet_object **objects; /* references, to which the texts belong */
};

struct master {
    struct master_config config; /* without the URLs */
    struct candidacy candidacy;
    struct fleet_observer state_observer;
    struct worker_observer table_observer;
    uv_timer_t timer;
    instant opened;
    uint64_t epoch; /* 0: this process does not lead */
    uint64_t load;  /* fleet_state_load_again(), since it leads */
    bool is_retired;
    bool is_held; /* the hand-over of leadership waits for the round's end */
    struct master_counters counters;

    bool is_due;      /* something has changed */
    bool balances;    /* the next plan may balance */
    instant plan_at;  /* not before */
    instant check_at; /* time alone changes something: somebody is silent, or does not let go */
    instant balance_at;
    instant ask_at; /* for the list of the processes */
    span retry_in;  /* after a failure; 0: none */
    instant complained;

    struct tracked **tracked; /* in the order of ids */
    size_t tracked_count;
    struct catalog catalog;
    struct heading *headings;
    size_t heading_count;
    char **processes; /* sorted names, then NULL; NULL: not known yet */
    size_t process_count;
    struct asked_list *asked; /* the list of members, which was asked for; NULL: it was not */
    instant twins_since;      /* two processes have one name; INSTANT_NEVER: none has */
    bool has_told_twins;
    bool is_owners_due;  /* the owners of workers are to be named anew */
    struct find *find;   /* NULL: nothing to find */
    struct round *round; /* of writes, under way; NULL: none */

    void (*closed)(void *userdata); /* NULL: it is not closing */
    void *closed_userdata;
};

/* ---- master.c -------------------------------------------------------------------------------- */

/* A plan is wanted. */
void master_touch(struct master *master);
void master_tell(struct master *master, const char *name, json_t *fields);
/* Tells of a failure, but not too often; what failed is tried again. */
void master_complain(struct master *master, const struct baton_error *error);
/* All writes of a round have been answered. */
void master_on_round(struct master *master, bool is_stored);
/* Whether it leads at this moment, by its lease. */
bool master_may_write(const struct master *master);

/* ---- propose.c ------------------------------------------------------------------------------- */

/* Plans and begins to write. 0 or BATON_ENOMEM. */
int propose(struct master *master, instant now);
void headings_clear(struct master *master);

/* ---- survey.c -------------------------------------------------------------------------------- */

struct survey {
    size_t count;
    struct plan_worker *workers;         /* in the order of ids */
    const struct fleet_worker **records; /* of each */
    struct tracked *const *tracked;      /* of each; the master's */
    size_t unheard;                      /* of which nothing was heard yet … */
    instant unheard_since;               /* … and since when the latest of them is known */
    bool is_calm;                        /* nothing leaves any worker: time to balance */
};

/* Borrowed until the state changes. Sets check_at. 0 or BATON_ENOMEM. */
int survey_make(struct survey *ret, struct master *master, instant now);
void survey_fini(struct survey *survey);
/* How many subscriptions the worker may have. */
size_t survey_room(const struct master *master, const struct fleet_worker *record);
/* A report came. */
void survey_hear(struct master *master, const struct worker_live *worker);
/* The worker may be marked anew, or no more: then what it has may be given to others. */
void survey_hear_mark(struct master *master, const char *id);
/* Of all workers, what only a leader knows. */
void survey_forget(struct master *master);

/* ---- catalog.c ------------------------------------------------------------------------------- */

/* 0 or BATON_ENOMEM. */
int catalog_make(struct master *master);
void catalog_fini(struct catalog *catalog);
/* NULL: there is none of this id. */
struct plan_subscription *catalog_find(const struct catalog *catalog, const char *id);

/* ---- processes.c ----------------------------------------------------------------------------- */

/* Asks for the list of members; master_touch() follows when it has changed. */
void processes_ask(struct master *master);
void processes_fini(struct master *master);
/* Adds the owners to the round, if they are to change. 0 or BATON_ENOMEM. */
int processes_own(struct master *master, const struct survey *survey, struct round *round);

/* ---- find.c ---------------------------------------------------------------------------------- */

/* Nothing to find: NULL. BATON_EINVAL: a URL; BATON_ENOMEM. */
int find_open(struct find **ret, struct master *master, struct baton_error *reterr);
void find_close(struct find *find); /* NULL is nothing */
/* Adds to the round the workers that are new, have moved, or are gone. 0 or BATON_ENOMEM. */
int find_register(const struct master *master, const struct survey *survey, struct round *round);

/* ---- round.c --------------------------------------------------------------------------------- */

enum step { STEP_TAKES, STEP_GIVES, STEPS };

struct round *round_new(void); /* NULL: out of memory */
/* Takes the JSON, also after a failure; NULL: out of memory, or it `deletes`. BATON_ENOMEM. */
int round_add(struct round *round, enum step step, const char *key, json_t *json, bool deletes,
              uint64_t revision);
/* Takes the round. master_on_round() follows, perhaps before this returns. */
void round_begin(struct round *round, struct master *master);
/* Nothing more of it is written, and nobody hears of it. NULL is nothing. */
void round_drop(struct round *round);
void round_free(struct round *round); /* of one that was not begun; NULL is nothing */

#endif
