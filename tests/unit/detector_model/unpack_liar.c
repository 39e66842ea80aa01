/* Stands where baton-unpack should, as if a hostile archive had taken it over. */
#include "unit/detector_model/unpack_liar.h"

#include "detector/helper/helper.h"
#include "detector/model/unpack_wire.h"
#include "unit/detector_model/sample.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct unpack_message message;

static void say(int code, size_t count)
{
    message.code = code;
    (void)send(HELPER_FD, &message, UNPACK_HEAD_BYTES + count, MSG_NOSIGNAL);
}

static void say_text(int code, const char *text)
{
    memcpy(message.data, text, strlen(text));
    say(code, strlen(text));
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
    say_text(0, is_pipeline && lie == LIE_BAD_PIPELINE ? "{\"version\":1}"
                : is_pipeline                          ? SAMPLE_PIPELINE
                                                       : "a model");
    for (int i = 0; i < 100 && lie == (is_pipeline ? LIE_LONG_PIPELINE : LIE_ENDLESS); i++) {
        say(0, UNPACK_DATA_MAX);
    }
    if (is_pipeline || lie != LIE_TORN) {
        say(0, 0);
    }
}

static void lie_of_files(enum lie lie)
{
    char name[256];

    for (int i = 0; recv(HELPER_FD, name, sizeof(name), 0) > 0; i++) {
        lie_of_file(lie, i == 0);
        if (i == 1 && lie == LIE_TORN) {
            return;
        }
    }
}

int main(void)
{
    unsigned char first = LIE_NONE;
    enum lie lie = read(HELPER_FILE, &first, 1) == 1 ? (enum lie)first : LIE_NONE;

    if (lie == LIE_CRASH) {
        crash();
    } else if (lie == LIE_SILENT) {
        pause();
    } else if (lie == LIE_CLOSED) {
        (void)close(HELPER_FD);
        pause();
    } else if (lie == LIE_HALF_HEAD) {
        (void)send(HELPER_FD, &message, UNPACK_HEAD_BYTES - 1, MSG_NOSIGNAL);
    } else if (lie == LIE_ERROR || lie == LIE_CODE) {
        say_text(lie == LIE_ERROR ? -1000000 : 7, "a\x1b[31m\nb");
    } else if (lie == LIE_LONG_ERROR) {
        say(-1, UNPACK_DATA_MAX);
    } else if (lie != LIE_NOTHING) {
        lie_of_files(lie);
    }
    return 0;
}
