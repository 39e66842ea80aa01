#include "provider/redis/parse.h"

#include <string.h>

/* The remaining text. */
struct rest {
    const char *at;
    size_t bytes;
};

/* The text up to the next blank, which is skipped; false: there is no blank. */
static bool next_word(struct rest *rest, struct rest *ret)
{
    const char *blank = rest->bytes > 0 ? memchr(rest->at, ' ', rest->bytes) : NULL;

    *ret = *rest;
    if (!blank) {
        *rest = (struct rest){.at = rest->at + rest->bytes};
        return false;
    }
    ret->bytes = (size_t)(blank - rest->at);
    rest->at = blank + 1;
    rest->bytes -= ret->bytes + 1;
    return true;
}

static bool is_word(const struct rest *word, const char *text)
{
    return word->bytes == strlen(text) && memcmp(word->at, text, word->bytes) == 0;
}

static bool take_id(char ret[BATON_NAME_MAX], const struct rest *word)
{
    if (word->bytes >= BATON_NAME_MAX || (word->bytes > 0 && memchr(word->at, '\0', word->bytes))) {
        return false;
    }
    if (word->bytes > 0) {
        memcpy(ret, word->at, word->bytes);
    }
    ret[word->bytes] = '\0';
    return true;
}

bool parse_number(uint64_t *ret, const char *text, size_t bytes)
{
    uint64_t number = 0;

    if (bytes == 0 || bytes > 16) {
        return false;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    *ret = number;
    return number <= PARSE_NUMBER_MAX;
}

bool parse_notice(struct notice *ret, const char *text, size_t bytes)
{
    struct rest rest = {.at = text, .bytes = bytes};
    struct rest verb;
    struct rest word;
    bool has_more = next_word(&rest, &verb);

    memset(ret, 0, sizeof(*ret));
    ret->is_offer = is_word(&verb, "offered");
    if ((ret->is_offer || is_word(&verb, "released")) && has_more) {
        ret->type = NOTICE_RELEASED;
        /* A blank ends the name even without an heir: otherwise the name may be truncated. */
        if (!next_word(&rest, &word) || word.bytes == 0 || !take_id(ret->by, &word)) {
            return false;
        }
        (void)next_word(&rest, &word);
        if (!parse_number(&ret->epoch, rest.at, rest.bytes)) {
            ret->epoch = 0;
        }
        return take_id(ret->heir, &word);
    }
    if (is_word(&verb, "taken") && has_more) {
        ret->type = NOTICE_TAKEN;
        (void)next_word(&rest, &word);
        return parse_number(&ret->epoch, word.at, word.bytes) && take_id(ret->by, &rest);
    }
    ret->type = NOTICE_MEMBERS;
    return is_word(&verb, "members") && take_id(ret->by, &rest);
}

static bool next_number(struct rest *rest, uint64_t *ret)
{
    struct rest word;

    return next_word(rest, &word) && parse_number(ret, word.at, word.bytes);
}

bool parse_change(struct provider_value *ret, char name[PROVIDER_KEY_MAX + 1], const char *text,
                  size_t bytes)
{
    struct rest rest = {.at = text, .bytes = bytes};
    uint64_t revision;
    uint64_t length;
    uint64_t has_value;

    if (!next_number(&rest, &revision) || !next_number(&rest, &length) ||
        !next_number(&rest, &has_value) || revision == 0 || has_value > 1 ||
        length > PROVIDER_KEY_MAX || length > rest.bytes ||
        rest.bytes - length > PROVIDER_VALUE_MAX || (length > 0 && memchr(rest.at, '\0', length))) {
        return false;
    }
    memcpy(name, rest.at, length);
    name[length] = '\0';
    *ret = (struct provider_value){.key = name,
                                   .data = has_value ? rest.at + length : NULL,
                                   .bytes = has_value ? rest.bytes - length : 0,
                                   .revision = revision};
    return true;
}
