/* What the files of displays/ share: the displays that have data, and what changes it. */
#ifndef FLEET_DISPLAYS_DISPLAYS_INT_H
#define FLEET_DISPLAYS_DISPLAYS_INT_H

#include "fleet/displays/displays.h"

#include <uthash.h>
#include <utlist.h>
#include <uv.h>

/* A change that waits for a write, or is in one. */
struct change {
    struct change *next;
    json_t *patch;
    struct session_id only_in; /* applies while the display has this session; none: always */
    int otherwise;             /* the code if it has not: BATON_OK, BATON_ENOENT */
    provider_done_cb done;     /* or NULL */
    void *userdata;
};

/* A session, and the displays that have it: one, but for a moment or after a race. */
struct holding {
    UT_hash_handle hh;
    int64_t session;
    struct record *records;
};

/* A display that has data, or is changed. */
struct record {
    UT_hash_handle hh;
    struct displays *displays;
    struct record *next, *prev; /* of the holding */
    struct record *dirty_next;
    struct session_id session; /* as the state's data has them */
    enum stage stage;
    struct change *waiting, *written; /* lists; `written`: in the write that is under way */
    size_t change_count;              /* of both */
    unsigned tries;                   /* of `written` */
    unsigned busy;                    /* functions that use it and call back */
    bool is_merging, is_writing, is_dirty;
    json_t *car; /* attributes of detections that are not in the data yet; NULL: none */
    char id[];
};

struct displays {
    struct displays_config config;
    struct fleet_observer observer;
    struct displays_counters counters;
    struct record *records;   /* by id */
    struct holding *holdings; /* by session */
    struct record *dirty;     /* those that have a car, or had one, or no display */
    uv_timer_t settle;
    unsigned holds; /* the timer, writes under way, and functions that call back */
    bool is_closed;
};

/* displays.c */
struct record *record_find(const struct displays *displays, const char *id);
/* NULL: out of memory. */
struct record *record_need(struct displays *displays, const char *id);
/* Frees it if it has neither data nor changes. */
void record_settle(struct record *record);
/* Whether the fleet has a display of this id. */
bool displays_has(const struct displays *displays, const char *id);
/* A display that is declared again begins anew. */
void displays_delete_data(struct displays *displays, const char *id);
void displays_hold(struct displays *displays);
void displays_release(struct displays *displays);

/* changes.c. The patch is borrowed. BATON_EBUSY, BATON_ENOMEM: the change is not begun. */
int change_add(struct record *record, const struct change *change, struct baton_error *reterr);
/* Ends all that wait with BATON_ECANCELED. */
void changes_cancel(struct record *record);

/* moves.c: the change, after all displays that have the session have given it up. */
int move_begin(struct displays *displays, const char *display, int64_t session,
               const struct change *change, struct baton_error *reterr);

/* car.c */
void car_open(struct displays *displays);
void car_forget(struct record *record);
/* Looks at the record in a moment: it has a car, or no display. */
void car_settle(struct record *record);

#endif
