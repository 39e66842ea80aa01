#include "cron/crontab.h"

#include "base/text.h"
#include "base/value.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t"

/* Options of the next line. */
struct given {
    unsigned number; /* line of the file in which they stand; 0: none are given */
    char name[CRON_ID_MAX];
    int overlap, missed, interrupted; /* -1: not given */
    int64_t jitter_s;                 /* -1: not given */
};

struct parser {
    struct crontab *crontab;
    bool (*has_zone)(const char *name);
    const char *zone; /* of the lines to come */
    struct given given;
    unsigned number;
};

static const struct given none_given = {
    .overlap = -1, .missed = -1, .interrupted = -1, .jitter_s = -1};

/* ---- Options --------------------------------------------------------------------------------- */

static int read_name(struct given *given, const char *value, struct baton_error *reterr)
{
    size_t bytes = strlen(value);

    if (given->name[0]) {
        return error_set(reterr, BATON_EINVAL, "name: is given twice");
    }
    if (bytes == 0 || bytes >= CRON_ID_MAX ||
        strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
            bytes) {
        return error_set(reterr, BATON_EINVAL,
                         "name '%s': must be 1 to %d letters, digits, '-', '_' and '.'", value,
                         CRON_ID_MAX - 1);
    }
    memcpy(given->name, value, bytes + 1);
    return BATON_OK;
}

/* `choices` as "a|b"; *ret is the position of the choice. */
static int read_choice(int *ret, const char *key, const char *value, const char *choices,
                       struct baton_error *reterr)
{
    if (*ret >= 0) {
        return error_set(reterr, BATON_EINVAL, "%s: is given twice", key);
    }
    int position = value_choice(value, choices, reterr);
    if (position < 0) {
        (void)error_wrap(reterr, "%s", key);
        return position;
    }
    *ret = position;
    return BATON_OK;
}

static int read_jitter(struct given *given, const char *value, struct baton_error *reterr)
{
    span jitter;

    if (given->jitter_s >= 0) {
        return error_set(reterr, BATON_EINVAL, "jitter: is given twice");
    }
    int code = value_duration(value, &jitter, reterr);
    if (code) {
        (void)error_wrap(reterr, "jitter");
        return code;
    }
    given->jitter_s = jitter.ns / 1000000000;
    if (jitter.ns % 1000000000 != 0 || given->jitter_s > CRON_JITTER_MAX_S) {
        return error_set(reterr, BATON_EINVAL, "jitter %s: must be whole seconds, at most 1h",
                         value);
    }
    return BATON_OK;
}

static int read_option(struct given *given, char *word, struct baton_error *reterr)
{
    char *value = strchr(word, '=');

    if (!value) {
        return error_set(reterr, BATON_EINVAL,
                         "'%s': options are KEY=VALUE, with blanks between them", word);
    }
    *value++ = '\0';
    if (strcmp(word, "name") == 0) {
        return read_name(given, value, reterr);
    }
    if (strcmp(word, "overlap") == 0) {
        return read_choice(&given->overlap, word, value, "skip|wait|allow", reterr);
    }
    if (strcmp(word, "missed") == 0) {
        return read_choice(&given->missed, word, value, "run-once|skip", reterr);
    }
    if (strcmp(word, "interrupted") == 0) {
        return read_choice(&given->interrupted, word, value, "run-again|skip", reterr);
    }
    if (strcmp(word, "jitter") == 0) {
        return read_jitter(given, value, reterr);
    }
    return error_set(reterr, BATON_EINVAL,
                     "'%s': the options are name, overlap, missed, interrupted and jitter", word);
}

static int read_options(struct parser *parser, char *text, struct baton_error *reterr)
{
    char *rest = NULL;
    int code = BATON_OK;

    parser->given.number = parser->number;
    for (char *word = strtok_r(text, BLANKS, &rest); word && !code;
         word = strtok_r(NULL, BLANKS, &rest)) {
        code = read_option(&parser->given, word, reterr);
    }
    return code;
}

/* A comment with "=" that forgets the colon would be an option that is silently not there. */
static int read_comment(struct parser *parser, char *text, struct baton_error *reterr)
{
    char *at = text + strspn(text, "#");

    at += strspn(at, BLANKS);
    if (strncasecmp(at, "baton:", 6) == 0) {
        return read_options(parser, at + 6, reterr);
    }
    if (strncasecmp(at, "baton", 5) == 0 && strchr(BLANKS, at[5]) && strchr(at, '=')) {
        return error_set(reterr, BATON_EINVAL, "options begin with \"# baton:\", with a colon");
    }
    return BATON_OK;
}

/* ---- Variables ------------------------------------------------------------------------------- */

/* The length of a name with an "=" behind it; 0: this is no variable. */
static size_t name_bytes(const char *text)
{
    size_t bytes = 0;

    while (isalnum((unsigned char)text[bytes]) || text[bytes] == '_') {
        bytes++;
    }
    return isdigit((unsigned char)text[0]) || text[bytes + strspn(text + bytes, BLANKS)] != '='
               ? 0
               : bytes;
}

static int set_zone(struct parser *parser, const char *name, const char *value,
                    struct baton_error *reterr)
{
    if (!parser->has_zone(value)) {
        return error_set(reterr, BATON_EINVAL,
                         "%s=%s: there is no such time zone; names are as in "
                         "/usr/share/zoneinfo (the package tzdata)",
                         name, value);
    }
    parser->zone = value;
    return BATON_OK;
}

/* Of the variables that mean something to cron. */
static int heed_variable(struct parser *parser, const char *name, const char *value,
                         struct baton_error *reterr)
{
    if (strcmp(name, "CRON_TZ") == 0 || strcmp(name, "TZ") == 0) {
        return set_zone(parser, name, value, reterr);
    }
    if (strcmp(name, "MAILTO") == 0 && *value) {
        return error_set(reterr, BATON_EINVAL,
                         "MAILTO: no mail is sent; what commands write goes to the log, and its "
                         "end to `baton cron ls --json`");
    }
    if (strcmp(name, "SHELL") == 0 && *value != '/') {
        return error_set(reterr, BATON_EINVAL, "SHELL=%s: must be an absolute path", value);
    }
    return BATON_OK;
}

static int read_variable(struct parser *parser, const char *text, size_t bytes,
                         struct baton_error *reterr)
{
    struct crontab *crontab = parser->crontab;
    const char *value = strchr(text, '=') + 1;
    char *variable;
    size_t count;

    value += strspn(value, BLANKS);
    count = strlen(value);
    if (count >= 2 && (*value == '"' || *value == '\'') && value[count - 1] == *value) {
        value++;
        count -= 2;
    }
    if (crontab->variable_count == CRONTAB_VARIABLES_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "there are more than %d variables",
                         CRONTAB_VARIABLES_MAX);
    }
    variable = malloc(bytes + 1 + count + 1);
    if (!variable) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    (void)snprintf(variable, bytes + 1, "%s", text);
    (void)snprintf(variable + bytes + 1, count + 1, "%s", value);
    int code = heed_variable(parser, variable, variable + bytes + 1, reterr);
    variable[bytes] = '=';
    crontab->variables[crontab->variable_count++] = variable;
    return code;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* FNV-1a, of the text with its NUL. */
static uint64_t hash(uint64_t so_far, const char *text)
{
    const char *at = text;

    do {
        so_far = (so_far ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    } while (*at++);
    return so_far;
}

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* The words of a schedule, with one blank between them. */
static char *join_words(const char *text, size_t bytes)
{
    char *words = malloc(bytes + 1);
    size_t used = 0;

    for (size_t i = 0; words && i < bytes; i++) {
        bool is_blank = text[i] == ' ' || text[i] == '\t';
        if (!is_blank || (used > 0 && words[used - 1] != ' ')) {
            words[used++] = is_blank ? ' ' : text[i];
        }
    }
    if (words) {
        used -= used > 0 && words[used - 1] == ' ';
        words[used] = '\0';
    }
    return words;
}

/* In a crontab an unescaped % is a line break, and what follows the first one is standard input. */
static int read_command(char **ret, const char *text, struct baton_error *reterr)
{
    char *command = malloc(strlen(text) + 1), *to = command;

    if (!command) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    for (const char *at = text; *at; at++) {
        if (*at == '%') {
            free(command);
            return error_set(reterr, BATON_EINVAL,
                             "an unescaped %% is standard input to cron, and commands here read "
                             "nothing: write \\%%");
        }
        at += at[0] == '\\' && at[1] == '%';
        *to++ = *at;
    }
    *to = '\0';
    *ret = command;
    return BATON_OK;
}

static void take_given(struct cron_line *line, const struct given *given)
{
    uint64_t number = hash(hash(hash(HASH_BEGIN, line->when), line->zone), line->command);

    if (given->name[0]) {
        memcpy(line->id, given->name, CRON_ID_MAX);
    } else {
        (void)snprintf(line->id, CRON_ID_MAX, "%016" PRIx64, number);
    }
    line->overlap = given->overlap < 0 ? CRON_OVERLAP_SKIP : (enum cron_overlap)given->overlap;
    line->missed = given->missed < 0 ? CRON_MISSED_RUN_ONCE : (enum cron_missed)given->missed;
    line->interrupted = given->interrupted < 0 ? CRON_INTERRUPTED_RUN_AGAIN
                                               : (enum cron_interrupted)given->interrupted;
    line->delay_s = given->jitter_s <= 0
                        ? 0
                        : (int64_t)(hash(HASH_BEGIN, line->id) % (uint64_t)(given->jitter_s + 1));
}

static int check_id(const struct crontab *crontab, const struct cron_line *line, bool is_named,
                    struct baton_error *reterr)
{
    const struct cron_line *other = crontab_find(crontab, line->id);

    if (other && is_named) {
        return error_set(reterr, BATON_EINVAL, "name '%s': line %u has it already", line->id,
                         other->number);
    }
    return other ? error_set(reterr, BATON_EINVAL,
                             "line %u is the same; give one of them a name (# baton: name=...)",
                             other->number)
                 : BATON_OK;
}

static int read_line(struct parser *parser, const char *text, struct baton_error *reterr)
{
    struct crontab *crontab = parser->crontab;
    struct cron_line line = {
        .number = parser->number, .zone = parser->zone, .variables = crontab->variable_count};
    bool is_named = parser->given.name[0] != '\0';
    const char *command;
    int code = cron_schedule_parse(&line.schedule, text, &command, reterr);

    if (code) {
        return code;
    }
    if (*command == '\0') {
        return error_set(reterr, BATON_EINVAL, "the command is missing");
    }
    if (crontab->count == CRONTAB_LINES_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "there are more than %d lines that fire",
                         CRONTAB_LINES_MAX);
    }
    code = read_command(&line.command, command, reterr);
    line.when = code ? NULL : join_words(text, (size_t)(command - text));
    if (!code && !line.when) {
        code = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (!code) {
        take_given(&line, &parser->given);
        code = check_id(crontab, &line, is_named, reterr);
    }
    parser->given = none_given;
    if (code) {
        free(line.command);
        free(line.when);
        return code;
    }
    crontab->lines[crontab->count++] = line;
    return BATON_OK;
}

/* ---- The file -------------------------------------------------------------------------------- */

/* Every line ends up in JSON and in the log. Tabs are blanks. */
static bool is_clean(const char *text, size_t bytes)
{
    char spaced[CRON_COMMAND_MAX], cleaned[CRON_COMMAND_MAX];

    for (size_t i = 0; i < bytes; i++) {
        spaced[i] = (char)(text[i] == '\t' ? ' ' : text[i]);
    }
    return text_clean(cleaned, sizeof(cleaned), spaced, bytes);
}

/* `text` has `bytes` bytes, and is changed. */
static int take_text(struct parser *parser, char *text, size_t bytes, struct baton_error *reterr)
{
    size_t name;

    while (bytes > 0 && strchr(" \t\r", text[bytes - 1]) && text[bytes - 1]) {
        bytes--;
    }
    if (bytes >= CRON_COMMAND_MAX) {
        return error_set(reterr, BATON_EINVAL, "the line has more than %d bytes",
                         CRON_COMMAND_MAX - 1);
    }
    if (!is_clean(text, bytes)) {
        return error_set(reterr, BATON_EINVAL, "the line has a control character, or is no UTF-8");
    }
    text[bytes] = '\0';
    text += strspn(text, BLANKS);
    name = name_bytes(text);
    return *text == '\0'  ? BATON_OK
           : *text == '#' ? read_comment(parser, text, reterr)
           : name > 0     ? read_variable(parser, text, name, reterr)
                          : read_line(parser, text, reterr);
}

static int take_lines(struct parser *parser, char *text, size_t bytes, const char *file,
                      struct baton_error *reterr)
{
    const char *end = text + bytes;
    int code = BATON_OK;

    for (char *at = text, *next; at < end && !code; at = next) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t count = newline ? (size_t)(newline - at) : (size_t)(end - at);
        next = at + count + 1;
        parser->number++;
        code = take_text(parser, at, count, reterr);
    }
    if (!code && parser->given.number > 0) {
        parser->number = parser->given.number;
        code = error_set(reterr, BATON_EINVAL, "no line follows these options");
    }
    if (code) {
        (void)error_wrap(reterr, "%s:%u", file, parser->number);
    }
    return code;
}

/* NULL: out of memory. */
static struct crontab *make(void)
{
    struct crontab *crontab = calloc(1, sizeof(*crontab));

    if (crontab) {
        crontab->lines = calloc(CRONTAB_LINES_MAX, sizeof(*crontab->lines));
        crontab->variables = calloc(CRONTAB_VARIABLES_MAX, sizeof(*crontab->variables));
    }
    if (crontab && (!crontab->lines || !crontab->variables)) {
        crontab_free(crontab);
        crontab = NULL;
    }
    return crontab;
}

int crontab_parse(struct crontab **ret, const char *text, size_t bytes, const char *file,
                  bool (*has_zone)(const char *name), struct baton_error *reterr)
{
    struct parser parser = {.has_zone = has_zone, .zone = "", .given = none_given};
    size_t mark;
    char *copy;
    int code;

    if (bytes > CRONTAB_BYTES_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "%s: has more than %d bytes", file,
                         CRONTAB_BYTES_MAX);
    }
    parser.crontab = make();
    copy = parser.crontab ? malloc(bytes + 1) : NULL;
    if (!copy) {
        crontab_free(parser.crontab);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    memcpy(copy, text, bytes);
    mark = text_mark_bytes(copy, bytes);
    code = take_lines(&parser, copy + mark, bytes - mark, file, reterr);
    free(copy);
    if (code) {
        crontab_free(parser.crontab);
        return code;
    }
    *ret = parser.crontab;
    return BATON_OK;
}

void crontab_free(struct crontab *crontab)
{
    if (!crontab) {
        return;
    }
    for (size_t i = 0; i < crontab->count; i++) {
        free(crontab->lines[i].when);
        free(crontab->lines[i].command);
    }
    for (size_t i = 0; i < crontab->variable_count; i++) {
        free(crontab->variables[i]);
    }
    free(crontab->lines);
    free(crontab->variables);
    free(crontab);
}

/* ---- What it has ----------------------------------------------------------------------------- */

const struct cron_line *crontab_find(const struct crontab *crontab, const char *id)
{
    for (size_t i = 0; i < crontab->count; i++) {
        if (strcmp(crontab->lines[i].id, id) == 0) {
            return &crontab->lines[i];
        }
    }
    return NULL;
}

const char *crontab_variable(const struct crontab *crontab, const struct cron_line *line,
                             const char *name)
{
    size_t bytes = strlen(name);

    for (size_t i = line->variables; i > 0; i--) {
        const char *variable = crontab->variables[i - 1];
        if (strncmp(variable, name, bytes) == 0 && variable[bytes] == '=') {
            return variable + bytes + 1;
        }
    }
    return NULL;
}
