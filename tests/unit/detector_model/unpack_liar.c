/* Stands where baton-unpack should, as if a hostile archive had taken it over. What it does is
 * chosen by the request's entries_max. */
#include "unit/detector_model/unpack_liar.h"

#include "detector/model/unpack_wire.h"
#include "unit/detector_model/sample.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static const char model[] = SAMPLE_MODEL;

static struct unpack_message message;

static void say(uint32_t type, uint64_t bytes, const char *text, size_t count)
{
    message.type = type;
    message.bytes = bytes;
    memcpy(message.data, text, count);
    (void)send(UNPACK_SOCKET, &message, UNPACK_HEAD_BYTES + count, MSG_NOSIGNAL);
}

static void file(const char *name, const char *text)
{
    say(UNPACK_FILE, strlen(text), name, strlen(name));
    say(UNPACK_DATA, 0, text, strlen(text));
}

static void crash(void)
{
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
}

static void lie_of_files(enum lie lie)
{
    if (lie != LIE_NO_PIPELINE) {
        file("pipeline.json", lie == LIE_BAD_PIPELINE ? "{\"version\":1}" : SAMPLE_PIPELINE);
    }
    if (lie == LIE_OUTSIDE || lie == LIE_OTHER_FILE || lie == LIE_HIDDEN) {
        file(lie == LIE_OUTSIDE      ? "../" SAMPLE_MODEL
             : lie == LIE_OTHER_FILE ? "models/boats.onnx"
                                     : "pipeline.json",
             "x");
    }
    if (lie == LIE_NUL) {
        say(UNPACK_FILE, 1, SAMPLE_MODEL "\0x", sizeof(model) + 1);
    } else if (lie == LIE_NO_NAME) {
        say(UNPACK_FILE, 1, "", 0);
    } else if (lie == LIE_TOO_LARGE) {
        say(UNPACK_FILE, UINT64_MAX - 10, model, strlen(model));
    } else if (lie == LIE_SHORT || lie == LIE_LONG) {
        say(UNPACK_FILE, lie == LIE_SHORT ? 5 : 3, model, strlen(model));
        say(UNPACK_DATA, 0, "four", 4);
    } else if (lie != LIE_NO_MODEL) {
        file(model, "a model");
    }
    if (lie == LIE_TWICE) {
        file(model, "another");
    }
}

int main(void)
{
    struct unpack_request request = {0};
    enum lie lie;

    (void)recv(UNPACK_SOCKET, &request, sizeof(request), 0);
    lie = (enum lie)request.entries_max;
    if (lie == LIE_CRASH) {
        crash();
    } else if (lie == LIE_SILENT) {
        pause();
    } else if (lie == LIE_CLOSED) {
        (void)close(UNPACK_SOCKET);
        pause();
    } else if (lie == LIE_TYPE) {
        say(99, 0, "", 0);
    } else if (lie == LIE_HALF_HEAD) {
        (void)send(UNPACK_SOCKET, &message, UNPACK_HEAD_BYTES - 1, MSG_NOSIGNAL);
    } else if (lie == LIE_DATA_FIRST) {
        say(UNPACK_DATA, 0, "x", 1);
    } else if (lie == LIE_GOOD_ERROR || lie == LIE_ERROR) {
        message.code = lie == LIE_ERROR ? -1000000 : 7;
        say(UNPACK_ERROR, 0, "a\x1b[31m\nb", 8);
    } else if (lie != LIE_NOTHING) {
        lie_of_files(lie);
        say(UNPACK_DONE, 0, "", 0);
    }
    return 0;
}
