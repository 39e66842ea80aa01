/* Fencing: what is written to refuses whoever is late.
 *
 * A leader can be paused between asking whether it leads and writing; no lease mends that. The
 * epoch does: each leadership has a higher one than all before, and a resource that remembers the
 * highest it has seen refuses the others. These are the checks for three kinds of resources. Each
 * belongs into the same file lock, script or transaction as the write that it guards.
 *
 * Threads: any. Source: the seeds have no such thing; docs/api.md says why ours has.
 */
#ifndef BATON_TOKEN_H
#define BATON_TOKEN_H

#include <baton/error.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Remembers the highest epoch in a small file, which comes into being with mode 0600, and is on
 * disk when this returns. With `ret_fd` the file stays locked until the caller closes that: what it
 * writes meanwhile is guarded. A forked child has the lock too, until it closes it or becomes
 * another program. NULL: the lock ends with the call. Waits while another has it.
 *
 *   int guard;
 *   if (baton_token_check_file("/srv/report/.epoch", epoch, &guard, &error) == 0) {
 *       write_report();
 *       close(guard);
 *   }
 *
 * BATON_ECONFLICT: a higher epoch was seen, somebody else leads. BATON_ECORRUPT: the file holds
 * something else, and is left alone. BATON_EINVAL: epoch 0 is nobody's. BATON_EFULL, BATON_EIO. */
BATON_API int baton_token_check_file(const char *path, uint64_t epoch, int *ret_fd,
                                     struct baton_error *reterr);

/* The beginning of a Lua script for Redis; what follows it is carried out only if it lets pass.
 * KEYS[1]: where the highest epoch is kept, in the same slot as what is guarded. ARGV[1]: the
 * epoch. Whoever is late gets an error reply that begins with STALE. Static storage.
 *
 *   snprintf(script, sizeof(script), "%s%s", baton_token_redis_script(),
 *            "return redis.call('SET', KEYS[2], ARGV[2])"); */
BATON_API const char *baton_token_redis_script(void);

/* SQL for SQLite and PostgreSQL. The first makes the table, where it is not there; the second is to
 * be carried out in the transaction that it guards, with a name ($1) and the epoch ($2), and to be
 * rolled back if it changed no row. Static storage. */
BATON_API const char *baton_token_sql_schema(void);
BATON_API const char *baton_token_sql_check(void);

#ifdef __cplusplus
}
#endif

#endif
