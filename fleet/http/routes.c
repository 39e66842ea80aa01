#include "fleet/http/routes.h"

#include "base/url.h"

#include <stdbool.h>
#include <string.h>

static size_t segment(const char *at)
{
    return strcspn(at, "/?");
}

/* Whether the path has the form of the pattern; the id is then in `ret_id`. */
static bool fits(const char *pattern, const char *target, char ret_id[static ROUTE_ID_MAX])
{
    char text[ROUTE_ID_MAX] = "";

    while (*pattern == '/' && *target == '/') {
        size_t wanted = segment(++pattern), given = segment(++target);
        bool is_id = *pattern == '{';

        if (url_decode(is_id ? ret_id : text, ROUTE_ID_MAX, target, given) != 0) {
            return false;
        }
        if (is_id ? *ret_id == '\0'
                  : strlen(text) != wanted || memcmp(text, pattern, wanted) != 0) {
            return false;
        }
        pattern += wanted;
        target += given;
    }
    return *pattern == '\0' && (*target == '\0' || *target == '?');
}

static void add_method(char methods[static ROUTE_METHODS_MAX], const char *method)
{
    const char *words[] = {*methods != '\0' ? ", " : "", method,
                           strcmp(method, "GET") == 0 ? ", HEAD" : ""};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t used = strlen(methods), bytes = strlen(words[i]);

        if (used + bytes < ROUTE_METHODS_MAX) {
            memcpy(methods + used, words[i], bytes + 1);
        }
    }
}

const struct route *route_find(const struct route *routes, const char *method, const char *target,
                               char ret_id[static ROUTE_ID_MAX],
                               char ret_methods[static ROUTE_METHODS_MAX])
{
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;

    *ret_methods = '\0';
    for (const struct route *route = routes; route->method != NULL; route++) {
        *ret_id = '\0';
        if (fits(route->pattern, target, ret_id)) {
            if (strcmp(route->method, wanted) == 0) {
                return route;
            }
            add_method(ret_methods, route->method);
        }
    }
    return NULL;
}

int route_parameter(const char *target, const char *name, char *ret, size_t bytes)
{
    const char *query = url_query(target);
    struct url_pair pair;

    while (url_next(&query, &pair)) {
        if (pair.key_bytes == strlen(name) && memcmp(pair.key, name, pair.key_bytes) == 0) {
            return url_decode(ret, bytes, pair.value, pair.value_bytes) == 0 ? (int)strlen(ret)
                                                                             : -1;
        }
    }
    return 0;
}
