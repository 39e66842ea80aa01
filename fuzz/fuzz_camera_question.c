/* A path and a query of GET /camera/…, with a NUL between them; the query is an If-None-Match, too.
 */
#include "detector/service_question.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* What comes out is what the rest relies on: a whole name that walks nowhere. */
static void check(const struct camera_question *question)
{
    if (!identifier_is_valid(question->identifier) ||
        strstr(question->identifier, "/../") != NULL) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct camera_question question;
    struct baton_error error;
    char *text = malloc(bytes + 2);
    const char *query;

    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, bytes);
    text[bytes] = text[bytes + 1] = '\0';
    query = text + strlen(text) + 1;
    if (query > text + bytes) {
        query = "";
    }
    if (camera_question_parse(&question, text, query, &error) == 0) {
        check(&question);
    }
    if (question_has_tag(query, "\"1-2\"") && strpbrk(query, "*1") == NULL) {
        abort();
    }
    free(text);
    return 0;
}
