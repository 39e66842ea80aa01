#include <baton/token.h>

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* All digits of any epoch and a newline: always as long, so that an overwritten one is never half
 * of each. */
enum { RECORD_BYTES = 21 };

/* ---- File ------------------------------------------------------------------------------------ */

static int open_locked(int *ret, const char *path, struct baton_error *reterr)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r;

    if (fd < 0) {
        return error_set(reterr, BATON_EIO, "epoch file %s: cannot be opened: %s", path,
                         strerror(errno));
    }
    do {
        r = flock(fd, LOCK_EX);
    } while (r != 0 && errno == EINTR);
    if (r != 0) {
        r = error_set(reterr, BATON_EIO, "epoch file %s: cannot be locked: %s", path,
                      strerror(errno));
        (void)close(fd);
        return r;
    }
    *ret = fd;
    return BATON_OK;
}

static bool parse(const char *record, ssize_t bytes, uint64_t *ret)
{
    char *end;

    if (bytes != RECORD_BYTES || record[RECORD_BYTES - 1] != '\n' ||
        strspn(record, "0123456789") != RECORD_BYTES - 1) {
        return false;
    }
    errno = 0;
    *ret = strtoull(record, &end, 10);
    return errno == 0 && *end == '\n';
}

static int read_highest(int fd, const char *path, uint64_t *ret, struct baton_error *reterr)
{
    char record[RECORD_BYTES + 2]; /* one more, to see whether there is more */
    ssize_t bytes = pread(fd, record, RECORD_BYTES + 1, 0);

    if (bytes < 0) {
        return error_set(reterr, BATON_EIO, "epoch file %s: cannot be read: %s", path,
                         strerror(errno));
    }
    record[bytes] = '\0';
    if (bytes == 0) { /* new */
        *ret = 0;
        return BATON_OK;
    }
    if (!parse(record, bytes, ret)) {
        return error_set(reterr, BATON_ECORRUPT,
                         "epoch file %s: contains no epoch; remove it only if no process with an "
                         "older epoch can be alive",
                         path);
    }
    return BATON_OK;
}

/* A new file must outlive a loss of power by its name, too. */
static int sync_folder(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int r = fd >= 0 ? fsync(fd) : -1;

    free(copy);
    if (fd >= 0) {
        (void)close(fd);
    }
    return r;
}

static int write_highest(int fd, const char *path, uint64_t epoch, bool is_new,
                         struct baton_error *reterr)
{
    char record[RECORD_BYTES + 1];

    (void)snprintf(record, sizeof(record), "%020" PRIu64 "\n", epoch);
    if ((is_new && sync_folder(path) != 0) || pwrite(fd, record, RECORD_BYTES, 0) != RECORD_BYTES ||
        fsync(fd) != 0) {
        return error_set(reterr, errno == ENOSPC ? BATON_EFULL : BATON_EIO,
                         "epoch file %s: cannot be written: %s", path, strerror(errno));
    }
    return BATON_OK;
}

int baton_token_check_file(const char *path, uint64_t epoch, int *ret_fd,
                           struct baton_error *reterr)
{
    uint64_t highest = 0;
    int fd = -1;
    int r;

    if (epoch == 0) {
        return error_set(reterr, BATON_EINVAL,
                         "epoch 0: no leader has it; give the epoch of a leadership");
    }
    r = open_locked(&fd, path, reterr);
    if (r != BATON_OK) {
        return r;
    }
    r = read_highest(fd, path, &highest, reterr);
    if (r == BATON_OK && epoch < highest) {
        r = error_set(reterr, BATON_ECONFLICT,
                      "epoch %" PRIu64 ": %s has seen %" PRIu64 ", so another process leads", epoch,
                      path, highest);
    } else if (r == BATON_OK && epoch > highest) {
        r = write_highest(fd, path, epoch, highest == 0, reterr);
    }
    if (r == BATON_OK && ret_fd) {
        *ret_fd = fd;
    } else {
        (void)close(fd);
    }
    return r;
}

/* ---- Redis, SQL ------------------------------------------------------------------------------ */

const char *baton_token_redis_script(void)
{
    return "local seen = tonumber(redis.call('GET', KEYS[1]) or '0')\n"
           "if not seen or not tonumber(ARGV[1]) or tonumber(ARGV[1]) < seen then\n"
           "  return redis.error_reply('STALE epoch ' .. ARGV[1] .. ' is below '\n"
           "                           .. tostring(redis.call('GET', KEYS[1])))\n"
           "end\n"
           "redis.call('SET', KEYS[1], ARGV[1])\n";
}

const char *baton_token_sql_schema(void)
{
    return "CREATE TABLE IF NOT EXISTS baton_token "
           "(name TEXT PRIMARY KEY, epoch BIGINT NOT NULL)";
}

const char *baton_token_sql_check(void)
{
    return "INSERT INTO baton_token (name, epoch) VALUES ($1, $2) "
           "ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch "
           "WHERE baton_token.epoch <= excluded.epoch";
}
