/* Texts that many elections share: ids, names and entries of processes. */
#include "provider/redis/client.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct text {
    UT_hash_handle hh;
    unsigned references;
    char bytes[];
};

struct text *text_get(struct client *client, const char *bytes, size_t count)
{
    struct text *text;

    HASH_FIND(hh, client->texts, bytes, count, text);
    if (!text) {
        text = calloc(1, sizeof(*text) + count + 1);
        if (!text) {
            return NULL;
        }
        memcpy(text->bytes, bytes, count);
        HASH_ADD(hh, client->texts, bytes, count, text);
        if (!text->hh.tbl) {
            free(text);
            return NULL;
        }
    }
    text->references++;
    return text;
}

void text_drop(struct client *client, struct text *text)
{
    if (text && --text->references == 0) {
        HASH_DEL(client->texts, text);
        free(text);
    }
}

void text_move(struct client *client, struct text **to, struct text *text)
{
    struct text *before = *to;

    *to = text;
    text_drop(client, before);
}

const char *text_of(const struct text *text)
{
    return text ? text->bytes : "";
}

bool text_is_utf8(const char *bytes)
{
    json_t *judged = json_string(bytes); /* NULL unless it is */
    bool is_utf8 = judged != NULL;

    json_decref(judged);
    return is_utf8;
}
