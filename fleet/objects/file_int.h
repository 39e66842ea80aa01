/* What the files of the file share: what was read so far, and where it stood. */
#ifndef FLEET_OBJECTS_FILE_INT_H
#define FLEET_OBJECTS_FILE_INT_H

#include "base/names.h"
#include "fleet/objects/file.h"

enum { FILE_LISTS = FLEET_KINDS + 1, FILE_WORKERS = FLEET_KINDS }; /* lists of the file */

/* An object of the file. */
struct file_item {
    struct fleet_object *object; /* owned */
    int line;
    int reference_lines[FLEET_KINDS]; /* where a subscription names the other one */
    char id[];
};

struct file_reading {
    const char *name; /* of the file */
    struct file_item **items[FLEET_KINDS];
    size_t counts[FLEET_KINDS], rooms[FLEET_KINDS];
    struct names by_id[FLEET_KINDS];
    char *workers[FLEET_FILE_WORKERS_MAX];
    size_t worker_count;
    struct baton_error *reterr;
};

/* "cameras", also "workers". */
const char *file_list_name(int list);

/* BATON_EINVAL: "FILE:LINE: what". */
int file_refuse(const struct file_reading *reading, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Takes the JSON of an item: checked, and not there yet. The lines are those of its fields by the
 * table of the kind; 0: the item's. */
int file_take_item(struct file_reading *reading, enum fleet_kind kind, const json_t *json, int line,
                   const int field_lines[static FLEET_FIELDS_MAX]);
int file_take_worker(struct file_reading *reading, const char *url, int line);

/* Parses the text; calls file_take_item() and file_take_worker(). */
int file_parse(struct file_reading *reading, const char *text, size_t bytes);

#endif
