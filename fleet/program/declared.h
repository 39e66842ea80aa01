/* The file of --config, which declares the fleet: read at the start, when it changes, when asked,
 * and when the provider has lost all; a bad file is refused whole, and what was declared before
 * stays.
 *
 * What the latest file declared is noted in the state, with a hash of the file: the same file is
 * not applied twice, so that changes by the API last through a restart; and what a file has no
 * longer is deleted, but not what the API made.
 */
#ifndef FLEET_PROGRAM_DECLARED_H
#define FLEET_PROGRAM_DECLARED_H

#include "fleet/program/engine.h"

struct declared; /* opaque */

/* BATON_EINVAL names file, line and reason; BATON_ENOENT, BATON_EIO. */
int declared_check(const char *path, struct baton_error *reterr);

/* `path` is borrowed. Waits for the engine to be ready. */
int declared_open(struct declared **ret, struct engine *engine, const char *path,
                  struct logger *logger, struct baton_error *reterr);
/* Now. */
void declared_read(struct declared *declared);
/* Before the engine is closed. NULL is nothing. */
void declared_close(struct declared *declared);

#endif
