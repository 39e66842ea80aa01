/* Stands where baton-model should, as if a hostile archive had taken it over. */
#include "integration/detector_infer/model_liar.h"

#include "detector/infer/wire.h"
#include "unit/detector_model/sample.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct wire_request request;
static struct wire_answer answer = {.name = "liar"};

static void say(size_t bytes)
{
    (void)send(HELPER_FD, &answer, bytes, MSG_NOSIGNAL);
}

static void crash(void)
{
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
}

static void lie_of_archive(enum lie lie)
{
    const char *text = lie == LIE_BAD_PIPELINE ? "{\"version\":1}" : SAMPLE_PIPELINE;
    char *memory = mmap(NULL, WIRE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, WIRE_MEMORY, 0);

    memcpy(memory, text, strlen(text));
    answer.text_bytes = lie == LIE_LONG_TEXT ? PIPELINE_BYTES_MAX + 1 : strlen(text);
    answer.code = lie == LIE_CODE ? 7 : lie == LIE_ERROR ? BATON_EPROTO : 0;
    (void)snprintf(answer.error, sizeof(answer.error), "a\x1b[31m\nb");
    if (lie == LIE_CRASH) {
        crash();
    } else if (lie == LIE_CLOSED) {
        (void)close(HELPER_FD);
    }
    if (lie == LIE_CLOSED || lie == LIE_SILENT) {
        (void)pause();
    }
    say(lie == LIE_HALF ? sizeof(answer) / 2 : sizeof(answer));
}

int main(void)
{
    unsigned char first = LIE_NONE;
    enum lie lie = read(WIRE_ARCHIVE_FILE, &first, 1) == 1 ? (enum lie)first : LIE_NONE;

    if (lie == LIE_CRASH_FIRST) {
        crash();
    }
    while (lie != LIE_NOTHING && recv(HELPER_FD, &request, sizeof(request), 0) > 0) {
        if (request.type == WIRE_START) {
            say(sizeof(answer));
        } else {
            lie_of_archive(lie);
        }
    }
    return 0;
}
