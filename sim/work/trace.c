#include "sim/work/trace.h"

#include <stdarg.h>
#include <stdio.h>

void yard_say(struct yard *yard, int process, const char *format, ...)
{
    char name[16] = "";
    va_list arguments;

    if (!yard->story.keeps) {
        return;
    }
    if (process != YARD_NOBODY) {
        (void)snprintf(name, sizeof(name), "p%d", process);
    }
    va_start(arguments, format);
    story_add(&yard->story, yard->now, name, format, arguments);
    va_end(arguments);
}

static void add_claims(struct buffer *text, const struct work_claim *claims, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buffer_printf(text, " %s@%llu%s%s", claims[i].id, (unsigned long long)claims[i].epoch,
                      claims[i].is_ended ? ",ended" : "", claims[i].is_gone ? ",gone" : "");
    }
}

static void describe(struct buffer *text, const struct work_message *message)
{
    const struct work_report *report = &message->report;

    if (message->type == WORK_REPORT) {
        buffer_printf(text, "report of %llu, seen %llu.%llu:", (unsigned long long)report->session,
                      (unsigned long long)report->seen.epoch,
                      (unsigned long long)report->seen.count);
        add_claims(text, report->claims, report->claim_count);
    } else if (message->type == WORK_DONE) {
        buffer_printf(text, "done: %s@%llu, code %d", message->result.id,
                      (unsigned long long)message->result.epoch, message->result.code);
    } else {
        static const char *const names[] = {
            [WORK_ASSIGN] = "assign", [WORK_STOP] = "stop", [WORK_ASK] = "ask", [WORK_ACK] = "ack"};
        buffer_printf(text, "%s %llu.%llu, session %llu:", names[message->type],
                      (unsigned long long)message->number.epoch,
                      (unsigned long long)message->number.count,
                      (unsigned long long)message->session);
        for (size_t i = 0; message->type == WORK_ASSIGN && i < message->count; i++) {
            buffer_printf(text, " %s@%llu", message->assignments[i].item->id,
                          (unsigned long long)message->assignments[i].epoch);
        }
        add_claims(text, message->ids, message->ids ? message->count : 0);
    }
}

void yard_say_message(struct yard *yard, int from, int to, const struct work_message *message)
{
    struct buffer text;

    if (!yard->story.keeps) {
        return;
    }
    buffer_init(&text, STORY_COLUMNS);
    describe(&text, message);
    if (to == YARD_NOBODY) {
        yard_say(yard, from, "sends to all: %.*s", (int)text.bytes, (const char *)text.data);
    } else {
        yard_say(yard, from, "sends to p%d: %.*s", to, (int)text.bytes, (const char *)text.data);
    }
    buffer_fini(&text);
}

void yard_violated(struct yard *yard, const char *check, const char *format, ...)
{
    struct result *result = &yard->result;
    va_list arguments;

    va_start(arguments, format);
    result_violate(result, check, format, arguments);
    va_end(arguments);
    yard_say(yard, YARD_NOBODY, "VIOLATED %s: %s", result->check, result->detail);
    longjmp(yard->violated, 1);
}
