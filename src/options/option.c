#include "options/option.h"

#include "base/invariant.h"
#include "base/text.h"
#include "base/value.h"
#include "options/url_secret.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 96, LETTERS_BYTES = 2 * OPTIONS_MAX + 3 };

struct value {
    const struct option_spec *spec;
    enum option_source source;
    char **items; /* owned, each too; one unless a list; ends with NULL */
    size_t count;
};

struct options {
    const struct option_group *const *groups;
    struct value values[OPTIONS_MAX];
    size_t count;
};

struct options *options_new(const struct option_group *const *groups)
{
    struct options *options = calloc(1, sizeof(*options));
    if (!options) {
        return NULL;
    }
    options->groups = groups;
    for (size_t i = 0; groups[i]; i++) {
        for (const struct option_spec *spec = groups[i]->specs; spec->name; spec++) {
            INVARIANT(options->count < OPTIONS_MAX);
            INVARIANT(strlen(spec->name) < OPTION_NAME_MAX);
            options->values[options->count++] = (struct value){.spec = spec};
        }
    }
    return options;
}

struct options *options_like(const struct options *options)
{
    return options_new(options->groups);
}

const struct option_spec *options_spec(const struct options *options, size_t number)
{
    return number < options->count ? options->values[number].spec : NULL;
}

static void clear_value(struct value *value)
{
    for (size_t i = 0; i < value->count; i++) {
        free(value->items[i]);
    }
    free(value->items);
    value->items = NULL;
    value->count = 0;
}

void options_free(struct options *options)
{
    if (!options) {
        return;
    }
    for (size_t i = 0; i < options->count; i++) {
        clear_value(&options->values[i]);
    }
    free(options);
}

static struct value *find_value(const struct options *options, const char *name)
{
    for (size_t i = 0; i < options->count; i++) {
        if (strcmp(options->values[i].spec->name, name) == 0) {
            return (struct value *)&options->values[i];
        }
    }
    return NULL;
}

const struct option_spec *options_find(const struct options *options, const char *name)
{
    const struct value *value = find_value(options, name);
    return value ? value->spec : NULL;
}

static int check_text(const char *text, struct baton_error *reterr)
{
    if (strlen(text) > OPTION_TEXT_MAX) {
        return error_set(reterr, BATON_EINVAL, "longer than %d bytes", OPTION_TEXT_MAX);
    }
    for (const char *at = text; *at; at++) {
        if (iscntrl((unsigned char)*at)) {
            return error_set(reterr, BATON_EINVAL, "has a control character (0x%02x at byte %td)",
                             (unsigned char)*at, at - text + 1); /* of a URL with a password, too */
        }
    }
    return 0;
}

static int check_duration(const struct option_spec *spec, const char *text,
                          struct baton_error *reterr)
{
    span length;
    int code = value_duration(text, &length, reterr);

    if (code == 0 && length.ns < SPAN_MS(spec->min).ns) {
        code = error_set(reterr, BATON_EINVAL, "'%s': must be at least %lldms", text,
                         (long long)spec->min);
    }
    if (code == 0 && spec->max > 0 && length.ns > SPAN_MS(spec->max).ns) {
        code = error_set(reterr, BATON_EINVAL, "'%s': must be at most %lldms", text,
                         (long long)spec->max);
    }
    return code;
}

static int check_value(const struct option_spec *spec, const char *text, struct baton_error *reterr)
{
    int64_t number;
    span min;
    span max;
    bool flag;
    char host[OPTION_TEXT_MAX];
    int port;
    int code = check_text(text, reterr);
    if (code) {
        return code;
    }
    switch (spec->type) {
    case OPTION_FLAG:
        return value_flag(text, &flag, reterr);
    case OPTION_NUMBER:
        return value_number(text, spec->min, spec->max, &number, reterr);
    case OPTION_DURATION:
        return check_duration(spec, text, reterr);
    case OPTION_RANGE:
        return value_range(text, &min, &max, reterr);
    case OPTION_CHOICE:
        code = value_choice(text, spec->choices, reterr);
        return code < 0 ? code : 0;
    case OPTION_ADDRESS:
        return value_address(text, true, host, sizeof(host), &port, reterr);
    case OPTION_TEXT:
    case OPTION_LIST:
        break;
    }
    if (*text == '\0') {
        return error_set(reterr, BATON_EINVAL, "'': must not be empty");
    }
    return 0;
}

static int append_item(struct value *value, const char *text, struct baton_error *reterr)
{
    if (value->count == OPTION_LIST_MAX) {
        return error_set(reterr, BATON_EINVAL, "given more than %d times", OPTION_LIST_MAX);
    }
    char **items = realloc(value->items, (value->count + 2) * sizeof(*items));
    if (!items) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    value->items = items;
    items[value->count] = strdup(text);
    items[value->count + 1] = NULL;
    if (!items[value->count]) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    value->count++;
    return 0;
}

/* A URL that was meant for another option is refused without its password. */
static int check_hidden(const struct option_spec *spec, const char *text,
                        struct baton_error *reterr)
{
    char *shown = strdup(text);
    int code = shown ? BATON_OK : error_set(reterr, BATON_ENOMEM, "out of memory");

    if (shown) {
        code = check_value(spec, secret_hide_word(shown), reterr);
    }
    free(shown);
    return code;
}

int options_take(struct options *options, enum option_source source, const char *name,
                 const char *text, struct baton_error *reterr)
{
    struct value *value = find_value(options, name);
    if (!value) {
        return error_set(reterr, BATON_ENOENT, "there is no option '%s'", name);
    }
    if (value->spec->is_flag_only && source != OPTION_FLAGS) {
        return 0;
    }
    int code = check_hidden(value->spec, text, reterr);
    if (code) {
        return code;
    }
    if (value->count > 0 && value->source > source) {
        return 0;
    }
    if (value->spec->is_secret && secret_is_hidden(text)) {
        return error_set(reterr, BATON_EINVAL,
                         "'%s': its password was written over, as baton does once it has read it: "
                         "give the whole URL, or unset it",
                         text);
    }
    bool adds = value->spec->type == OPTION_LIST && value->source == source;
    if (!adds) {
        clear_value(value);
    }
    value->source = source;
    return append_item(value, text, reterr);
}

/* ---- Command line ---------------------------------------------------------------------------- */

/* getopt's own table. Flags take no value there; the numbers index options->values. */
static void fill_getopt(const struct options *options, struct option ret[static OPTIONS_MAX + 1],
                        char letters[static LETTERS_BYTES])
{
    char *at = letters;
    *at++ = '+'; /* stop at the first argument that is no flag: it begins CMD */
    *at++ = ':'; /* distinguish a missing value from an unknown flag, and print nothing */
    for (size_t i = 0; i < options->count; i++) {
        const struct option_spec *spec = options->values[i].spec;
        bool takes_value = spec->type != OPTION_FLAG;
        ret[i] = (struct option){spec->name, takes_value ? required_argument : no_argument, NULL,
                                 (int)i + 256};
        if (spec->letter) {
            *at++ = spec->letter;
            if (takes_value) {
                *at++ = ':';
            }
        }
    }
    ret[options->count] = (struct option){0};
    *at = '\0';
}

static const struct option_spec *spec_of_letter(const struct options *options, int letter)
{
    for (size_t i = 0; i < options->count; i++) {
        if (options->values[i].spec->letter == letter) {
            return options->values[i].spec;
        }
    }
    return NULL;
}

static void hide(const struct option_spec *spec, char *text)
{
    if (spec->is_secret) {
        secret_hide(text);
    }
    if (spec->hides_path) {
        secret_hide_path(text);
    }
}

static int take_flag(struct options *options, int found, struct baton_error *reterr)
{
    const struct option_spec *spec =
        found >= 256 ? options->values[found - 256].spec : spec_of_letter(options, found);
    const char *text = spec->type == OPTION_FLAG ? "yes" : optarg;
    int code = options_take(options, OPTION_FLAGS, spec->name, text, reterr);
    hide(spec, optarg);
    return code ? error_wrap(reterr, "--%s", spec->name) : 0;
}

/* Of a word that is a flag except for its value: "". */
static const char *nearest(char ret[static TEXT_NEAREST_BYTES], const struct options *options,
                           const char *word)
{
    const char *names[OPTIONS_MAX];
    char typed[TEXT_DISTANCE_MAX];
    bool is_long = strncmp(word, "--", 2) == 0;

    (void)snprintf(typed, sizeof(typed), "%.*s", is_long ? (int)strcspn(word + 2, "=") : 0,
                   word + (is_long ? 2 : 0));
    for (size_t i = 0; i < options->count; i++) {
        names[i] = options->values[i].spec->name;
        if (strcmp(names[i], typed) == 0) {
            typed[0] = '\0';
        }
    }
    ret[0] = '\0';
    return typed[0] ? text_nearest(ret, typed, names, options->count) : ret;
}

int options_take_flags(struct options *options, int argc, char **argv, int *ret_used,
                       struct baton_error *reterr)
{
    struct option longs[OPTIONS_MAX + 1];
    char letters[LETTERS_BYTES];
    int found;
    fill_getopt(options, longs, letters);
    optind = 0; /* glibc: begin anew */
    while ((found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        const char letter[] = {'-', (char)optopt,
                               '\0'}; /* perhaps one of several in one argument */
        const char *word = optopt > 0 && optopt < 256 ? letter : argv[optind - 1];
        if (found == ':') {
            return error_set(reterr, BATON_EINVAL, "%s: a value is missing", word);
        }
        if (found == '?') {
            char meant[TEXT_NEAREST_BYTES];
            (void)secret_hide_word(argv[optind - 1]);
            return error_set(reterr, BATON_EINVAL,
                             "%s: no such flag, or a value where none belongs%s", word,
                             nearest(meant, options, word));
        }
        int code = take_flag(options, found, reterr);
        if (code) {
            return code;
        }
    }
    *ret_used = optind;
    return 0;
}

const char *options_secret_from(const struct options *options, enum option_source source)
{
    for (size_t i = 0; i < options->count; i++) {
        const struct value *value = &options->values[i];
        if (value->spec->is_secret && value->count > 0 && value->source == source &&
            secret_is_in(value->items[0])) {
            return value->spec->name;
        }
    }
    return NULL;
}

/* ---- Environment ----------------------------------------------------------------------------- */

void option_variable(const struct option_spec *spec, char ret[static OPTION_NAME_MAX + 8])
{
    char *at = stpcpy(ret, "BATON_");
    for (const char *from = spec->name; *from; from++) {
        *at++ = *from == '-' ? '_' : (char)toupper((unsigned char)*from);
    }
    *at = '\0';
}

static int take_list(struct options *options, const char *name, const char *text,
                     struct baton_error *reterr)
{
    char *copy = strdup(text);
    char *rest = NULL;
    int code = 0;
    if (!copy) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    for (char *item = strtok_r(copy, " ", &rest); item && !code;
         item = strtok_r(NULL, " ", &rest)) {
        code = options_take(options, OPTION_ENVIRONMENT, name, item, reterr);
    }
    free(copy);
    return code;
}

int options_take_environment(struct options *options, struct baton_error *reterr)
{
    for (size_t i = 0; i < options->count; i++) {
        const struct option_spec *spec = options->values[i].spec;
        char variable[OPTION_NAME_MAX + 8];
        option_variable(spec, variable);
        char *text = getenv(variable);
        if (!text || !*text) {
            continue;
        }
        int code = spec->type == OPTION_LIST
                       ? take_list(options, spec->name, text, reterr)
                       : options_take(options, OPTION_ENVIRONMENT, spec->name, text, reterr);
        hide(spec, text); /* every child inherits the environment */
        if (code) {
            return error_wrap(reterr, "%s", variable);
        }
    }
    return 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static const struct value *value_of(const struct options *options, const char *name)
{
    const struct value *value = find_value(options, name);
    INVARIANT(value);
    return value;
}

static const char *text_of(const struct options *options, const char *name, enum option_type type)
{
    const struct value *value = value_of(options, name);
    INVARIANT(value->spec->type == type);
    return value->count > 0 ? value->items[0] : value->spec->initial;
}

bool options_is_set(const struct options *options, const char *name)
{
    return value_of(options, name)->count > 0;
}

enum option_source options_source(const struct options *options, const char *name)
{
    const struct value *value = value_of(options, name);
    return value->count > 0 ? value->source : OPTION_DEFAULT;
}

bool options_flag(const struct options *options, const char *name)
{
    const char *text = text_of(options, name, OPTION_FLAG);
    bool flag = false;
    return text && value_flag(text, &flag, NULL) == 0 && flag;
}

const char *options_text(const struct options *options, const char *name)
{
    const struct value *value = value_of(options, name);
    INVARIANT(value->spec->type != OPTION_LIST && value->spec->type != OPTION_FLAG);
    return value->count > 0 ? value->items[0] : value->spec->initial;
}

int64_t options_number(const struct options *options, const char *name)
{
    const struct option_spec *spec = value_of(options, name)->spec;
    const char *text = text_of(options, name, OPTION_NUMBER);
    int64_t number = 0;
    if (text) {
        int code = value_number(text, spec->min, spec->max, &number, NULL);
        INVARIANT(code == 0);
    }
    return number;
}

span options_duration(const struct options *options, const char *name)
{
    const char *text = text_of(options, name, OPTION_DURATION);
    span length = {0};
    if (text) {
        int code = value_duration(text, &length, NULL);
        INVARIANT(code == 0);
    }
    return length;
}

void options_range(const struct options *options, const char *name, span *ret_min, span *ret_max)
{
    const char *text = text_of(options, name, OPTION_RANGE);
    *ret_min = *ret_max = (span){0};
    if (text) {
        int code = value_range(text, ret_min, ret_max, NULL);
        INVARIANT(code == 0);
    }
}

size_t options_count(const struct options *options, const char *name)
{
    return value_of(options, name)->count;
}

const char *options_item(const struct options *options, const char *name, size_t index)
{
    const struct value *value = value_of(options, name);
    INVARIANT(index < value->count);
    return value->items[index];
}

const char *const *options_list(const struct options *options, const char *name)
{
    return (const char *const *)value_of(options, name)->items;
}

bool options_next(const struct options *options, struct option_cursor *cursor)
{
    for (; cursor->option < options->count; cursor->option++, cursor->item = 0) {
        const struct value *value = &options->values[cursor->option];
        if (cursor->item < value->count) { /* a default is not stored */
            cursor->spec = value->spec;
            cursor->text = value->items[cursor->item++];
            return true;
        }
    }
    return false;
}

bool options_agree(const struct options *left, const struct options *right, const char *name)
{
    const struct value *a = value_of(left, name);
    const struct value *b = value_of(right, name);
    bool agree = a->count == b->count;

    if (a->spec->type == OPTION_FLAG) {
        return options_flag(left, name) == options_flag(right, name);
    }
    if (a->spec->type != OPTION_LIST) {
        const char *text = options_text(left, name);
        const char *other = options_text(right, name);
        return text && other ? strcmp(text, other) == 0 : text == other;
    }
    for (size_t i = 0; agree && i < a->count; i++) {
        agree = strcmp(a->items[i], b->items[i]) == 0;
    }
    return agree;
}
