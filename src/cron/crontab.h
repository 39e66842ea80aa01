/* A crontab: lines that fire, the variables of their commands, and options. Pure.
 *
 *   CRON_TZ=Europe/Berlin                    NAME=value: for the lines below it
 *   # baton: name=report missed=skip         options of the next line
 *   30 2 * * 1-5  /usr/local/bin/report      schedule.h, then a command for the shell
 *
 * Other lines that begin with "#", and empty ones, are comments. A whole file is read or refused.
 *
 *   NAME=value   goes into the environment of the commands. CRON_TZ is the time zone of their
 *                schedules, and TZ that of both; SHELL runs them, /bin/sh if not given
 *   name         identifies the line in the state of the group. If not given, a hash of schedule,
 *                zone and command does; so a line keeps its state when the file's order changes
 *   overlap      its command still runs when it is to fire again: skip, wait or allow
 *   missed       nobody led when it was to fire: run-once or skip
 *   interrupted  its command was killed because leadership ended: run-again or skip
 *   jitter       starts later by a fixed part of this time, which depends on the line's name
 */
#ifndef CRON_CRONTAB_H
#define CRON_CRONTAB_H

#include "cron/schedule.h"

#include <stddef.h>

enum {
    CRONTAB_BYTES_MAX = 1024 * 1024,
    CRONTAB_LINES_MAX = 1000,
    CRONTAB_VARIABLES_MAX = 256,
    CRON_ID_MAX = 65,        /* bytes of a name, with the NUL */
    CRON_COMMAND_MAX = 8192, /* bytes of a line of the file */
    CRON_JITTER_MAX_S = 3600,
};

enum cron_overlap { CRON_OVERLAP_SKIP, CRON_OVERLAP_WAIT, CRON_OVERLAP_ALLOW };
enum cron_missed { CRON_MISSED_RUN_ONCE, CRON_MISSED_SKIP };
enum cron_interrupted { CRON_INTERRUPTED_RUN_AGAIN, CRON_INTERRUPTED_SKIP };

struct cron_line {
    unsigned number; /* in the file, from 1 */
    char id[CRON_ID_MAX];
    struct cron_schedule schedule;
    char *when;       /* the schedule's text, one blank between its words */
    const char *zone; /* "": the host's */
    char *command;
    enum cron_overlap overlap;
    enum cron_missed missed;
    enum cron_interrupted interrupted;
    int64_t delay_s;  /* by jitter */
    size_t variables; /* so many of the first in crontab.variables */
};

struct crontab {
    struct cron_line *lines;
    size_t count;
    char **variables; /* "NAME=value"; of two of one name the later one counts */
    size_t variable_count;
};

/* `file` names the file in messages. `has_zone` says whether there is a time zone of that name.
 * BATON_EINVAL: "FILE:LINE: …"; BATON_ETOOBIG; BATON_ENOMEM. */
int crontab_parse(struct crontab **ret, const char *text, size_t bytes, const char *file,
                  bool (*has_zone)(const char *name), struct baton_error *reterr);
void crontab_free(struct crontab *crontab); /* NULL allowed */

/* The line of that id; NULL: none. */
const struct cron_line *crontab_find(const struct crontab *crontab, const char *id);

/* The value that counts for the line; NULL: none. */
const char *crontab_variable(const struct crontab *crontab, const struct cron_line *line,
                             const char *name);

#endif
