/* Processes that hide their environment: the test's program again, in a process of its own. */
#ifndef TESTS_GUARDIAN_HIDER_H
#define TESTS_GUARDIAN_HIDER_H

#include <stdbool.h>
#include <sys/types.h>

struct hider {
    /* A row of the table in hider.c; "thread": its first one has ended; "relay" and a descriptor:
     * it is always another, until that can be read. */
    const char *how;
    const char *marker; /* "NAME=value" in its environment; NULL: none */
    int before, behind; /* long variables before and behind it */
    uid_t user;         /* 0: that of the test */
};

/* Returns when the process hides; it dies with the test. 0: it cannot do so here. */
pid_t hider_start(const struct hider *hider);

/* For main(): whether this process is one, and what it does. */
bool hider_is_meant(int count, char *const arguments[]);
int hider_main(char *const arguments[]);

/* blocker.c: every read of this process's memory waits, for as long as it lives, from a moment soon
 * after this call. False: it cannot be done here. */
bool hider_block_readers(void);
/* Until that moment. */
void hider_wait_blocked(pid_t hider);

#endif
