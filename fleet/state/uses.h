/* For each thing that is named somewhere, the list of those that name it. Pure. */
#ifndef FLEET_STATE_USES_H
#define FLEET_STATE_USES_H

#include "base/names.h"

struct used; /* opaque: a thing that is named */

struct use {
    struct use *prev, *next;
    struct used *of; /* NULL: it is in no list */
    const void *by;  /* who names it */
};

struct uses {
    struct names by_key;
};

void uses_init(struct uses *uses);
void uses_fini(struct uses *uses); /* all were removed */

/* Memory of `use` is its owner's, until uses_remove(). BATON_ENOMEM. */
int uses_add(struct uses *uses, struct use *use, const char *key, const void *by);
void uses_remove(struct uses *uses, struct use *use); /* nothing if it is in no list */
/* The first one, then those by `next`; NULL: nobody names it. */
const struct use *uses_of(const struct uses *uses, const char *key);

#endif
