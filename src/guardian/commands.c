#include "guardian/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_HERE = '\1', EPOCH_HERE = '\2', ARGUMENTS_MAX = 32 };

size_t commands_bytes(uint32_t slots)
{
    return sizeof(struct commands) + slots * sizeof(struct commands_slot);
}

bool commands_set_text(struct commands_text *ret, const char *const *arguments, size_t count)
{
    size_t used = 0;

    *ret = (struct commands_text){0};
    if (count > ARGUMENTS_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        size_t bytes = strlen(arguments[i]) + 1;
        if (bytes > sizeof(ret->arguments) - used) {
            return false;
        }
        memcpy(ret->arguments + used, arguments[i], bytes);
        used += bytes;
    }
    ret->count = (uint32_t)count;
    ret->bytes = (uint32_t)used;
    return true;
}

/* The bytes written so far; failed: they did not fit. */
struct output {
    char *bytes;
    size_t used;
    size_t max;
    bool failed;
};

static void put(struct output *output, const char *data, size_t bytes)
{
    if (bytes > output->max - output->used) {
        output->failed = true;
        return;
    }
    memcpy(output->bytes + output->used, data, bytes);
    output->used += bytes;
}

static void put_number(struct output *output, char kind, size_t number)
{
    char text[32];
    int bytes = snprintf(text, sizeof(text), "%c%zu\r\n", kind, number);
    put(output, text, (size_t)bytes);
}

/* An argument with its places filled in, after its length. */
static void put_argument(struct output *output, const char *argument, const char *name,
                         const char *epoch)
{
    size_t bytes = 0;

    for (const char *c = argument; *c; c++) {
        bytes += *c == NAME_HERE ? strlen(name) : *c == EPOCH_HERE ? strlen(epoch) : 1;
    }
    put_number(output, '$', bytes);
    for (const char *c = argument; *c; c++) {
        const char *text = *c == NAME_HERE ? name : *c == EPOCH_HERE ? epoch : NULL;
        put(output, text ? text : c, text ? strlen(text) : 1);
    }
    put(output, "\r\n", 2);
}

size_t commands_render(char *ret, /* NOLINT(readability-non-const-parameter): is written to */
                       size_t ret_bytes, const struct commands_text *text, const char *name,
                       uint64_t epoch)
{
    struct output output = {.bytes = ret, .max = ret_bytes};
    char number[24];
    const char *argument = text->arguments;

    if (text->count == 0 || text->count > ARGUMENTS_MAX || text->bytes == 0 ||
        text->bytes > sizeof(text->arguments) || text->arguments[text->bytes - 1] != '\0' ||
        strnlen(name, COMMANDS_NAME_MAX) == COMMANDS_NAME_MAX) {
        return 0;
    }
    (void)snprintf(number, sizeof(number), "%" PRIu64, epoch);
    put_number(&output, '*', text->count);
    for (uint32_t i = 0; i < text->count; i++) {
        if (argument >= text->arguments + text->bytes) {
            return 0;
        }
        put_argument(&output, argument, name, number);
        argument += strlen(argument) + 1;
    }
    return output.failed ? 0 : output.used;
}
