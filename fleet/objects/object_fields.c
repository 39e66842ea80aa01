#include "base/text.h"
#include "fleet/objects/object.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *name, *plural;
} kinds[] = {
#define KIND_NAMES(symbol, name, plural) [symbol] = {(name), (plural)},
    FLEET_KIND_LIST(KIND_NAMES)
#undef KIND_NAMES
};

static const struct fleet_field model_fields[] = {
    {"id", FLEET_INTEGER, true, 0, PROTOCOL_INTEGER_MAX, "the number that workers report"},
    {"name", FLEET_TEXT, true, 1, PROTOCOL_NAME_MAX, "the name that workers report"},
    {"url", FLEET_URL, true, 1, PROTOCOL_URL_MAX,
     "the archive: http://, https://, s3://BUCKET/KEY"},
    {.name = NULL},
};

static const struct fleet_field camera_fields[] = {
    {"id", FLEET_TEXT, true, 1, FLEET_ID_MAX - 2, "the camera's identifier"},
    {"rtspUrl", FLEET_URL, false, 1, PROTOCOL_URL_MAX, "its stream: rtsp:// or rtsps://"},
    {"snapshotUrl", FLEET_URL, false, 1, PROTOCOL_URL_MAX, "its pictures: http:// or https://"},
    {"snapshotInterval", FLEET_INTEGER, false, 1, PROTOCOL_INTERVAL_MAX_MS,
     "milliseconds from picture to picture"},
    {.name = NULL},
};

static const struct fleet_field display_fields[] = {
    {"id", FLEET_TEXT, true, 1, FLEET_ID_MAX - 2, "the display's identifier"},
    {"name", FLEET_TEXT, false, 1, PROTOCOL_NAME_MAX, "for people"},
    {.name = NULL},
};

static const struct fleet_field subscription_fields[] = {
    {"id", FLEET_TEXT, false, 1, FLEET_ID_MAX, "DISPLAY;CAMERA"},
    {"display", FLEET_TEXT, false, 1, FLEET_ID_MAX - 2, "id of a display"},
    {"camera", FLEET_TEXT, false, 1, FLEET_ID_MAX - 2, "id of a camera"},
    {"model", FLEET_INTEGER, true, 0, PROTOCOL_INTEGER_MAX, "id of a model"},
    {"cropX1", FLEET_INTEGER, false, 0, PROTOCOL_PIXELS_MAX, "left edge of what the model gets"},
    {"cropY1", FLEET_INTEGER, false, 0, PROTOCOL_PIXELS_MAX, "its upper edge"},
    {"cropX2", FLEET_INTEGER, false, 0, PROTOCOL_PIXELS_MAX, "its right edge"},
    {"cropY2", FLEET_INTEGER, false, 0, PROTOCOL_PIXELS_MAX, "its lower edge"},
    {"priority", FLEET_INTEGER, false, -FLEET_PRIORITY_MAX, FLEET_PRIORITY_MAX,
     "the higher one is placed where there is not room for all"},
    {"needs", FLEET_TEXT, false, 1, FLEET_LABELS_MAX - 1, "labels that its worker must have"},
    {"paused", FLEET_BOOLEAN, false, 0, 0, "whether no worker has it for now"},
    {.name = NULL},
};

static const struct fleet_field *const fields[] = {
    [FLEET_MODEL] = model_fields,
    [FLEET_CAMERA] = camera_fields,
    [FLEET_DISPLAY] = display_fields,
    [FLEET_SUBSCRIPTION] = subscription_fields,
};

const char *fleet_kind_name(enum fleet_kind kind)
{
    return kinds[kind].name;
}

const char *fleet_kind_plural(enum fleet_kind kind)
{
    return kinds[kind].plural;
}

const struct fleet_field *fleet_fields(enum fleet_kind kind)
{
    return fields[kind];
}

const struct fleet_field *fleet_field_find(enum fleet_kind kind, const char *name)
{
    const struct fleet_field *field = fields[kind];

    while (field->name && strcmp(field->name, name) != 0) {
        field++;
    }
    return field->name ? field : NULL;
}

/* ---- What was meant -------------------------------------------------------------------------- */

enum { MEANT_MAX = 32, LETTERS_FOR_A_MISTAKE = 3 };

/* "rtsp_url", "RTSP-URL" and "rtspUrl" are all "rtspurl". */
static void fold(char ret[static MEANT_MAX], const char *text)
{
    size_t used = 0;

    for (; *text && used < MEANT_MAX - 1; text++) {
        if (*text != '_' && *text != '-' && *text != ' ') {
            ret[used++] = (char)tolower((unsigned char)*text);
        }
    }
    ret[used] = '\0';
}

bool fleet_is_nearer(const char *typed, const char *word, size_t *distance)
{
    char a[MEANT_MAX], b[MEANT_MAX];
    size_t changes, letters;

    fold(a, typed);
    fold(b, word);
    letters = strlen(b);
    changes = text_distance(a, b);
    if (changes >= *distance || changes * LETTERS_FOR_A_MISTAKE > letters) {
        return false;
    }
    *distance = changes;
    return true;
}

const struct fleet_field *fleet_field_meant(enum fleet_kind kind, const char *typed)
{
    const struct fleet_field *meant = NULL;
    size_t distance = FLEET_DISTANCE_NONE;

    for (const struct fleet_field *field = fields[kind]; field->name; field++) {
        meant = fleet_is_nearer(typed, field->name, &distance) ? field : meant;
    }
    return meant;
}
