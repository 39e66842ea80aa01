/* Stands where baton-unpack should, as if a hostile archive had taken it over. What it does is
 * chosen by the request's entries_max. */
#include "unit/detector_model/unpack_liar.h"

#include "detector/model/unpack_wire.h"
#include "unit/detector_model/sample.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct unpack_message message;

static void say(uint32_t type, uint64_t bytes, const char *text)
{
    size_t count = strlen(text);

    message.type = type;
    message.bytes = bytes;
    memcpy(message.data, text, count);
    (void)send(UNPACK_SOCKET, &message, UNPACK_HEAD_BYTES + count, MSG_NOSIGNAL);
}

static void crash(void)
{
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
}

static void lie_of_file(enum lie lie, bool is_pipeline)
{
    const char *text = is_pipeline && lie == LIE_BAD_PIPELINE ? "{\"version\":1}"
                       : is_pipeline                          ? SAMPLE_PIPELINE
                                                              : "a model";
    uint64_t bytes = strlen(text);

    if (!is_pipeline && lie == LIE_TOO_LARGE) {
        bytes = UINT64_MAX - 10;
    } else if (!is_pipeline && (lie == LIE_SHORT || lie == LIE_LONG)) {
        bytes = lie == LIE_SHORT ? bytes + 1 : bytes - 1;
    }
    if (lie != LIE_NO_SIZE) {
        say(UNPACK_SIZE, bytes, "");
    }
    if (lie == LIE_TWO_SIZES) {
        say(UNPACK_SIZE, bytes, "");
    }
    if (lie != LIE_NO_DATA) {
        say(UNPACK_DATA, 0, text);
    }
    say(UNPACK_DONE, 0, "");
}

static void lie_of_files(enum lie lie)
{
    char name[256];

    for (int i = 0; recv(UNPACK_SOCKET, name, sizeof(name), 0) > 0; i++) {
        lie_of_file(lie, i == 0);
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
        say(99, 0, "");
    } else if (lie == LIE_HALF_HEAD) {
        (void)send(UNPACK_SOCKET, &message, UNPACK_HEAD_BYTES - 1, MSG_NOSIGNAL);
    } else if (lie == LIE_GOOD_ERROR || lie == LIE_ERROR) {
        message.code = lie == LIE_ERROR ? -1000000 : 7;
        say(UNPACK_ERROR, 0, "a\x1b[31m\nb");
    } else if (lie != LIE_NOTHING) {
        lie_of_files(lie);
    }
    return 0;
}
