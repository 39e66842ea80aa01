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
#include "detector/model/name.h"

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

static struct unpack_message message;

static int say(uint32_t type, uint64_t bytes, size_t count, struct baton_error *reterr)
{
    ssize_t length = (ssize_t)(UNPACK_HEAD_BYTES + count);

    message.type = type;
    message.bytes = bytes;
    return send(UNPACK_SOCKET, &message, (size_t)length, MSG_NOSIGNAL) == length
               ? 0
               : error_set(reterr, BATON_ECLOSED, "the worker has closed the connection");
}

static int begin(void *userdata, uint64_t bytes, struct baton_error *reterr)
{
    (void)userdata;
    return say(UNPACK_SIZE, bytes, 0, reterr);
}

static int take(void *userdata, const void *bytes, size_t count, struct baton_error *reterr)
{
    (void)userdata;
    memcpy(message.data, bytes, count); /* a chunk of archive_scan.c is no larger */
    return say(UNPACK_DATA, 0, count, reterr);
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

/* Gives each file that the parent names. */
static int serve(struct archive *archive, struct baton_error *reterr)
{
    static const struct archive_sink sink = {begin, take, NULL};
    char name[NAME_BYTES_MAX + 1];
    ssize_t got;
    int rc = 0;

    while (rc == 0 && (got = recv(UNPACK_SOCKET, name, sizeof(name) - 1, 0)) > 0) {
        name[got] = '\0';
        rc = archive_file(archive, name, &sink, reterr);
        rc = rc ? rc : say(UNPACK_DONE, 0, 0, reterr);
    }
    return rc;
}

static int open_and_serve(struct baton_error *reterr)
{
    struct archive_rules rules = {0};
    struct unpack_request request;
    struct archive archive;
    FILE *file;
    int rc;

    if (recv(UNPACK_SOCKET, &request, sizeof(request), 0) != (ssize_t)sizeof(request)) {
        return error_set(reterr, BATON_EPROTO, "no request");
    }
    rules.archive_bytes_max = request.archive_bytes_max;
    rules.unpacked_bytes_max = request.unpacked_bytes_max;
    rules.entries_max = request.entries_max;
    file = fdopen(UNPACK_ARCHIVE, "r");
    if (file == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    rc = confine(reterr);
    rc = rc ? rc : archive_open(&archive, file, &rules, reterr);
    return rc ? rc : serve(&archive, reterr);
}

int main(int argc, char **argv)
{
    struct baton_error error = {0};

    helper_begin(argc, argv, usage, UNPACK_ARCHIVE + 1 - HELPER_FD);
    message.code = open_and_serve(&error);
    if (message.code != 0) {
        size_t count = strlen(error.message);
        memcpy(message.data, error.message, count);
        (void)say(UNPACK_ERROR, 0, count, NULL);
    }
    _exit(EXIT_SUCCESS);
}
