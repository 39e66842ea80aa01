/* Reads and writes the group's keys without a pause, and records each request: what was asked,
 * when, and what came of it (linear.py judges that).
 *
 * A few keys at a time, for a few seconds each, so that many requests meet at one key and no
 * history gets long. Every value is written once.
 */
#ifndef TORTURE_HISTORY_H
#define TORTURE_HISTORY_H

#include <baton.h>

/* RECORDS is a file that exists. The threads go on until the process ends; a failure ends it. */
void history_begin(struct baton *baton, const char *records);

#endif
