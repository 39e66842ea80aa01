/* The file of a fleet: YAML (or JSON, which is YAML), up to five lists (docs/fleet.md).
 *
 *   models:        [{id, name, url}]
 *   cameras:       [{id, rtspUrl, snapshotUrl, snapshotInterval}]
 *   displays:      [{id, name}]
 *   subscriptions: [{display, camera, model, crop…, priority, needs, paused}]
 *   workers:       [URL]
 *
 * It is read whole or not at all. Errors name file, line, item and field, and never quote a URL:
 * "fleet.yaml:12: cameras[3].rtspUrl: …". The field decides the type of a value, so that an id of
 * digits needs no quotes. Anchors, aliases, tags, a second document, tabs and directives are
 * refused. The parser is libfyaml's, fed event by event.
 */
#ifndef FLEET_OBJECTS_FILE_H
#define FLEET_OBJECTS_FILE_H

#include "fleet/objects/object.h"

enum {
    FLEET_FILE_BYTES_MAX = 32 << 20,
    FLEET_FILE_WORKERS_MAX = 4096, /* URLs in `workers` */
    FLEET_WORKER_URL_MAX = 512,    /* bytes of one */
    FLEET_FILE_HASH_TEXT = 65,     /* bytes of a hash in hexadecimal digits, with the NUL */
};

struct fleet_file {
    struct fleet_object **objects; /* models first, then cameras, displays, subscriptions; owned */
    size_t count;
    char *
        *workers; /* URLs: ws://HOST:PORT, dns+ws://NAME:PORT, srv+ws://NAME, and with wss; owned */
    size_t worker_count;
    char hash[FLEET_FILE_HASH_TEXT]; /* SHA-256 of the text */
};

/* `name` is for messages. Everything that a subscription names must be in the file. BATON_EINVAL,
 * BATON_ETOOBIG, BATON_ENOMEM: then *ret is untouched. */
int fleet_file_read(struct fleet_file *ret, const char *name, const char *text, size_t bytes,
                    struct baton_error *reterr);
/* The same from a file, which is read once. Also BATON_ENOENT, BATON_EIO; BATON_EINVAL: it is a
 * folder, a pipe or a device; BATON_EAUTH: a URL has a password, and everybody may read the file.
 */
int fleet_file_load(struct fleet_file *ret, const char *path, struct baton_error *reterr);
void fleet_file_fini(struct fleet_file *file); /* {0} allowed */

#endif
