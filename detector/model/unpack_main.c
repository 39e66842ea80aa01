/* baton-unpack: opens one archive, in a process of its own that can be lost.
 *
 *   request ─▶ fences (confine.h): no file, no thread, no network, no privilege ─▶ the archive is
 *   read, and its content sent over the socket (unpack_wire.h) ─▶ end
 *
 * It is started by baton-detector alone. It has the archive and the socket, and can neither open
 * nor make anything else: baton-detector writes the files.
 */
#include "base/error.h"
#include "detector/camera/confine.h"
#include "detector/helper/helper.h"
#include "detector/model/archive_scan.h"
#include "detector/model/unpack_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MEMORY_MAX = 256 << 20 };

static const char usage[] =
    "usage: baton-unpack --inherited\n"
    "\n"
    "Started by baton-detector, with descriptors that it inherits; of no use by hand.\n"
    "It opens one archive of models and tells what is in it.\n";

static int say(struct unpack_message *message, size_t count)
{
    ssize_t bytes = (ssize_t)(UNPACK_HEAD_BYTES + count);

    return send(UNPACK_SOCKET, message, (size_t)bytes, MSG_NOSIGNAL) == bytes ? 0 : BATON_ECLOSED;
}

static int begin(void *userdata, const char *name, uint64_t bytes, struct baton_error *reterr)
{
    struct unpack_message *message = userdata;
    size_t count = strlen(name);

    message->type = UNPACK_FILE;
    message->bytes = bytes;
    memcpy(message->data, name, count);
    return say(message, count) == 0
               ? 0
               : error_set(reterr, BATON_ECLOSED, "the worker has closed the connection");
}

static int take(void *userdata, const void *bytes, size_t count, struct baton_error *reterr)
{
    struct unpack_message *message = userdata;
    const unsigned char *at = bytes;

    message->type = UNPACK_DATA;
    message->bytes = 0;
    while (count > 0) {
        size_t part = count < UNPACK_DATA_MAX ? count : UNPACK_DATA_MAX;

        memcpy(message->data, at, part);
        if (say(message, part) != 0) {
            return error_set(reterr, BATON_ECLOSED, "the worker has closed the connection");
        }
        at += part;
        count -= part;
    }
    return 0;
}

/* A small archive may promise so many entries that the library takes gigabytes for them. */
static void limit_memory(void)
{
    struct rlimit limit;

    /* Without a limit of memory this is a sanitizer's build: see confine.c. */
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_max != RLIM_INFINITY) {
        limit = (struct rlimit){MEMORY_MAX, MEMORY_MAX};
        (void)setrlimit(RLIMIT_AS, &limit);
    }
}

static int confine(struct baton_error *reterr)
{
    static const struct confinement nothing = {0};
    int rc = confine_process(&nothing, reterr);

    if (rc == 0 && !helper_is_bound()) {
        rc = error_set(reterr, BATON_EUNAVAILABLE, "prctl: this process would be left behind");
    }
    limit_memory();
    return rc ? rc : confine_stream(&nothing, reterr);
}

static int serve(struct unpack_message *message, struct baton_error *reterr)
{
    const struct archive_sink sink = {begin, take, message};
    struct archive_rules rules = {0};
    struct unpack_request request;
    FILE *archive;
    int rc;

    if (recv(UNPACK_SOCKET, &request, sizeof(request), 0) != (ssize_t)sizeof(request)) {
        return error_set(reterr, BATON_EPROTO, "no request");
    }
    rules.archive_bytes_max = request.archive_bytes_max;
    rules.unpacked_bytes_max = request.unpacked_bytes_max;
    rules.entries_max = request.entries_max;
    archive = fdopen(UNPACK_ARCHIVE, "r");
    if (archive == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    rc = confine(reterr);
    return rc ? rc : archive_scan(archive, &rules, &sink, reterr);
}

int main(int argc, char **argv)
{
    static struct unpack_message message;
    struct baton_error error = {0};
    size_t count = 0;

    helper_begin(argc, argv, usage, UNPACK_ARCHIVE + 1 - HELPER_FD);
    message.code = serve(&message, &error);
    message.type = message.code != 0 ? UNPACK_ERROR : UNPACK_DONE;
    message.bytes = 0;
    if (message.code != 0) {
        count = strlen(error.message);
        memcpy(message.data, error.message, count);
    }
    (void)say(&message, count);
    _exit(EXIT_SUCCESS);
}
