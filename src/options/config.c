#include "options/config.h"

#include "options/yaml_text.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { KEYS_MAX = 256 };

/* Where in the file the parser is: before the mapping, at a key, at its value, in its list. */
enum place { AT_START, AT_KEY, AT_VALUE, IN_LIST, AT_END };

struct loading {
    struct options *options;
    const struct config_rules *rules;
    const char *file;
    enum place place;
    char key[OPTION_TEXT_MAX + 1];
    char *keys[KEYS_MAX]; /* seen so far */
    size_t key_count;
    int line; /* of the latest key */
    struct baton_error *reterr;
};

static int refuse(const struct loading *loading, struct fy_event *event, const char *what)
{
    const struct fy_mark *mark = event ? fy_event_start_mark(event) : NULL;
    const int line = mark ? mark->line + 1 : 1;

    if (loading->place == AT_VALUE || loading->place == IN_LIST) {
        return error_set(loading->reterr, BATON_EINVAL, "%s, line %d: %s: %s", loading->file, line,
                         loading->key, what);
    }
    return error_set(loading->reterr, BATON_EINVAL, "%s, line %d: %s", loading->file, line, what);
}

static bool is_known(const struct loading *loading)
{
    return loading->rules->is_known ? loading->rules->is_known(loading->key)
                                    : options_find(loading->options, loading->key) != NULL;
}

static int scalar_text(const struct loading *loading, struct fy_event *event,
                       char ret[static OPTION_TEXT_MAX + 1])
{
    size_t bytes = 0;
    const char *text = fy_token_get_text(event->scalar.value, &bytes);
    if (event->scalar.anchor || event->scalar.tag) {
        return refuse(loading, event, "anchors and tags are not supported; write the value out");
    }
    if (!text || bytes > OPTION_TEXT_MAX || memchr(text, '\0', bytes)) {
        return refuse(loading, event, "a value is too long or holds a NUL");
    }
    memcpy(ret, text, bytes);
    ret[bytes] = '\0';
    return 0;
}

static int take_key(struct loading *loading, struct fy_event *event)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    int code = scalar_text(loading, event, loading->key);
    if (code) {
        return code;
    }
    loading->line = mark ? mark->line + 1 : 1;
    for (size_t i = 0; i < loading->key_count; i++) {
        if (strcmp(loading->keys[i], loading->key) == 0) {
            (void)refuse(loading, event, "given twice; keep one");
            return error_wrap(loading->reterr, "key '%s'", loading->key);
        }
    }
    if (strcmp(loading->key, loading->rules->option) == 0) {
        (void)refuse(loading, event, "a file does not name another one");
        return error_wrap(loading->reterr, "key '%s'", loading->key);
    }
    if (!is_known(loading)) {
        (void)refuse(loading, event, "no such key; the names are those of the flags");
        return error_wrap(loading->reterr, "key '%s'", loading->key);
    }
    if (loading->key_count == KEYS_MAX) {
        return refuse(loading, event, "too many keys");
    }
    char *copy = strdup(loading->key);
    if (!copy) {
        return error_set(loading->reterr, BATON_ENOMEM, "out of memory");
    }
    loading->keys[loading->key_count++] = copy;
    loading->place = AT_VALUE;
    return 0;
}

static int take_value(struct loading *loading, struct fy_event *event)
{
    char text[OPTION_TEXT_MAX + 1];
    const struct option_spec *spec = options_find(loading->options, loading->key);
    int code = scalar_text(loading, event, text);
    if (code) {
        return code;
    }
    if (loading->place == AT_VALUE) {
        loading->place = AT_KEY;
    }
    if (!spec) {
        return 0;
    }
    if (loading->place == IN_LIST && spec->type != OPTION_LIST) {
        return refuse(loading, event,
                      strchr(text, ':') ? "brackets begin a list in YAML; quote the address, "
                                          "\"[::1]:7400\""
                                        : "takes one value, not a list");
    }
    code = options_take(loading->options, OPTION_CONFIG, loading->key, text, loading->reterr);
    if (code) {
        const struct fy_mark *mark = fy_event_start_mark(event);
        return error_wrap(loading->reterr, "%s, line %d: %s", loading->file,
                          mark ? mark->line + 1 : 1, loading->key);
    }
    return 0;
}

static int take_scalar(struct loading *loading, struct fy_event *event)
{
    switch (loading->place) {
    case AT_KEY:
        return take_key(loading, event);
    case AT_VALUE:
    case IN_LIST:
        return take_value(loading, event);
    case AT_START:
        if (event->scalar.value && fy_token_get_text_length(event->scalar.value) == 0) {
            loading->place = AT_END; /* an empty file, or comments alone */
            return 0;
        }
        break;
    case AT_END:
        break;
    }
    return refuse(loading, event, "must be one mapping of names to values, like 'node: a'");
}

static int take_nesting(struct loading *loading, struct fy_event *event)
{
    if (event->type == FYET_MAPPING_START && loading->place == AT_START) {
        loading->place = AT_KEY;
        return 0;
    }
    if (event->type == FYET_SEQUENCE_START && loading->place == AT_VALUE) {
        loading->place = IN_LIST;
        return 0;
    }
    return refuse(loading, event, "nested too deep: values are words or lists of words");
}

static int take_event(struct loading *loading, struct fy_event *event)
{
    switch (event->type) {
    case FYET_SCALAR:
        return take_scalar(loading, event);
    case FYET_MAPPING_START:
    case FYET_SEQUENCE_START:
        return take_nesting(loading, event);
    case FYET_SEQUENCE_END:
        loading->place = AT_KEY;
        return 0;
    case FYET_MAPPING_END:
        loading->place = AT_END;
        return 0;
    case FYET_ALIAS:
        return refuse(loading, event, "aliases are not supported; write the value out");
    case FYET_DOCUMENT_START:
        return loading->place == AT_END ? refuse(loading, event, "a second document") : 0;
    default:
        return 0;
    }
}

static int parse(struct loading *loading, struct fy_parser *parser)
{
    struct fy_event *event;
    int code = 0;
    while (!code && (event = fy_parser_parse(parser)) != NULL) {
        code = take_event(loading, event);
        fy_parser_event_free(parser, event);
    }
    if (!code && fy_parser_get_stream_error(parser)) {
        code = error_set(loading->reterr, BATON_EINVAL,
                         "%s, from line %d on, key '%s': not valid YAML; a value that ends with "
                         "':' or has ': ' in it needs quotes",
                         loading->file, loading->key_count ? loading->line : 1,
                         loading->key_count ? loading->key : "(none)");
    }
    return code;
}

int config_take_text(struct options *options, const char *name, const char *text, size_t bytes,
                     const struct config_rules *rules, struct baton_error *reterr)
{
    struct fy_diag_cfg quiet;
    struct loading loading = {.options = options, .rules = rules, .file = name, .reterr = reterr};
    if (bytes > CONFIG_BYTES_MAX) {
        return error_set(reterr, BATON_EINVAL, "%s: larger than %d KiB", name,
                         CONFIG_BYTES_MAX / 1024);
    }
    int line = 1;
    const char *fault = yaml_text_fault(text, bytes, &line);
    if (fault) {
        return error_set(reterr, BATON_EINVAL, "%s, line %d: %s", name, line, fault);
    }
    fy_diag_cfg_default(&quiet);
    quiet.fp = NULL;
    struct fy_diag *diag = fy_diag_create(&quiet);
    struct fy_parse_cfg config = {.flags = FYPCF_QUIET | FYPCF_JSON_NONE, .diag = diag};
    struct fy_parser *parser = diag ? fy_parser_create(&config) : NULL;
    int code = BATON_ENOMEM;
    if (parser && fy_parser_set_string(parser, text, bytes) == 0) {
        code = parse(&loading, parser);
    } else {
        error_set(reterr, code, "out of memory");
    }
    if (parser) {
        fy_parser_destroy(parser);
    }
    if (diag) {
        fy_diag_destroy(diag);
    }
    for (size_t i = 0; i < loading.key_count; i++) {
        free(loading.keys[i]);
    }
    return code;
}

/* A file that every user can read must not contain a password. */
static int check_readers(const struct options *options, const char *path, FILE *file,
                         struct baton_error *reterr)
{
    const char *secret = options_secret_from(options, OPTION_CONFIG);
    struct stat status;

    if (!secret || fstat(fileno(file), &status) != 0 || !(status.st_mode & S_IROTH)) {
        return 0;
    }
    return error_set(reterr, BATON_EINVAL,
                     "--config %s: %s has a password in it, and everybody may read the file (mode "
                     "%04o): chmod o-r",
                     path, secret, (unsigned)status.st_mode & 07777);
}

int config_take_file(struct options *options, const char *path, const struct config_rules *rules,
                     struct baton_error *reterr)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        return error_set(reterr, BATON_EINVAL, "--%s %s: %s", rules->option, path, strerror(errno));
    }
    char *text = malloc(CONFIG_BYTES_MAX + 1);
    if (!text) {
        fclose(file);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    size_t bytes = fread(text, 1, CONFIG_BYTES_MAX + 1, file);
    int code = ferror(file) ? error_set(reterr, BATON_EINVAL, "--%s %s: %s", rules->option, path,
                                        strerror(errno))
                            : config_take_text(options, path, text, bytes, rules, reterr);
    code = code ? code : check_readers(options, path, file, reterr);
    free(text);
    fclose(file);
    return code;
}
