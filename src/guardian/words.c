#include "guardian/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_HERE = '\1', EPOCH_HERE = '\2', WORDS_MAX = 32 };

size_t words_bytes(uint32_t slots)
{
    return sizeof(struct words) + slots * sizeof(struct words_slot);
}

bool words_set_text(struct words_text *ret, const char *const *words, size_t count)
{
    size_t used = 0;

    *ret = (struct words_text){0};
    if (count > WORDS_MAX) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        size_t bytes = strlen(words[i]) + 1;
        if (bytes > sizeof(ret->words) - used) {
            return false;
        }
        memcpy(ret->words + used, words[i], bytes);
        used += bytes;
    }
    ret->count = (uint32_t)count;
    ret->bytes = (uint32_t)used;
    return true;
}

/* What is written so far; failed: it did not fit. */
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

/* A word with its places filled in, behind its length. */
static void put_word(struct output *output, const char *word, const char *name, const char *epoch)
{
    size_t bytes = 0;

    for (const char *c = word; *c; c++) {
        bytes += *c == NAME_HERE ? strlen(name) : *c == EPOCH_HERE ? strlen(epoch) : 1;
    }
    put_number(output, '$', bytes);
    for (const char *c = word; *c; c++) {
        const char *text = *c == NAME_HERE ? name : *c == EPOCH_HERE ? epoch : NULL;
        put(output, text ? text : c, text ? strlen(text) : 1);
    }
    put(output, "\r\n", 2);
}

size_t words_render(char *ret, /* NOLINT(readability-non-const-parameter): is written to */
                    size_t ret_bytes, const struct words_text *text, const char *name,
                    uint64_t epoch)
{
    struct output output = {.bytes = ret, .max = ret_bytes};
    char number[24];
    const char *word = text->words;

    if (text->count == 0 || text->count > WORDS_MAX || text->bytes == 0 ||
        text->bytes > sizeof(text->words) || text->words[text->bytes - 1] != '\0' ||
        strnlen(name, WORDS_NAME_MAX) == WORDS_NAME_MAX) {
        return 0;
    }
    (void)snprintf(number, sizeof(number), "%" PRIu64, epoch);
    put_number(&output, '*', text->count);
    for (uint32_t i = 0; i < text->count; i++) {
        if (word >= text->words + text->bytes) {
            return 0;
        }
        put_word(&output, word, name, number);
        word += strlen(word) + 1;
    }
    return output.failed ? 0 : output.used;
}
