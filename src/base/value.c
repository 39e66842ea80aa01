#include "base/value.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DURATION_DAYS_MAX = 366 };

int value_number(const char *text, int64_t min, int64_t max, int64_t *ret,
                 struct baton_error *reterr)
{
    char *end = NULL;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    bool is_digits = isdigit((unsigned char)text[0]) || (text[0] == '-' && text[1] != '\0');
    if (!is_digits || *end != '\0' || errno == ERANGE || number < min || number > max) {
        return error_set(reterr, BATON_EINVAL, "'%s': must be a whole number from %lld to %lld",
                         text, (long long)min, (long long)max);
    }
    *ret = number;
    return 0;
}

struct unit {
    const char *name;
    double ns;
};

static const struct unit units[] = {{"ns", 1},   {"us", 1e3},   {"ms", 1e6},  {"s", 1e9},
                                    {"m", 60e9}, {"min", 60e9}, {"h", 36e11}, {"d", 864e11}};

static const struct unit *find_unit(const char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strlen(units[i].name) == bytes && strncmp(units[i].name, name, bytes) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

/* Digits with at most one point: strtod alone would take "inf", "0x1p3" and " 5" as well. */
static size_t number_bytes(const char *text, size_t bytes)
{
    size_t used = 0;
    size_t points = 0;
    while (used < bytes && (isdigit((unsigned char)text[used]) || text[used] == '.')) {
        points += text[used] == '.';
        used++;
    }
    return points <= 1 && used > points ? used : 0;
}

/* By hand, since strtod() takes the decimal point from the program's locale. */
static double decimal(const char *text, size_t bytes)
{
    double number = 0;
    double scale = 1;
    bool is_behind_point = false;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '.') {
            is_behind_point = true;
            continue;
        }
        number = number * 10 + (text[i] - '0');
        scale *= is_behind_point ? 10 : 1;
    }
    return number / scale;
}

static int duration_of(const char *text, size_t bytes, span *ret, struct baton_error *reterr)
{
    size_t digits = number_bytes(text, bytes);
    const struct unit *unit = find_unit(text + digits, bytes - digits);
    if (bytes == 1 && text[0] == '0') {
        *ret = (span){0};
        return 0;
    }
    if (digits == 0 || digits > 20 || !unit) {
        return error_set(reterr, BATON_EINVAL,
                         "'%.*s': must be a duration with its unit, like 250us, 15ms, 5s, 2m, 1h",
                         (int)bytes, text);
    }
    double ns = decimal(text, digits) * unit->ns;
    if (ns > DURATION_DAYS_MAX * 864e11) {
        return error_set(reterr, BATON_EINVAL, "'%.*s': must be at most %d days", (int)bytes, text,
                         DURATION_DAYS_MAX);
    }
    *ret = SPAN_NS(ns + 0.5);
    return 0;
}

int value_duration(const char *text, span *ret, struct baton_error *reterr)
{
    return duration_of(text, strlen(text), ret, reterr);
}

int value_range(const char *text, span *ret_min, span *ret_max, struct baton_error *reterr)
{
    const char *dash = strchr(text, '-');
    size_t first_bytes = dash ? (size_t)(dash - text) : strlen(text);
    span min;
    span max;
    int code = duration_of(text, first_bytes, &min, reterr);
    if (code) {
        return code;
    }
    max = min;
    if (dash && (code = value_duration(dash + 1, &max, reterr))) {
        return code;
    }
    if (min.ns > max.ns) {
        return error_set(reterr, BATON_EINVAL, "'%s': the first must not exceed the second", text);
    }
    *ret_min = min;
    *ret_max = max;
    return 0;
}

int value_choice(const char *text, const char *choices, struct baton_error *reterr)
{
    size_t bytes = strlen(text);
    int position = 0;

    for (const char *at = choices; bytes > 0; position++) {
        const char *bar = strchrnul(at, '|');
        if ((size_t)(bar - at) == bytes && strncmp(at, text, bytes) == 0) {
            return position;
        }
        if (*bar == '\0') {
            break;
        }
        at = bar + 1;
    }
    return error_set(reterr, BATON_EINVAL, "'%s': must be one of %s", text, choices);
}

int value_flag(const char *text, bool *ret, struct baton_error *reterr)
{
    static const char *const yes[] = {"yes", "true", "on", "1"};
    static const char *const no[] = {"no", "false", "off", "0"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *ret = strcasecmp(text, yes[i]) == 0;
            return 0;
        }
    }
    return error_set(reterr, BATON_EINVAL, "'%s': must be yes or no", text);
}

int value_address(const char *text, bool allows_port_0, char *ret_host, size_t host_bytes,
                  int *ret_port, struct baton_error *reterr)
{
    const char *colon = strrchr(text, ':');
    int64_t port = 0;
    if (!colon || colon == text ||
        value_number(colon + 1, allows_port_0 ? 0 : 1, 65535, &port, NULL)) {
        return error_set(reterr, BATON_EINVAL,
                         "'%s': must be HOST:PORT with a port from %d to 65535", text,
                         allows_port_0 ? 0 : 1);
    }
    const char *host = text;
    size_t bytes = (size_t)(colon - text);
    bool has_brackets = host[0] == '[' && bytes > 2 && host[bytes - 1] == ']';
    if (has_brackets) {
        host++;
        bytes -= 2;
    }
    const char *scheme = strstr(text, "://");
    if (scheme) {
        return error_set(reterr, BATON_EINVAL, "'%s': must be HOST:PORT, without %.*s", text,
                         (int)(scheme - text) + 3, text);
    }
    if (!has_brackets && memchr(host, ':', bytes)) {
        return error_set(reterr, BATON_EINVAL, "'%s': write an IPv6 address as [ADDR]:PORT", text);
    }
    if (bytes >= host_bytes) {
        return error_set(reterr, BATON_ETOOBIG, "'%s': the host is longer than %zu bytes", text,
                         host_bytes - 1);
    }
    memcpy(ret_host, host, bytes);
    ret_host[bytes] = '\0';
    *ret_port = (int)port;
    return 0;
}

const char *value_format_span(span length, char ret[static VALUE_TEXT_MAX])
{
    double ns = (double)length.ns;
    double size = ns < 0 ? -ns : ns;
    const char *unit = size < 1e9 ? "ms" : "s";
    double number = size < 1e9 ? ns / 1e6 : ns / 1e9;
    double digits = number < 0 ? -number : number;
    int places = digits == 0 || digits >= 100 ? 0 : digits >= 10 ? 1 : digits >= 1 ? 2 : 3;
    (void)snprintf(ret, VALUE_TEXT_MAX, "%.*f %s", places, number, unit);
    return ret;
}
