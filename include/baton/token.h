/* Fencing: the resource refuses a former leader's late writes.
 *
 * A leader can be paused between asking whether it leads and writing; no lease can prevent the late
 * write. The epoch can: each leadership has a higher epoch than all earlier ones, and a resource
 * that remembers the highest epoch refuses lower ones. These are the checks for three kinds of
 * resources. Each belongs in the same file lock, script or transaction as the write that it guards.
 *
 * Threads: any. Source: not in the seeds; docs/api.md gives the reason.
 */
#ifndef BATON_TOKEN_H
#define BATON_TOKEN_H

#include <baton/error.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stores the highest epoch in a small file, which is created with mode 0600; the epoch is on disk
 * when the call returns. With `ret_fd` the file stays locked until the caller closes that
 * descriptor, which guards the caller's writes meanwhile. A forked child holds the lock too, until
 * it closes the descriptor or executes another program. With NULL the lock ends with the call.
 * Waits while another process holds the lock.
 *
 *   int guard;
 *   if (baton_token_check_file("/srv/report/.epoch", epoch, &guard, &error) == 0) {
 *       write_report();
 *       close(guard);
 *   }
 *
 * BATON_ECONFLICT: the file has a higher epoch, so another process leads. BATON_ECORRUPT: the file
 * holds no epoch, and is left unchanged. BATON_EINVAL: the epoch is 0. BATON_EFULL, BATON_EIO. */
BATON_API int baton_token_check_file(const char *path, uint64_t epoch, int *ret_fd,
                                     struct baton_error *reterr);

/* The beginning of a Lua script for Redis; your script follows it, and runs only if the epoch is
 * not stale. KEYS[1]: the key of the highest epoch, in the same slot as the guarded keys. ARGV[1]:
 * the epoch. For a stale epoch the reply is an error that begins with STALE. Static storage.
 *
 *   snprintf(script, sizeof(script), "%s%s", baton_token_redis_script(),
 *            "return redis.call('SET', KEYS[2], ARGV[2])"); */
BATON_API const char *baton_token_redis_script(void);

/* SQL for SQLite and PostgreSQL. The first statement creates the table if there is none. Run the
 * second in the transaction that it guards, with a name ($1) and the epoch ($2), and roll back if
 * it changed no row. Static storage. */
BATON_API const char *baton_token_sql_schema(void);
BATON_API const char *baton_token_sql_check(void);

#ifdef __cplusplus
}
#endif

#endif
