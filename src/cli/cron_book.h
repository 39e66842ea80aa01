/* The records of a crontab's lines in the group's state, and the fires that are claimed there.
 *
 *   cron_run ──lead, tick, end──▶ book ──get, put──▶ cron/ELECTION/LINE
 *      ▲                           │
 *      └────run (a claimed fire)───┘
 *
 * A line's record has one write under way at a time. A fire is decided here (cron/fires.h), its
 * record is written on condition that nobody changed it, and then the fire is handed out to be run.
 * If the write is refused, or its outcome is unknown, the record is read again: if it is what was
 * written, all is well; else everything that had not started is decided anew. A fire's end is
 * written in the same way. Only a process that leads writes.
 *
 *   NEW ──write──▶ SENT ──written──▶ CLAIMED ──run──▶ LIVE ──end──▶ OVER ──write──▶ KEPT ──▶ freed
 *    └──────read again: freed─┘                                     ▲─────read again──┘
 */
#ifndef CLI_CRON_BOOK_H
#define CLI_CRON_BOOK_H

#include "cron/fires.h"
#include "member/member.h"

enum { CRON_KEY_MAX = 160 };

struct book; /* opaque */
struct book_job;

/* A fire that was claimed. Belongs to the book. */
struct book_fire {
    struct book_job *job;
    struct cron_run run;
    enum { FIRE_NEW, FIRE_SENT, FIRE_CLAIMED, FIRE_LIVE, FIRE_OVER, FIRE_KEPT } stage;
    struct cron_end *end; /* from OVER on */
    void *command;        /* whoever runs it */
    struct book_fire *prev, *next;
};

struct book_config {
    struct member *member;
    const char *election;
    const char *node;
    struct logger *logger;
    int64_t (*now_ms)(void); /* of the wall clock */
    /* Runs the command of a fire, which book_end() ends, perhaps at once. */
    void (*run)(void *userdata, struct book_fire *fire, const struct crontab *crontab,
                const struct cron_line *line);
    /* Something has changed: when it is due, whether it is idle. Not from inside a call. */
    void (*changed)(void *userdata);
    void *userdata;
};

/* Takes over the crontab, on success only. BATON_ENOMEM. */
int book_open(struct book **ret, const struct book_config *config, struct crontab *crontab,
              struct baton_error *reterr);
/* Once the member has closed; then, once the loop has nothing left to do, book_free(). NULL
 * allowed. */
void book_close(struct book *book);
void book_free(struct book *book);

/* Another crontab: lines that are not in it any more do not fire, and their commands end as they
 * like. Takes it over. */
void book_replace(struct book *book, struct crontab *crontab);

/* This process leads from now on, and no fire of an earlier leadership lives: reads the records,
 * and decides what they need. */
void book_lead(struct book *book, uint64_t epoch);
bool book_leads(const struct book *book);
/* It leads no more: forgets the records. The live fires are to be ended. */
void book_follow(struct book *book);
/* Whether fires are decided; while not, everything else goes on. */
void book_hold(struct book *book, bool is_held);

/* Decides what is due; everything, if the wall clock was set. */
void book_tick(struct book *book, bool was_clock_set);
/* When that is, in seconds since 1970; INT64_MAX: never. */
int64_t book_due(const struct book *book);

/* A fire has ended. `output`: UTF-8, borrowed. */
void book_end(struct book *book, struct book_fire *fire, enum cron_state state, int exit_code,
              const char *output);

/* Whether nothing runs, and nothing is to be written. */
bool book_is_idle(const struct book *book);

/* The name of the line. */
const char *book_fire_name(const struct book_fire *fire);

/* "cron/ELECTION/". False: too long. */
bool book_prefix(char ret[CRON_KEY_MAX], const char *election);

#endif
