/* The watchdog of `baton run`: hears from CMD that it is alive, by the protocol of sd_notify(3).
 *
 *   CMD ──"WATCHDOG=1" to $NOTIFY_SOCKET──▶ watchdog ──▶ alive_ns ──▶ the guardian (setting hang)
 *
 * Once CMD has sent it, it must send it again within $WATCHDOG_USEC; else the guardian kills baton
 * and CMD. Other messages of that protocol have no effect.
 */
#ifndef CLI_WATCHDOG_H
#define CLI_WATCHDOG_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { WATCHDOG_VARIABLES = 3, VARIABLE_BYTES = 192 };

struct watchdog {
    int fd;                   /* the socket */
    _Atomic int64_t alive_ns; /* the latest message, in CLOCK_BOOTTIME; 0: none from this CMD */
    span hang;
    char name[16]; /* of the socket; the kernel's, without files */
};

/* BATON_EINVAL: `hang` is 0; BATON_EIO. Zeroed memory is closed. */
int watchdog_open(struct watchdog *watchdog, span hang, struct baton_error *reterr);
void watchdog_close(struct watchdog *watchdog);

/* Reads what waits, and takes it as CMD's if it `counts`. */
void watchdog_hear(struct watchdog *watchdog, bool counts);
/* CMD has ended: forgets its messages, and those that wait. */
void watchdog_forget(struct watchdog *watchdog);

/* What CMD finds in its environment, as "NAME=value"; "NAME": what it does not find. */
void watchdog_variables(const struct watchdog *watchdog,
                        char ret[static WATCHDOG_VARIABLES][VARIABLE_BYTES]);

#endif
