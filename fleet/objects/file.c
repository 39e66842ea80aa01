#include "fleet/objects/file_int.h"

#include "base/error.h"
#include "fleet/objects/url.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024, ROOM_MIN = 64, NUMBER_MAX = 24 };

const char *file_list_name(int list)
{
    return list == FILE_WORKERS ? "workers" : fleet_kind_plural((enum fleet_kind)list);
}

int file_refuse(const struct file_reading *reading, int line, const char *format, ...)
{
    char what[BATON_ERROR_MESSAGE_MAX];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    return error_set(reading->reterr, BATON_EINVAL, "%s:%d: %s", reading->name, line, what);
}

static int refuse_memory(const struct file_reading *reading)
{
    return error_set(reading->reterr, BATON_ENOMEM, "%s: out of memory", reading->name);
}

/* ---- Items ----------------------------------------------------------------------------------- */

static int line_of(enum fleet_kind kind, const char *field, int line,
                   const int field_lines[static FLEET_FIELDS_MAX])
{
    const struct fleet_field *found = fleet_field_find(kind, field);
    int at = found ? field_lines[found - fleet_fields(kind)] : 0;

    return at > 0 ? at : line;
}

/* The error names its field first. */
static int refuse_object(const struct file_reading *reading, enum fleet_kind kind, int line,
                         const int field_lines[static FLEET_FIELDS_MAX],
                         const struct baton_error *error)
{
    char field[FLEET_SHOWN_MAX];

    (void)snprintf(field, sizeof(field), "%.*s", (int)strcspn(error->message, ":"), error->message);
    return file_refuse(reading, line_of(kind, field, line, field_lines), "%s[%zu].%s",
                       file_list_name((int)kind), reading->counts[kind], error->message);
}

/* False: out of memory. */
static bool make_room(struct file_reading *reading, enum fleet_kind kind)
{
    size_t room = reading->rooms[kind] > 0 ? 2 * reading->rooms[kind] : ROOM_MIN;
    struct file_item **items;

    if (reading->counts[kind] < reading->rooms[kind]) {
        return true;
    }
    items = realloc((void *)reading->items[kind], room * sizeof(struct file_item *));
    if (items) {
        reading->items[kind] = items;
        reading->rooms[kind] = room;
    }
    return items != NULL;
}

static int add_item(struct file_reading *reading, struct fleet_object *object, int line,
                    const int field_lines[static FLEET_FIELDS_MAX])
{
    static const char *const references[] = {
        [FLEET_MODEL] = "model", [FLEET_CAMERA] = "camera", [FLEET_DISPLAY] = "display"};
    enum fleet_kind kind = object->kind;
    size_t bytes = strlen(object->id) + 1;
    struct file_item *item = calloc(1, sizeof(*item) + bytes);

    if (!item || !make_room(reading, kind)) {
        free(item);
        return BATON_ENOMEM;
    }
    item->line = line;
    memcpy(item->id, object->id, bytes);
    for (int to = 0; kind == FLEET_SUBSCRIPTION && to < FLEET_SUBSCRIPTION; to++) {
        item->reference_lines[to] = line_of(kind, references[to], line, field_lines);
    }
    if (names_add(&reading->by_id[kind], item) != BATON_OK) {
        free(item);
        return BATON_ENOMEM;
    }
    item->object = object;
    reading->items[kind][reading->counts[kind]++] = item;
    return BATON_OK;
}

int file_take_item(struct file_reading *reading, enum fleet_kind kind, const json_t *json, int line,
                   const int field_lines[static FLEET_FIELDS_MAX])
{
    struct fleet_object *object;
    const struct file_item *before;
    char text[FLEET_SHOWN_MAX];
    struct baton_error error = {0};
    int code = fleet_object_read(&object, kind, NULL, json, &error);

    if (code == BATON_ENOMEM) {
        return refuse_memory(reading);
    }
    if (code != BATON_OK) {
        return refuse_object(reading, kind, line, field_lines, &error);
    }
    before = names_find(&reading->by_id[kind], object->id);
    if (before) {
        code = file_refuse(reading, line_of(kind, "id", line, field_lines),
                           "%s[%zu].id: \"%s\" stands on line %d already: keep one of them",
                           file_list_name((int)kind), reading->counts[kind],
                           fleet_text_shown(object->id, text), before->line);
    } else if (add_item(reading, object, line, field_lines) != BATON_OK) {
        code = refuse_memory(reading);
    } else {
        return BATON_OK; /* the item has the object */
    }
    fleet_object_unref(object);
    return code;
}

int file_take_worker(struct file_reading *reading, const char *url, int line)
{
    struct baton_error error = {0};
    char field[NUMBER_MAX];
    int code;

    (void)snprintf(field, sizeof(field), "workers[%zu]", reading->worker_count);
    if (reading->worker_count == FLEET_FILE_WORKERS_MAX || strlen(url) > FLEET_WORKER_URL_MAX) {
        return file_refuse(reading, line, "%s: more than %d URLs, or one of more than %d bytes",
                           field, FLEET_FILE_WORKERS_MAX, FLEET_WORKER_URL_MAX);
    }
    code = fleet_url_check(url, FLEET_URL_WORKER, field, &error);
    if (code != BATON_OK) {
        return file_refuse(reading, line, "%s", error.message);
    }
    for (size_t i = 0; i < reading->worker_count; i++) {
        if (strcmp(reading->workers[i], url) == 0) {
            return file_refuse(reading, line, "%s: stands there already, as workers[%zu]", field,
                               i);
        }
    }
    reading->workers[reading->worker_count] = strdup(url);
    if (!reading->workers[reading->worker_count]) {
        return refuse_memory(reading);
    }
    reading->worker_count++;
    return BATON_OK;
}

/* ---- References ------------------------------------------------------------------------------ */

static const struct file_item *nearest(const struct file_reading *reading, enum fleet_kind kind,
                                       const char *id)
{
    const struct file_item *best = NULL;
    size_t distance = FLEET_DISTANCE_NONE;

    for (size_t i = 0; i < reading->counts[kind]; i++) {
        const struct file_item *item = reading->items[kind][i];
        best = fleet_is_nearer(id, item->id, &distance) ? item : best;
    }
    return best;
}

static int check_reference(const struct file_reading *reading, size_t index, enum fleet_kind to,
                           const char *id)
{
    const struct file_item *item = reading->items[FLEET_SUBSCRIPTION][index];
    const struct file_item *meant;
    char text[FLEET_SHOWN_MAX], other[FLEET_SHOWN_MAX];

    if (names_find(&reading->by_id[to], id)) {
        return BATON_OK;
    }
    meant = nearest(reading, to, id);
    return file_refuse(reading, item->reference_lines[to],
                       "subscriptions[%zu].%s: \"%s\" is none of the file's %s%s%s%s", index,
                       fleet_kind_name(to), fleet_text_shown(id, text), fleet_kind_plural(to),
                       meant ? "; \"" : "", meant ? fleet_text_shown(meant->id, other) : "",
                       meant ? "\" is meant?" : "; add it to them, or take the subscription out");
}

static int check_references(const struct file_reading *reading)
{
    char number[NUMBER_MAX];
    int code = BATON_OK;

    for (size_t i = 0; i < reading->counts[FLEET_SUBSCRIPTION] && code == BATON_OK; i++) {
        const struct fleet_object *object = reading->items[FLEET_SUBSCRIPTION][i]->object;
        (void)snprintf(number, sizeof(number), "%lld", (long long)object->subscription.model);
        code = check_reference(reading, i, FLEET_DISPLAY, object->subscription.display);
        code = code ? code : check_reference(reading, i, FLEET_CAMERA, object->subscription.camera);
        code = code ? code : check_reference(reading, i, FLEET_MODEL, number);
    }
    return code;
}

/* ---- The whole ------------------------------------------------------------------------------- */

void fleet_file_fini(struct fleet_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        fleet_object_unref(file->objects[i]);
    }
    for (size_t i = 0; i < file->worker_count; i++) {
        free(file->workers[i]);
    }
    free((void *)file->objects);
    free((void *)file->workers);
    *file = (struct fleet_file){0};
}

static bool hash(char ret[static FLEET_FILE_HASH_TEXT], const char *text, size_t bytes)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned count = 0;

    if (!EVP_Digest(text, bytes, digest, &count, EVP_sha256(), NULL)) {
        return false;
    }
    for (unsigned i = 0; i < count && i < (FLEET_FILE_HASH_TEXT - 1) / 2; i++) {
        (void)snprintf(ret + (size_t)2 * i, 3, "%02x", digest[i]);
    }
    return true;
}

/* Moves what was read into the file. */
static int hand_over(struct file_reading *reading, struct fleet_file *ret)
{
    size_t count = 0, used = 0;
    struct fleet_file file = {0};

    for (int kind = 0; kind < FLEET_KINDS; kind++) {
        count += reading->counts[kind];
    }
    file.objects = calloc(count + 1, sizeof(struct fleet_object *));
    file.workers = calloc(reading->worker_count + 1, sizeof(char *));
    if (!file.objects || !file.workers) {
        fleet_file_fini(&file);
        return refuse_memory(reading);
    }
    for (int kind = 0; kind < FLEET_KINDS; kind++) {
        for (size_t i = 0; i < reading->counts[kind]; i++) {
            file.objects[used++] = fleet_object_ref(reading->items[kind][i]->object);
        }
    }
    file.count = used;
    file.worker_count = reading->worker_count;
    memcpy((void *)file.workers, (const void *)reading->workers,
           reading->worker_count * sizeof(char *));
    reading->worker_count = 0;
    *ret = file;
    return BATON_OK;
}

static void reading_fini(struct file_reading *reading)
{
    for (int kind = 0; kind < FLEET_KINDS; kind++) {
        for (size_t i = 0; i < reading->counts[kind]; i++) {
            fleet_object_unref(reading->items[kind][i]->object);
            free(reading->items[kind][i]);
        }
        free((void *)reading->items[kind]);
        names_fini(&reading->by_id[kind]);
    }
    for (size_t i = 0; i < reading->worker_count; i++) {
        free(reading->workers[i]);
    }
    free(reading);
}

int fleet_file_read(struct fleet_file *ret, const char *name, const char *text, size_t bytes,
                    struct baton_error *reterr)
{
    struct file_reading *reading;
    int code;

    if (bytes > FLEET_FILE_BYTES_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "%s: larger than %d MiB", name,
                         FLEET_FILE_BYTES_MAX >> 20);
    }
    reading = calloc(1, sizeof(*reading));
    if (!reading) {
        return error_set(reterr, BATON_ENOMEM, "%s: out of memory", name);
    }
    reading->name = name;
    reading->reterr = reterr;
    for (int kind = 0; kind < FLEET_KINDS; kind++) {
        names_init(&reading->by_id[kind], offsetof(struct file_item, id));
    }
    code = file_parse(reading, text, bytes);
    code = code ? code : check_references(reading);
    code = code ? code : hand_over(reading, ret);
    if (code == BATON_OK && !hash(ret->hash, text, bytes)) {
        fleet_file_fini(ret);
        code = refuse_memory(reading);
    }
    reading_fini(reading);
    return code;
}

/* ---- From the disk --------------------------------------------------------------------------- */

static int read_all(FILE *file, const char *path, char **ret, size_t *ret_bytes,
                    struct baton_error *reterr)
{
    size_t bytes = 0, got;
    char *text = NULL;

    do {
        char *more = realloc(text, bytes + READ_BYTES);
        if (!more) {
            free(text);
            return error_set(reterr, BATON_ENOMEM, "%s: out of memory", path);
        }
        text = more;
        got = fread(text + bytes, 1, READ_BYTES, file);
        bytes += got;
    } while (got > 0 && bytes <= FLEET_FILE_BYTES_MAX);
    if (ferror(file)) {
        free(text);
        return error_set(reterr, BATON_EIO, "%s: %s", path, strerror(errno));
    }
    *ret = text;
    *ret_bytes = bytes;
    return BATON_OK;
}

static bool has_password(const struct fleet_object *object)
{
    if (object->kind == FLEET_MODEL) {
        return fleet_url_has_password(object->model.url);
    }
    return object->kind == FLEET_CAMERA &&
           ((object->camera.rtsp_url && fleet_url_has_password(object->camera.rtsp_url)) ||
            (object->camera.snapshot_url && fleet_url_has_password(object->camera.snapshot_url)));
}

/* A file that every user can read must not contain a password. */
static int check_readers(const struct fleet_file *file, FILE *opened, const char *path,
                         struct baton_error *reterr)
{
    char text[FLEET_SHOWN_MAX];
    struct stat status;

    if (fstat(fileno(opened), &status) != 0 || !(status.st_mode & S_IROTH)) {
        return BATON_OK;
    }
    for (size_t i = 0; i < file->count; i++) {
        if (has_password(file->objects[i])) {
            return error_set(reterr, BATON_EAUTH,
                             "%s: the URL of %s %s has a password in it, and everybody may read "
                             "the file (mode %04o): chmod o-r",
                             path, fleet_kind_name(file->objects[i]->kind),
                             fleet_text_shown(file->objects[i]->id, text),
                             (unsigned)status.st_mode & 07777);
        }
    }
    return BATON_OK;
}

/* A pipe is refused: opening it would wait for a writer, and it cannot be read a second time. */
static int open_file(FILE **ret, const char *path, struct baton_error *reterr)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    int code;

    if (descriptor >= 0 && fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode)) {
        (void)close(descriptor);
        return error_set(reterr, BATON_EINVAL,
                         "%s: must be a file, which is read again when it changes; this is a "
                         "folder, a pipe or a device",
                         path);
    }
    *ret = descriptor >= 0 ? fdopen(descriptor, "r") : NULL;
    if (*ret) {
        return BATON_OK;
    }
    code = error_set(reterr, errno == ENOENT ? BATON_ENOENT : BATON_EIO, "%s: %s", path,
                     strerror(errno));
    if (descriptor >= 0) {
        (void)close(descriptor);
    }
    return code;
}

int fleet_file_load(struct fleet_file *ret, const char *path, struct baton_error *reterr)
{
    FILE *opened = NULL;
    struct fleet_file file = {0};
    char *text = NULL;
    size_t bytes = 0;
    int code = open_file(&opened, path, reterr);

    if (code != BATON_OK) {
        return code;
    }
    code = read_all(opened, path, &text, &bytes, reterr);
    if (code == BATON_OK) {
        code = fleet_file_read(&file, path, text, bytes, reterr);
        code = code ? code : check_readers(&file, opened, path, reterr);
    }
    free(text);
    (void)fclose(opened); /* it was only read */
    if (code == BATON_OK) {
        *ret = file;
    } else {
        fleet_file_fini(&file);
    }
    return code;
}
