/* Commands that other programs publish on worker:commands, in the form of the worker protocol:
 *
 *   {"type":"setSessionId","payload":{"displayIdentifier":"display-001","sessionId":12345}}
 *   {"type":"setProgressionStage","payload":{"displayIdentifier":…,"progressionStage":"welcome"}}
 *
 * One object a message, or several, each on its line. Every process of the fleet takes each of
 * them, so that none is lost while there is no master; all but the first find it done. But one that
 * was stopped finds what has become of it since, and would take that back: unless it leads, it
 * leaves what it then finds to the others. Other types are passed over: which worker has what is
 * the master's to say.
 */
#ifndef FLEET_OUTLETS_COMMANDS_H
#define FLEET_OUTLETS_COMMANDS_H

#include "fleet/displays/displays.h"

struct commands; /* opaque */

/* X(field, what it counts) */
#define COMMANDS_COUNTERS(X)                                                                       \
    X(taken, "commands of other programs that were carried out, here or by another process")       \
    X(passed_over, "commands of other programs of another type")                                   \
    X(late, "commands of other programs that had waited, while this process was stopped")          \
    X(refused, "commands of other programs that were not valid, or of unknown displays")

#define COMMANDS_COUNTER(field, text) uint64_t field;
struct commands_counters {
    COMMANDS_COUNTERS(COMMANDS_COUNTER)
};
#undef COMMANDS_COUNTER

struct commands_config {
    struct member *member;
    struct displays *displays; /* both outlive the commands */
    /* What is wrong with a command, or why it failed. NULL: unwanted. */
    void (*on_refused)(void *userdata, const struct baton_error *error);
    /* Whether this process leads. NULL: nothing that has waited is left to others. */
    bool (*leads)(void *userdata);
    void *userdata;
};

/* BATON_ENOTSUP: the provider has no channels; BATON_ENOMEM. */
int commands_open(struct commands **ret, const struct commands_config *config,
                  struct baton_error *reterr);
/* Before displays_close(). NULL is nothing. */
void commands_close(struct commands *commands);

const struct commands_counters *commands_counters(const struct commands *commands);

#endif
