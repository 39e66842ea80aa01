/* All lines of a crontab: their pages (cli/cron_page.h), whether this process leads, and when the
 * next fire is due.
 *
 *   cron_run ──lead, tick, end──▶ book ─▶ page ──get, put──▶ cron/ELECTION/LINE
 *      ▲                                    │
 *      └──────────run (a claimed fire)──────┘
 */
#ifndef CLI_CRON_BOOK_H
#define CLI_CRON_BOOK_H

#include "cli/cron_page.h"

struct book; /* opaque */

/* Takes over the crontab, on success only. BATON_ENOMEM. */
int book_open(struct book **ret, const struct cron_page_config *config, struct crontab *crontab,
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

/* A fire has ended: cron_page_end(). */
void book_end(struct book *book, struct cron_fire *fire, enum cron_state state, int exit_code,
              const char *output);

/* Whether nothing runs, and nothing is to be written. */
bool book_is_idle(const struct book *book);

/* "cron/ELECTION/". False: too long. */
bool book_prefix(char ret[CRON_KEY_MAX], const char *election);

#endif
