/* baton-unpack: opens one archive, in a process of its own that can be lost (unpack_wire.h). It has
 * the archive and the socket, and can neither open nor make anything else: baton-detector writes
 * the files. */
#include "base/error.h"
#include "base/json_load.h"
#include "detector/camera/confine.h"
#include "detector/helper/helper.h"
#include "detector/model/archive_scan.h"
#include "detector/model/pipeline.h"
#include "detector/model/unpack_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A small archive may promise so many entries that the library takes gigabytes for them. */
enum { MEMORY_MAX_MIB = 256 };

static struct unpack_message message;

static int say(size_t count, struct baton_error *reterr)
{
    ssize_t length = (ssize_t)(UNPACK_HEAD_BYTES + count);

    return send(HELPER_FD, &message, (size_t)length, MSG_NOSIGNAL) == length
               ? 0
               : error_set(reterr, BATON_ECLOSED, "the worker has closed the connection");
}

/* Says the bytes of a file, and then none. */
static int give(zip_t *zip, const char *name, struct baton_error *reterr)
{
    struct archive_file file;
    int rc = archive_file(&file, zip, name, reterr);
    ssize_t got = 1;

    while (rc == 0 && got > 0) {
        got = archive_read(&file, message.data, sizeof(message.data), reterr);
        rc = got < 0 ? (int)got : say((size_t)got, reterr);
    }
    if (rc == 0) {                   /* else the process ends */
        (void)zip_fclose(file.file); /* the read to its end has reported any error */
    }
    return rc;
}

static int confine(struct baton_error *reterr)
{
    static const struct confinement nothing = {.memory_max_mib = MEMORY_MAX_MIB};
    int rc = confine_process(&nothing, reterr);

    return rc ? rc : confine_stream(&nothing, reterr);
}

/* Gives each file that the parent names. */
static int serve(zip_t *zip, struct baton_error *reterr)
{
    char name[PIPELINE_FILE_MAX + 1];
    ssize_t got;
    int rc = 0;

    while (rc == 0 && (got = recv(HELPER_FD, name, sizeof(name) - 1, 0)) > 0) {
        name[got] = '\0';
        rc = give(zip, name, reterr);
    }
    return rc;
}

static int open_and_serve(struct baton_error *reterr)
{
    FILE *file = fdopen(HELPER_FILE, "r");
    zip_t *zip;
    int rc;

    if (file == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    rc = confine(reterr);
    rc = rc ? rc : archive_open(&zip, file, reterr);
    return rc ? rc : serve(zip, reterr);
}

int main(int argc, char **argv)
{
    struct baton_error error = {0};

    helper_begin(argc, argv, "It opens one archive of models and tells what is in it.");
    json_load_guard();
    message.code = open_and_serve(&error);
    if (message.code != 0) {
        size_t count = strlen(error.message);
        memcpy(message.data, error.message, count);
        (void)say(count, NULL);
    }
    _exit(EXIT_SUCCESS);
}
