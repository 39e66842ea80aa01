/* Writes the files of an archive into a draft. The child's messages are not trusted. */
#include "detector/model/archive_draft.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int nonsense(struct baton_error *reterr)
{
    return error_set(reterr, BATON_EPROTO,
                     "archive: the process that unpacks it talks nonsense and was ended");
}

/* ---- One file ------------------------------------------------------------------------------- */

static int put(int fd, const unsigned char *at, size_t count, struct baton_error *reterr)
{
    while (count > 0) {
        ssize_t done = write(fd, at, count);

        if (done < 0 && errno != EINTR) {
            int errnum = errno;
            return error_set(reterr, error_from_errno(errnum),
                             "unpacking an archive: %s; make room for it, or set another cache",
                             strerror(errnum));
        }
        at += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

/* Flushes the open file to the disk and closes it. */
static int sync_file(struct archive_draft *to, struct baton_error *reterr)
{
    int rc = 0;

    if (fsync(to->fd) != 0) {
        int errnum = errno;
        rc = error_set(reterr, error_from_errno(errnum), "unpacking an archive: %s",
                       strerror(errnum));
    }
    if (close(to->fd) != 0 && rc == 0) {
        rc = error_set(reterr, BATON_EIO, "unpacking an archive: a file cannot be closed");
    }
    to->fd = -1;
    return rc;
}

static int no_memory(struct baton_error *reterr)
{
    return error_set(reterr, BATON_ENOMEM, "out of memory");
}

static int note_sum(struct archive_draft *to, struct baton_error *reterr)
{
    char digest[DIGEST_BYTES];

    if (digest_end(&to->digest, digest) != 0) {
        return no_memory(reterr);
    }
    sums_add(&to->sums, to->name, digest);
    return to->sums.failed ? no_memory(reterr) : 0;
}

/* Finishes the open file, if there is one, on the disk. */
static int finish_file(struct archive_draft *to, struct baton_error *reterr)
{
    int rc;

    if (to->fd < 0) {
        return 0;
    }
    if (to->left > 0) {
        return nonsense(reterr);
    }
    rc = sync_file(to, reterr);
    rc = rc ? rc : note_sum(to, reterr);
    if (rc == 0 && !to->has_pipeline) {
        rc = pipeline_parse(&to->pipeline, (const char *)to->text.data, to->text.bytes, reterr);
        to->has_pipeline = rc == 0;
    }
    return rc;
}

/* True if pipeline.json names the file and it is not there yet. */
static bool is_wanted(struct archive_draft *to, const char *name)
{
    bool is_named = false;

    if (strcmp(name, PIPELINE_FILE) == 0) {
        return false;
    }
    for (size_t i = 0; i < to->pipeline.model_count; i++) {
        if (strcmp(to->pipeline.models[i].file, name) == 0) {
            if (to->is_there[i]) {
                return false;
            }
            to->is_there[i] = true;
            is_named = true;
        }
    }
    return is_named;
}

int archive_draft_begin(void *userdata, const char *name, uint64_t bytes,
                        struct baton_error *reterr)
{
    struct archive_draft *to = userdata;
    bool is_first = !to->has_pipeline && to->fd < 0;
    int rc = finish_file(to, reterr);

    if (rc != 0) {
        return rc;
    }
    if (is_first ? strcmp(name, PIPELINE_FILE) != 0 || bytes > PIPELINE_BYTES_MAX
                 : !is_wanted(to, name)) {
        return nonsense(reterr);
    }
    if (bytes > to->rules->unpacked_bytes_max - to->total) {
        return error_set(reterr, BATON_ETOOBIG,
                         "archive: it unpacks to more than %llu bytes, which is the limit",
                         (unsigned long long)to->rules->unpacked_bytes_max);
    }
    to->fd = draft_file(&to->draft, name, reterr);
    if (to->fd < 0) {
        rc = to->fd;
        to->fd = -1;
        return rc;
    }
    to->left = bytes;
    to->total += bytes;
    (void)snprintf(to->name, sizeof(to->name), "%s", name);
    return digest_begin(&to->digest) == 0 ? 0 : no_memory(reterr);
}

int archive_draft_take(void *userdata, const void *bytes, size_t count, struct baton_error *reterr)
{
    struct archive_draft *to = userdata;

    if (to->fd < 0 || count > to->left) {
        return nonsense(reterr);
    }
    to->left -= count;
    if (!to->has_pipeline) {
        buffer_put(&to->text, bytes, count);
        if (to->text.failed) {
            return no_memory(reterr);
        }
    }
    if (digest_add(&to->digest, bytes, count) != 0) {
        return no_memory(reterr);
    }
    return put(to->fd, bytes, count, reterr);
}

/* ---- The draft ------------------------------------------------------------------------------ */

int archive_draft_open(struct archive_draft *to, int parent_fd, const struct archive_rules *rules,
                       struct baton_error *reterr)
{
    *to = (struct archive_draft){.rules = rules, .fd = -1};
    buffer_init(&to->text, PIPELINE_BYTES_MAX);
    buffer_init(&to->sums, SUMS_BYTES_MAX);
    return draft_new(&to->draft, parent_fd, reterr);
}

static int write_sums(struct archive_draft *to, struct baton_error *reterr)
{
    int rc;

    to->fd = draft_file(&to->draft, SUMS_FILE, reterr);
    if (to->fd < 0) {
        rc = to->fd;
        to->fd = -1;
        return rc;
    }
    rc = put(to->fd, to->sums.data, to->sums.bytes, reterr);
    return rc ? rc : sync_file(to, reterr);
}

int archive_draft_end(struct archive_draft *to, const char *name, struct baton_error *reterr)
{
    int rc = finish_file(to, reterr);

    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < to->pipeline.model_count; i++) {
        if (!to->is_there[i] && strcmp(to->pipeline.models[i].file, PIPELINE_FILE) != 0) {
            return nonsense(reterr);
        }
    }
    if (!to->has_pipeline) {
        return nonsense(reterr);
    }
    rc = write_sums(to, reterr);
    return rc ? rc : draft_take(&to->draft, name, reterr);
}

void archive_draft_close(struct archive_draft *to)
{
    if (to->fd >= 0) {
        close(to->fd);
    }
    draft_drop(&to->draft);
    if (to->has_pipeline) {
        pipeline_fini(&to->pipeline);
    }
    digest_fini(&to->digest);
    buffer_fini(&to->sums);
    buffer_fini(&to->text);
}

/* ---- The child's messages ------------------------------------------------------------------- */

static int accept_file(struct archive_draft *to, const struct unpack_message *message, size_t count,
                       struct baton_error *reterr)
{
    char name[NAME_BYTES_MAX + 1];

    if (count == 0 || count > NAME_BYTES_MAX || memchr(message->data, 0, count) != NULL) {
        return nonsense(reterr);
    }
    memcpy(name, message->data, count);
    name[count] = '\0';
    return archive_draft_begin(to, name, message->bytes, reterr);
}

/* Lets only codes pass that a scan can end with: other codes have a meaning for the store. */
static int code_of(int code)
{
    bool is_right = code == BATON_ETOOBIG || code == BATON_EIO || code == BATON_ENOMEM ||
                    code == BATON_EUNAVAILABLE || code == BATON_EINVAL;

    return is_right ? code : BATON_EPROTO;
}

static int accept_error(const struct unpack_message *message, size_t count,
                        struct baton_error *reterr)
{
    char text[BATON_ERROR_MESSAGE_MAX];

    if (message->code >= 0 || count >= sizeof(text)) {
        return nonsense(reterr);
    }
    for (size_t i = 0; i < count; i++) {
        unsigned char c = message->data[i];
        text[i] = (char)(c >= 0x20 && c != 0x7f ? c : '?');
    }
    text[count] = '\0';
    return error_set(reterr, code_of(message->code), "%s", text);
}

int archive_accept(struct archive_draft *to, const struct unpack_message *message, size_t bytes,
                   bool *is_done, struct baton_error *reterr)
{
    size_t count;

    if (bytes < UNPACK_HEAD_BYTES || bytes > sizeof(*message)) {
        return nonsense(reterr);
    }
    count = bytes - UNPACK_HEAD_BYTES;
    switch (message->type) {
    case UNPACK_FILE:
        return accept_file(to, message, count, reterr);
    case UNPACK_DATA:
        return archive_draft_take(to, message->data, count, reterr);
    case UNPACK_DONE:
        *is_done = true;
        return 0;
    case UNPACK_ERROR:
        return accept_error(message, count, reterr);
    default:
        return nonsense(reterr);
    }
}
