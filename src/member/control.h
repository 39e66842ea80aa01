/* The control socket of a member: what the commands of its machine may ask of it.
 *
 *   {"do":"list","prefix":…}                             keys of the state that are text: store.h
 *   {"do":"status"} {"do":"members"} {"do":"watch"}      what it knows; its events as they come
 *   {"do":"pass","to":…} {"do":"cordon"} {"do":"uncordon"}         handover.h
 *   {"do":"join","member":…,"replace":…} {"do":"leave","member":…} members.h
 *   {"do":"isolate","on":…}                              for tests: cut off from its peers
 *
 * pass, join and leave take "timeout_ms", 1 to 3600000; 30000 if it is not given. net/control.h
 * has the socket, its clients and its limits.
 */
#ifndef MEMBER_CONTROL_H
#define MEMBER_CONTROL_H

#include "member/status.h"

struct member_control; /* opaque */

/* All outlive the control. */
struct member_control_config {
    uv_loop_t *loop;
    struct logger *logger; /* or NULL */
    const char *path;      /* of the socket; a stale one there is replaced */
    struct member *member;
    struct election *election; /* not joined yet: the control observes it */
    struct status *status;
    bool has_test_switches; /* "isolate" is allowed */
};

/* Errors as control_server_open(). */
int member_control_open(struct member_control **ret, const struct member_control_config *config,
                        struct baton_error *reterr);

/* After the member has closed, and before the election ends. The loop's close callbacks free the
 * memory. NULL is allowed. */
void member_control_close(struct member_control *control);

#endif
