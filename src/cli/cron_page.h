/* The page of one line in the book: its record in the group's state, and its fires.
 *
 *   decide ─▶ claim: the record is written ─▶ run() ─▶ cron_page_end ─▶ the record is written
 *
 * One write of a page is under way at a time. A fire is decided (cron/fires.h), the record is
 * written on condition that nobody changed it, and then the fire is handed out to be run. If the
 * write is refused, or its outcome is unknown, the record is read again: if it is what was written,
 * or has the claim, all is well; else what had not started is decided anew. An end is written in
 * the same way. Only a process that leads writes.
 *
 *   NEW ──write──▶ SENT ──written──▶ CLAIMED ──run──▶ LIVE ──end──▶ OVER ──write──▶ KEPT ──▶ freed
 *    └──────read again: freed─┘                                     ▲─────read again──┘
 */
#ifndef CLI_CRON_PAGE_H
#define CLI_CRON_PAGE_H

#include "cron/fires.h"
#include "member/member.h"

enum { CRON_KEY_MAX = 160 };

struct cron_page;

/* A fire that was claimed. */
struct cron_fire {
    struct cron_page *page;
    struct cron_run run;
    enum { FIRE_NEW, FIRE_SENT, FIRE_CLAIMED, FIRE_LIVE, FIRE_OVER, FIRE_KEPT } stage;
    struct cron_end end; /* from OVER on */
    struct cron_fire *next;
};

struct cron_page_config {
    struct member *member;
    const char *election;
    const char *node;
    struct logger *logger;
    int64_t (*now_ms)(void); /* of the wall clock */
    /* Runs the command of a fire, which cron_page_end() ends, perhaps at once. `line` NULL: it has
     * left the file meanwhile. */
    void (*run)(void *userdata, struct cron_fire *fire, const struct crontab *crontab,
                const struct cron_line *line);
    /* A reply of the state has changed something: when it is due, or whether it is idle. */
    void (*changed)(void *userdata);
    void *userdata;
};

/* What all pages of a book share. */
struct cron_pages {
    struct cron_page_config config;
    struct cron_leader leader; /* .epoch 0: this process does not lead */
    struct crontab *crontab;
    bool is_held;              /* nothing is decided */
    char prefix[CRON_KEY_MAX]; /* of the keys */
    /* Calls cron_page_read() of every page that is_to_read, a moment later. */
    void (*later)(struct cron_pages *shared);
};

struct cron_page {
    struct cron_pages *shared;
    char id[CRON_ID_MAX];
    const struct cron_line *line; /* NULL: it is gone */
    struct cron_record record;
    uint64_t revision;
    bool is_known; /* the record was read in this leadership */
    bool is_reading, is_writing;
    bool is_dirty;   /* the record differs from what was written last */
    bool is_to_read; /* again */
    char *written;   /* what is being written, or was written last */
    uint64_t written_epoch;
    int64_t due_s; /* when to decide; INT64_MAX: not by time */
    struct cron_fire *fires;
    struct cron_page *prev, *next;
};

bool cron_page_leads(const struct cron_pages *shared);

/* NULL: out of memory. */
struct cron_page *cron_page_new(struct cron_pages *shared, const char *id);
/* While nothing is being read or written, or after the member has closed. */
void cron_page_free(struct cron_page *page);

/* What the group has of the line; data NULL: nothing. Goes on from there. */
void cron_page_take(struct cron_page *page, const void *data, size_t bytes, uint64_t revision);
/* Reads the record, unless it is being read or written. */
void cron_page_read(struct cron_page *page);
/* The line has come, or come back: its record is read, also after a write that is under way. */
void cron_page_read_anew(struct cron_page *page);
/* The line has left the file; cron_page_decide() writes it. */
void cron_page_remove(struct cron_page *page);

/* Decides what is due, and writes what has changed. */
void cron_page_decide(struct cron_page *page);

/* A fire has ended. `output`: UTF-8, borrowed. */
void cron_page_end(struct cron_fire *fire, enum cron_state state, int exit_code,
                   const char *output);

/* This process leads no more: forgets the record, and all fires but the live ones. */
void cron_page_follow(struct cron_page *page);

/* Whether nothing runs, and nothing is to be written. */
bool cron_page_is_idle(const struct cron_page *page);
/* Whether a reply of the state is awaited. */
bool cron_page_is_asking(const struct cron_page *page);
/* Whether the line is gone, and there is nothing left to do. */
bool cron_page_is_over(const struct cron_page *page);

#endif
