/* Which deaths of this process its guardian proves, here where it runs, and which cost the others
 * the rest of the lease. docs/containers.md has the reasons. */
#ifndef MEMBER_DEATHS_H
#define MEMBER_DEATHS_H

#include <stdbool.h>

enum { DEATHS_TEXT_MAX = 256 };

struct deaths {
    char at_once[DEATHS_TEXT_MAX];
    char by_lease[DEATHS_TEXT_MAX];
};

/* `hang_ms`: the setting `hang`; 0: none. */
struct deaths deaths_here(bool has_guardian, double hang_ms);
/* Of a process that takes part through the agent of its host. */
struct deaths deaths_by_agent(void);

#endif
