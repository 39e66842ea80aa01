/* A cache of models in a process of its own, so that it can be killed at any of its calls.
 *
 *   store_tool add FOLDER BYTES_MAX ARCHIVE …   adds one after another; the first failure ends it
 *   store_tool check FOLDER DIGEST …            which of them are there, one a line; 1: not whole
 */
#include "detector/model/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int add(struct store *store, const char *path, struct baton_error *error)
{
    struct model *model = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? BATON_ENOENT : store_add(store, fd, NULL, &model, error);

    if (rc == 0) {
        (void)printf("%s\n", model->digest);
        (void)fflush(stdout);
        rc = store_origin_set(store, model->digest, model->digest, "e");
        model_release(model);
    }
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

static int check(struct store *store, const char *digest, struct baton_error *error)
{
    struct model *model = NULL;
    int rc = store_find(store, digest, &model, error);

    if (rc == 0) {
        (void)printf("%s\n", digest);
        model_release(model);
    }
    return rc == BATON_ENOENT ? 0 : rc;
}

int main(int argc, char **argv)
{
    bool is_adding = argc > 3 && strcmp(argv[1], "add") == 0;
    uint64_t bytes_max = is_adding ? strtoull(argv[3], NULL, 10) : UINT64_MAX;
    struct baton_error error = {0};
    struct store *store = NULL;
    int rc;

    if (argc < 3) {
        return 2;
    }
    rc = store_open(&store, argv[2], bytes_max, &error);
    for (int i = is_adding ? 4 : 3; rc == 0 && i < argc; i++) {
        rc = is_adding ? add(store, argv[i], &error) : check(store, argv[i], &error);
    }
    if (rc != 0) {
        (void)fprintf(stderr, "%s\n", error.message);
    }
    store_close(store);
    return rc != 0;
}
