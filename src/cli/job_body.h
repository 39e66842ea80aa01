/* The command in an item's body:
 *
 *   {"argv": ["CMD", "ARG", …], "dir": "/folder", "env": {"NAME": "VALUE", …}}
 *
 * "dir" and "env" may be left out. Other members are ignored, as a later version may have more.
 */
#ifndef CLI_JOB_BODY_H
#define CLI_JOB_BODY_H

#include "work/item.h"

/* Both arrays end with NULL. */
struct job_body {
    json_t *json;     /* to which argv points */
    char **argv;      /* with "dir" it begins with a shell that goes there, or ends with 126 */
    char **variables; /* "NAME=VALUE": those of "env", BATON_ITEM and BATON_ATTEMPT */
};

/* Of a zeroed struct; job_body_fini() follows in any case. BATON_EINVAL names what is wrong;
 * BATON_ENOMEM. */
int job_body_read(struct job_body *body, const struct work_item *item, uint32_t attempt,
                  struct baton_error *reterr);
void job_body_fini(struct job_body *body);

#endif
