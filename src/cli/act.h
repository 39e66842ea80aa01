/* A shared file in which measured processes stamp when they lead, and a bell for waiting processes.
 *
 * Each process owns one slot. It stamps the instant when its is_leader turned true and it acted,
 * and the instant when it turned false. The bell is a futex: the measuring process sleeps on it and
 * takes no processor time from the measured ones. Programs of other systems use the same file.
 */
#ifndef CLI_ACT_H
#define CLI_ACT_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { ACT_SLOTS = 64 };

struct act; /* opaque */

/* Maps the file; creates and sizes it first if need be. BATON_EIO. */
int act_open(struct act **ret, const char *path, struct baton_error *reterr);
void act_close(struct act *act); /* NULL allowed */

void act_stamp_acquired(struct act *act, unsigned slot, uint64_t epoch, instant at);
void act_stamp_lost(struct act *act, unsigned slot, instant at);

/* The process is alive now. Rings no bell. */
void act_stamp_alive(struct act *act, unsigned slot, instant at);

struct act_stamp {
    uint64_t count; /* number of leaderships acquired so far */
    uint64_t epoch;
    instant acquired;
    instant lost; /* is before `acquired` while the process leads */
    instant alive;
};
struct act_stamp act_read(const struct act *act, unsigned slot);

/* Returns the number of bells so far. act_wait() waits for another one; false: none until the
 * deadline. */
uint32_t act_bells(const struct act *act);
bool act_wait(const struct act *act, uint32_t bells, instant deadline);

#endif
