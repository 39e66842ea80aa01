/* The workers that a candidate has heard, so that it knows whom to ask if it comes to lead and the
 * ledger is lost. Pure.
 */
#ifndef POOL_HEARD_H
#define POOL_HEARD_H

#include "work/leader.h"

enum { HEARD_MAX = 4096 }; /* workers; further ones are not noted */

struct heard; /* the table; NULL is an empty one */

void heard_note(struct heard **heard, const struct work_report *report, instant now);
/* Passes on those that were heard in the last `lately`, and forgets the others. */
void heard_pass(struct heard **heard, struct work_leader *leader, span lately, instant now);
void heard_free(struct heard **heard);

#endif
