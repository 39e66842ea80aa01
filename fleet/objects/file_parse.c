/* The parser's events, one by one.
 *
 *   AT_START ─{─▶ AT_LIST_NAME ─cameras─▶ AT_LIST ─[─▶ IN_LIST ─{─▶ AT_FIELD ─id─▶ AT_VALUE
 *                  │    ▲───────────────────────]────────┘  ▲─────}─────┘ ▲────cam-1───┘
 *                  }
 *                  ▼
 *                AT_END
 */
#include "base/error.h"
#include "base/value.h"
#include "fleet/objects/file_int.h"
#include "fleet/objects/url.h"
#include "options/yaml_text.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = PROTOCOL_URL_MAX + 1 };
enum place { AT_START, AT_LIST_NAME, AT_LIST, IN_LIST, AT_FIELD, AT_VALUE, AT_END };

struct parsing {
    struct file_reading *reading;
    enum place place;
    int list;                   /* of which a name was read */
    int list_lines[FILE_LISTS]; /* 0: not read yet */
    int line, item_line;        /* of the present event; where the item began */
    json_t *item;               /* the fields so far; NULL: none is open */
    const struct fleet_field *field;
    int field_lines[FLEET_FIELDS_MAX]; /* of the item; 0: not read yet */
};

static const char *plural(const struct parsing *parsing)
{
    return file_list_name(parsing->list);
}

static size_t index_of(const struct parsing *parsing)
{
    return parsing->list == FILE_WORKERS ? parsing->reading->worker_count
                                         : parsing->reading->counts[parsing->list];
}

/* ---- Refusals, each with its way out --------------------------------------------------------- */

static int refuse_place(const struct parsing *parsing, const char *what)
{
    const struct file_reading *reading = parsing->reading;

    switch (parsing->place) {
    case AT_LIST:
        return file_refuse(reading, parsing->line, "%s: %s", plural(parsing), what);
    case IN_LIST:
    case AT_FIELD:
        return file_refuse(reading, parsing->line, "%s[%zu]: %s", plural(parsing),
                           index_of(parsing), what);
    case AT_VALUE:
        return file_refuse(reading, parsing->line, "%s[%zu].%s: %s", plural(parsing),
                           index_of(parsing), parsing->field->name, what);
    case AT_START:
    case AT_LIST_NAME:
    case AT_END:
        break;
    }
    return file_refuse(reading, parsing->line, "%s", what);
}

static int refuse_nesting(const struct parsing *parsing, bool is_list)
{
    char what[BATON_ERROR_MESSAGE_MAX / 2];

    switch (parsing->place) {
    case AT_LIST:
        (void)snprintf(
            what, sizeof(what),
            parsing->list == FILE_WORKERS ? "must be a list of URLs: begin each line with \"- \""
                                          : "must be a list: begin each %s with \"- id: …\"",
            parsing->list == FILE_WORKERS ? "" : fleet_kind_name((enum fleet_kind)parsing->list));
        return refuse_place(parsing, what);
    case IN_LIST:
        return refuse_place(parsing, is_list ? "is a list in the list: take one \"-\" away"
                                             : "must be one URL, like ws://worker-1:8000");
    case AT_VALUE:
        return refuse_place(parsing, is_list && strcmp(parsing->field->name, "needs") == 0
                                         ? "labels stand in one value, a blank between two, like "
                                           "\"gpu zone=a\""
                                     : is_list ? "takes one value, not a list; a value that begins "
                                                 "with a bracket needs quotes"
                                               : "takes one value, not a mapping; a value that "
                                                 "begins with a brace needs quotes");
    case AT_START:
    case AT_LIST_NAME:
    case AT_FIELD:
    case AT_END:
        break;
    }
    return refuse_place(parsing, "must be a mapping of lists: models:, cameras:, displays:, "
                                 "subscriptions:, workers:");
}

static int refuse_twice(const struct parsing *parsing, const char *path, int before)
{
    return file_refuse(parsing->reading, parsing->line,
                       "%s: stands on line %d already: keep one of them", path, before);
}

/* ---- Scalars --------------------------------------------------------------------------------- */

/* BATON_EINVAL: it is longer than anything here may be, or has an anchor or a tag. */
static int text_of(const struct parsing *parsing, struct fy_event *event, char ret[static TEXT_MAX])
{
    size_t bytes = 0;
    const char *text = fy_token_get_text(event->scalar.value, &bytes);

    if (event->scalar.anchor || event->scalar.tag) {
        return refuse_place(parsing, "anchors and tags are not supported: write the value out");
    }
    if (!text || bytes >= TEXT_MAX || memchr(text, '\0', bytes)) {
        return refuse_place(parsing, "is too long, or holds a NUL");
    }
    memcpy(ret, text, bytes);
    ret[bytes] = '\0';
    return BATON_OK;
}

/* "", "~", "null": nothing is given. */
static bool is_null(struct fy_event *event, const char *text)
{
    return fy_token_scalar_style(event->scalar.value) == FYSS_PLAIN &&
           (text[0] == '\0' || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0);
}

static int take_list_name(struct parsing *parsing, const char *text)
{
    size_t distance = FLEET_DISTANCE_NONE;
    char shown[FLEET_SHOWN_MAX];
    int meant = -1;

    for (int list = 0; list < FILE_LISTS; list++) {
        if (strcmp(file_list_name(list), text) == 0) {
            if (parsing->list_lines[list] > 0) {
                return refuse_twice(parsing, text, parsing->list_lines[list]);
            }
            parsing->list_lines[list] = parsing->line;
            parsing->list = list;
            parsing->place = AT_LIST;
            return BATON_OK;
        }
        meant = fleet_is_nearer(text, file_list_name(list), &distance) ? list : meant;
    }
    return file_refuse(parsing->reading, parsing->line, "%s: no such list; %s%s",
                       fleet_text_shown(text, shown),
                       meant < 0 ? "there are models, cameras, displays, subscriptions, workers"
                                 : file_list_name(meant),
                       meant < 0 ? "" : " is meant?");
}

static int take_field_name(struct parsing *parsing, const char *text)
{
    enum fleet_kind kind = (enum fleet_kind)parsing->list;
    const struct fleet_field *field = fleet_field_find(kind, text);
    const struct fleet_field *meant = field ? NULL : fleet_field_meant(kind, text);
    char path[2 * FLEET_SHOWN_MAX];
    char shown[FLEET_SHOWN_MAX];
    int *line;

    if (!field) {
        return file_refuse(parsing->reading, parsing->line,
                           "%s[%zu].%s: no such field of a %s%s%s%s", plural(parsing),
                           index_of(parsing), fleet_text_shown(text, shown), fleet_kind_name(kind),
                           meant ? "; " : "", meant ? meant->name : "", meant ? " is meant?" : "");
    }
    line = &parsing->field_lines[field - fleet_fields(kind)];
    if (*line > 0) {
        (void)snprintf(path, sizeof(path), "%s[%zu].%s", plural(parsing), index_of(parsing), text);
        return refuse_twice(parsing, path, *line);
    }
    *line = parsing->line;
    parsing->field = field;
    parsing->place = AT_VALUE;
    return BATON_OK;
}

static int number_of(const struct parsing *parsing, const char *text, json_t **ret)
{
    char what[BATON_ERROR_MESSAGE_MAX / 2], shown[FLEET_SHOWN_MAX];
    struct baton_error error;
    int64_t number;
    span length;

    if (text[0] != '0' || text[1] == '\0') { /* to some readers of YAML, 010 is eight */
        if (value_number(text, INT64_MIN, INT64_MAX, &number, &error) == BATON_OK) {
            *ret = json_integer(number);
            return BATON_OK;
        }
    }
    if (strcmp(parsing->field->name, "snapshotInterval") == 0 &&
        value_duration(text, &length, &error) == BATON_OK) {
        (void)snprintf(what, sizeof(what), "\"%s\" must be in milliseconds, without a unit: %lld",
                       fleet_text_shown(text, shown), (long long)(length.ns / 1000000));
    } else {
        (void)snprintf(what, sizeof(what), "\"%s\" must be a whole number, %s",
                       fleet_text_shown(text, shown), parsing->field->summary);
    }
    return refuse_place(parsing, what);
}

/* The field decides the type. */
static int value_of(const struct parsing *parsing, const char *text, json_t **ret)
{
    char what[BATON_ERROR_MESSAGE_MAX / 2], shown[FLEET_SHOWN_MAX];
    struct baton_error error;
    bool is_set = false;

    switch (parsing->field->type) {
    case FLEET_INTEGER:
        return number_of(parsing, text, ret);
    case FLEET_BOOLEAN:
        if (value_flag(text, &is_set, &error) != BATON_OK) {
            (void)snprintf(what, sizeof(what), "\"%s\" must be true or false",
                           fleet_text_shown(text, shown));
            return refuse_place(parsing, what);
        }
        *ret = json_boolean(is_set);
        return BATON_OK;
    case FLEET_TEXT:
    case FLEET_URL:
        *ret = json_string(text);
        return BATON_OK;
    }
    return BATON_EINVAL;
}

static int take_value(struct parsing *parsing, struct fy_event *event, const char *text)
{
    json_t *value = NULL;
    int code = is_null(event, text) ? BATON_OK : value_of(parsing, text, &value);

    if (code == BATON_OK && !is_null(event, text) &&
        json_object_set_new(parsing->item, parsing->field->name, value) != 0) {
        return error_set(parsing->reading->reterr, BATON_ENOMEM, "%s: out of memory",
                         parsing->reading->name);
    }
    parsing->place = code == BATON_OK ? AT_FIELD : parsing->place;
    return code;
}

static int take_scalar_item(struct parsing *parsing, const char *text)
{
    char what[BATON_ERROR_MESSAGE_MAX / 2];

    if (parsing->list == FILE_WORKERS) {
        return file_take_worker(parsing->reading, text, parsing->line);
    }
    (void)snprintf(what, sizeof(what), "must have fields, like \"- id: …\"%s",
                   strchr(text, ':') ? "; a colon needs a blank behind it" : "");
    return refuse_place(parsing, what);
}

static int take_scalar(struct parsing *parsing, struct fy_event *event)
{
    char text[TEXT_MAX];
    int code = text_of(parsing, event, text);

    if (code != BATON_OK) {
        return code;
    }
    switch (parsing->place) {
    case AT_LIST_NAME:
        return take_list_name(parsing, text);
    case AT_LIST:
        if (!is_null(event, text)) {
            return refuse_nesting(parsing, false);
        }
        parsing->place = AT_LIST_NAME; /* all of its lines are comments, say */
        return BATON_OK;
    case IN_LIST:
        return take_scalar_item(parsing, text);
    case AT_FIELD:
        return take_field_name(parsing, text);
    case AT_VALUE:
        return take_value(parsing, event, text);
    case AT_START:
        if (text[0] == '\0') {
            return BATON_OK; /* an empty file, or comments alone: parse_all() refuses it */
        }
        break;
    case AT_END:
        break;
    }
    return refuse_nesting(parsing, false);
}

/* ---- Structure ------------------------------------------------------------------------------- */

static int begin_mapping(struct parsing *parsing, const struct fy_event *event)
{
    if (event->mapping_start.anchor || event->mapping_start.tag) {
        return refuse_place(parsing, "anchors and tags are not supported: write the fields out");
    }
    if (parsing->place == AT_START) {
        parsing->place = AT_LIST_NAME;
        return BATON_OK;
    }
    if (parsing->place != IN_LIST || parsing->list == FILE_WORKERS) {
        return refuse_nesting(parsing, false);
    }
    parsing->place = AT_FIELD;
    parsing->item_line = parsing->line;
    memset(parsing->field_lines, 0, sizeof(parsing->field_lines));
    parsing->item = json_object();
    return parsing->item ? BATON_OK
                         : error_set(parsing->reading->reterr, BATON_ENOMEM, "%s: out of memory",
                                     parsing->reading->name);
}

static int end_mapping(struct parsing *parsing)
{
    int code;

    if (parsing->place == AT_LIST_NAME) {
        parsing->place = AT_END;
        return BATON_OK;
    }
    code = file_take_item(parsing->reading, (enum fleet_kind)parsing->list, parsing->item,
                          parsing->item_line, parsing->field_lines);
    json_decref(parsing->item);
    parsing->item = NULL;
    parsing->place = IN_LIST;
    return code;
}

static int begin_list(struct parsing *parsing, const struct fy_event *event)
{
    if (event->sequence_start.anchor || event->sequence_start.tag) {
        return refuse_place(parsing, "anchors and tags are not supported: write the list out");
    }
    if (parsing->place != AT_LIST) {
        return refuse_nesting(parsing, true);
    }
    parsing->place = IN_LIST;
    return BATON_OK;
}

static int take_event(struct parsing *parsing, struct fy_event *event)
{
    switch (event->type) {
    case FYET_SCALAR:
        return take_scalar(parsing, event);
    case FYET_MAPPING_START:
        return begin_mapping(parsing, event);
    case FYET_MAPPING_END:
        return end_mapping(parsing);
    case FYET_SEQUENCE_START:
        return begin_list(parsing, event);
    case FYET_SEQUENCE_END:
        parsing->place = AT_LIST_NAME;
        return BATON_OK;
    case FYET_ALIAS:
        return refuse_place(parsing, "aliases (*) are not supported: write the value out; a value "
                                     "that begins with a star needs quotes");
    case FYET_DOCUMENT_START:
        return parsing->place == AT_END ? refuse_place(parsing, "a second document: keep one")
                                        : BATON_OK;
    default:
        return BATON_OK;
    }
}

static int parse_all(struct parsing *parsing, struct fy_parser *parser)
{
    const struct file_reading *reading = parsing->reading;
    struct fy_event *event;
    int code = BATON_OK;

    while (code == BATON_OK && (event = fy_parser_parse(parser)) != NULL) {
        const struct fy_mark *mark = fy_event_start_mark(event);
        parsing->line = mark ? mark->line + 1 : parsing->line;
        code = take_event(parsing, event);
        fy_parser_event_free(parser, event);
    }
    if (code == BATON_OK && fy_parser_get_stream_error(parser)) {
        return file_refuse(reading, parsing->line,
                           "no valid YAML here or in the lines below: check the indentation, and "
                           "put quotes around a value with \": \" or \" #\" in it");
    }
    if (code == BATON_OK && parsing->place == AT_START) { /* with --prune it would delete all */
        return file_refuse(reading, 1,
                           "the file is empty: for no objects at all write "
                           "\"subscriptions: []\"");
    }
    return code;
}

int file_parse(struct file_reading *reading, const char *text, size_t bytes)
{
    struct parsing parsing = {.reading = reading, .line = 1};
    struct fy_parse_cfg config = {.flags = FYPCF_QUIET | FYPCF_JSON_NONE};
    struct fy_diag_cfg quiet;
    struct fy_parser *parser;
    int code, line;
    const char *fault = yaml_text_fault(text, bytes, &line);

    if (fault) {
        return file_refuse(reading, line, "%s", fault);
    }
    fy_diag_cfg_default(&quiet);
    quiet.fp = NULL;
    config.diag = fy_diag_create(&quiet);
    parser = config.diag ? fy_parser_create(&config) : NULL;
    if (parser && fy_parser_set_string(parser, text, bytes) == 0) {
        code = parse_all(&parsing, parser);
    } else {
        code = error_set(reading->reterr, BATON_ENOMEM, "%s: out of memory", reading->name);
    }
    json_decref(parsing.item);
    if (parser) {
        fy_parser_destroy(parser);
    }
    if (config.diag) {
        fy_diag_destroy(config.diag);
    }
    return code;
}
